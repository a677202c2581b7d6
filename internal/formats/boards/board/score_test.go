package board_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

func ago(d time.Duration) board.Millis { return board.At(noon.Add(-d)) }

func TestAScoreIsTheSumOfItsTerms(t *testing.T) {
	site := board.Board{ID: "bd_site", Slug: "site"}
	member := board.Member{Handle: "ada", Role: "frontend developer", Skills: []string{"css", "type script"}, BoardIDs: []string{"bd_site"}}
	task := func(change ...func(*board.Task)) board.Task {
		t := board.Task{ID: "tk_1", BoardID: "bd_site", Title: "Mend footer", Status: board.Todo, Priority: board.Medium, CreatedAt: ago(time.Hour)}
		for _, c := range change {
			c(&t)
		}
		return t
	}
	title := func(s string) func(*board.Task) { return func(t *board.Task) { t.Title = s } }
	for name, c := range map[string]struct {
		tasks, done []board.Task
		want        string
	}{
		"no task":                       {nil, nil, "site 0.000: no task waits"},
		"only what others have":         {[]board.Task{task(func(t *board.Task) { t.AssigneeID = "bob" }), task(func(t *board.Task) { t.Status = board.Done })}, nil, "site 0.000: no task waits"},
		"medium":                        {[]board.Task{task()}, nil, "site 0.550 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending"},
		"overdue":                       {[]board.Task{task(func(t *board.Task) { t.DueDate = board.At(noon) })}, nil, "site 1.050 = 1 × urgency 1.00 (tk_1, overdue) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending"},
		"due in a moment":               {[]board.Task{task(func(t *board.Task) { t.DueDate = board.At(noon) + 1 })}, nil, "site 0.550 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending"},
		"a skill is in its words":       {[]board.Task{task(title("CSS of the footer"))}, nil, "site 0.800 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.500 (tk_1: skills 1.00, role 0.00, history 0.00) + 0.05 × 1 pending"},
		"a skill of two words":          {[]board.Task{task(title("Type the footer"))}, nil, "site 0.550 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending"},
		"half of the skills it needs":   {[]board.Task{task(func(t *board.Task) { t.RequiredSkills = []string{"CSS", "rust"} })}, nil, "site 0.675 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.250 (tk_1: skills 0.50, role 0.00, history 0.00) + 0.05 × 1 pending"},
		"a word of its role":            {[]board.Task{task(title("Frontends crash"))}, nil, "site 0.625 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.150 (tk_1: skills 0.00, role 0.50, history 0.00) + 0.05 × 1 pending"},
		"it has done one like this":     {[]board.Task{task()}, []board.Task{{Title: "footer"}, {Title: "mend the footer"}}, "site 0.650 = 1 × urgency 0.50 (tk_1) + 0.5 × expertise 0.200 (tk_1: skills 0.00, role 0.00, history 1.00) + 0.05 × 1 pending"},
		"the highest of several counts": {[]board.Task{task(), task(func(t *board.Task) { t.ID, t.Priority, t.Status = "tk_2", board.High, board.Backlog }), task(func(t *board.Task) { t.ID, t.Title = "tk_3", "css" })}, nil, "site 1.150 = 1 × urgency 0.75 (tk_2) + 0.5 × expertise 0.500 (tk_3: skills 1.00, role 0.00, history 0.00) + 0.05 × 3 pending"},
	} {
		if got := board.Score(member, site, c.tasks, c.done, noon).String(); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

func TestOfEqualBoardsTheOldestTaskAndThenTheSlugDecides(t *testing.T) {
	boards := []board.Board{{ID: "bd_1", Slug: "b"}, {ID: "bd_2", Slug: "c"}, {ID: "bd_3", Slug: "a"}, {ID: "bd_4", Slug: "empty"}, {ID: "bd_5", Slug: "foreign"}}
	member := board.Member{BoardIDs: []string{"bd_1", "bd_2", "bd_3", "bd_4"}}
	var tasks []board.Task
	for id, age := range map[string]time.Duration{"bd_1": time.Hour, "bd_2": 2 * time.Hour, "bd_3": time.Hour, "bd_5": 9 * time.Hour} {
		tasks = append(tasks, board.Task{ID: "tk_" + id, BoardID: id, Title: "x", Status: board.Todo, Priority: board.Low, CreatedAt: ago(age)})
	}
	winner, all := board.Route(member, boards, tasks, nil, noon)
	var order []string
	for _, terms := range all {
		order = append(order, terms.Slug)
	}
	if winner != "bd_2" || !slices.Equal(order, []string{"c", "a", "b", "empty"}) {
		t.Errorf("winner %s of %s", winner, order)
	}
	if winner, all = board.Route(member, boards, nil, nil, noon); winner != "" || len(all) != 4 {
		t.Errorf("without a task the winner is %q of %d", winner, len(all))
	}
}

var (
	drawWords = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"css", "go", "parsers", "footer", "the", "docs"}), 1, 4), func(w []string) string { return strings.Join(w, " ") })
	handles   = []string{"ada", "bob", "cyd", "dan"}
	boardIDs  = []string{"bd_a", "bd_b", "bd_c"}
)

// drawScene draws boards with everything that a choice depends on.
func drawScene(t *rapid.T) (s board.Scene, boards []board.Board, done []board.Task) {
	for _, id := range boardIDs {
		b := board.Board{ID: id, Slug: strings.TrimPrefix(id, "bd_"), Waived: rapid.Bool().Draw(t, "waived")}
		if rapid.Bool().Draw(t, "limited") {
			b.WIP = map[board.Status]int{board.InProgress: rapid.IntRange(1, 3).Draw(t, "wip")}
		}
		boards = append(boards, b)
	}
	for _, h := range handles {
		s.Members = append(s.Members, board.Member{
			Handle: h, Role: drawWords.Draw(t, "role"), Layer: rapid.SampledFrom(board.Layers()).Draw(t, "layer"), Skills: []string{drawWords.Draw(t, "skill"), "go"},
			BoardIDs: rapid.SliceOfNDistinct(rapid.SampledFrom(boardIDs), 1, 3, rapid.ID[string]).Draw(t, "boards"), Dormant: rapid.IntRange(0, 5).Draw(t, "dormant") == 0,
			Lead: rapid.SampledFrom(append([]string{""}, handles...)).Draw(t, "lead"),
		})
	}
	made := func() board.Millis { return ago(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour) }
	for i := range rapid.IntRange(0, 12).Draw(t, "tasks") {
		task := board.Task{
			ID: "tk_" + strconv.Itoa(i), BoardID: rapid.SampledFrom(boardIDs).Draw(t, "board"), Title: drawWords.Draw(t, "title"), Description: rapid.SampledFrom([]string{"", "css"}).Draw(t, "description"),
			Status: rapid.SampledFrom(board.Statuses()).Draw(t, "status"), Priority: rapid.SampledFrom(board.Priorities()).Draw(t, "priority"),
			AssigneeID: rapid.SampledFrom([]string{"", "", "ada", "bob"}).Draw(t, "assignee"), Order: rapid.IntRange(0, 2).Draw(t, "order"), CreatedAt: made(),
			ExecutionStatus: rapid.SampledFrom([]board.ExecutionStatus{"", board.ExecutionRunning, board.ExecutionApproval}).Draw(t, "execution"),
		}
		if rapid.IntRange(0, 3).Draw(t, "due") == 0 {
			task.DueDate = made()
		}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "child") == 0 {
			task.ParentTaskID = "tk_" + strconv.Itoa(rapid.IntRange(0, i-1).Draw(t, "parent"))
		}
		s.Tasks = append(s.Tasks, task)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "messages") {
		s.Messages = append(s.Messages, board.Message{
			ID: "ms_" + strconv.Itoa(i), FromAgentID: rapid.SampledFrom(append([]string{board.Human}, handles...)).Draw(t, "from"), ToAgentID: rapid.SampledFrom(handles).Draw(t, "to"),
			MessageType: rapid.SampledFrom([]board.MessageType{board.Order, board.Question}).Draw(t, "type"), TaskID: "tk_" + strconv.Itoa(rapid.IntRange(0, 11).Draw(t, "about")), SentAt: made(),
		})
	}
	s.Member, s.Board, s.Now = s.Members[0], boards[0], noon
	if rapid.Bool().Draw(t, "documented") {
		s.Resources = []board.Resource{{BoardID: "bd_a", Category: board.SOP}}
	}
	s.Minds = map[string]board.Mind{"bob": {Status: board.Idle, LastHeartbeat: made()}}
	for _, task := range s.Tasks {
		if rapid.IntRange(0, 3).Draw(t, "lapsed") == 0 {
			s.Lapsed = map[string]bool{task.ID: true}
		}
		if task.Status == board.Done {
			done = append(done, task)
		}
	}
	return s, boards, done
}

// shuffled returns a list in an order that a seed gives.
func shuffled[T any](list []T, seed uint64) []T {
	list = slices.Clone(list)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func TestNoOrderOfWhatIsGivenChangesAScoreOrAChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, boards, done := drawScene(t)
		seed := rapid.Uint64().Draw(t, "seed")
		other := s
		other.Tasks, other.Members, other.Messages, other.Resources = shuffled(s.Tasks, seed), shuffled(s.Members, seed), shuffled(s.Messages, seed), shuffled(s.Resources, seed)
		other.Member = s.Member

		winner, all := board.Route(s.Member, boards, s.Tasks, done, noon)
		winner2, all2 := board.Route(s.Member, shuffled(boards, seed), other.Tasks, shuffled(done, seed), noon)
		if diff := cmp.Diff(all, all2); winner != winner2 || diff != "" {
			t.Fatalf("winner %s and %s\n%s", winner, winner2, diff)
		}
		a, b := s.Candidates(), other.Candidates()
		ignore := cmp.FilterPath(func(p cmp.Path) bool { f, ok := p.Last().(cmp.StructField); return ok && f.Name() >= "a" }, cmp.Ignore())
		if diff := cmp.Diff(a, b, ignore); diff != "" {
			t.Fatalf("another order of what was given:\n%s", diff)
		}
	})
}

func TestEveryExpertiseIsFromZeroToOneAndEverySumIsThatOfItsTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, boards, done := drawScene(t)
		_, all := board.Route(s.Member, boards, s.Tasks, done, noon)
		for _, terms := range all {
			for _, part := range []float64{terms.Urgency, terms.Expertise, terms.Skills, terms.Role, terms.History} {
				if part < 0 || part > 1 {
					t.Fatalf("%s", terms)
				}
			}
			want := terms.Urgency + terms.Expertise/2 + float64(terms.Pending)/20
			if d := terms.Total - want; d > 1e-4 || d < -1e-4 {
				t.Fatalf("%s is not %g", terms, want)
			}
		}
	})
}

package board_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

// readScenario reads four boards with thirteen agents in four layers and fourteen tasks over
// five columns.
func readScenario(t *testing.T) board.Document {
	t.Helper()
	text, err := os.ReadFile("testdata/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	d, problems := board.ReadDocument(text, board.Known{})
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	return d
}

// takes is who takes what, worked out by hand: each agent in turn, by its handle, with the
// terms of all of its boards. Whoever comes later sees what is taken.
var takes = []struct {
	handle, task, why string
	routes            []string
}{
	{"ada", "tk_s3", "urgency 1.00, priority medium", []string{
		"site 1.525 = 1 × urgency 1.00 (tk_s3, overdue) + 0.5 × expertise 0.650 (tk_s1: skills 1.00, role 0.50, history 0.00) + 0.05 × 4 pending",
	}},
	{"ana", "", "its board has no SOP and no documentation", []string{
		"research 1.050 = 1 × urgency 1.00 (tk_r1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
	}},
	{"bea", "tk_a1", "urgency 1.00, priority urgent", []string{
		"api 1.425 = 1 × urgency 1.00 (tk_a1) + 0.5 × expertise 0.550 (tk_a3: skills 1.00, role 0.00, history 0.25) + 0.05 × 3 pending",
		"site 1.125 = 1 × urgency 0.75 (tk_s1) + 0.5 × expertise 0.550 (tk_s1: skills 1.00, role 0.00, history 0.25) + 0.05 × 2 pending",
	}},
	{"cem", "", "@cem lacks sql; tk_a1 has to be done before, and is in in_progress", []string{
		"api 0.875 = 1 × urgency 0.50 (tk_a2) + 0.5 × expertise 0.550 (tk_a3: skills 1.00, role 0.00, history 0.25) + 0.05 × 2 pending",
	}},
	{"dan", "tk_a2", "urgency 0.50, priority medium", []string{
		"api 0.850 = 1 × urgency 0.50 (tk_a2) + 0.5 × expertise 0.500 (tk_a2: skills 1.00, role 0.00, history 0.00) + 0.05 × 2 pending",
	}},
	{"eve", "tk_o1", "@lou has ordered it", []string{
		"ops 0.900 = 1 × urgency 0.75 (tk_o2) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 3 pending",
	}},
	{"fay", "", "2 tasks are in progress, and 2 may be", []string{
		"site 1.175 = 1 × urgency 0.75 (tk_s1) + 0.5 × expertise 0.650 (tk_s2: skills 1.00, role 0.50, history 0.00) + 0.05 × 2 pending",
		"research 1.050 = 1 × urgency 1.00 (tk_r1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
	}},
	{"gus", "", "@gus is dormant", []string{
		"ops 0.850 = 1 × urgency 0.75 (tk_o2) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 2 pending",
	}},
	{"kai", "tk_o3", "urgency 0.25, priority low", []string{
		"ops 0.850 = 1 × urgency 0.75 (tk_o2) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 2 pending", // Its oldest task is older than that of site.
		"site 0.850 = 1 × urgency 0.75 (tk_s1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 2 pending",
		"api 0.550 = 1 × urgency 0.50 (tk_a3) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
	}},
	{"leo", "", "tk_a1 has to be done before, and is in in_progress", []string{
		"api 0.800 = 1 × urgency 0.50 (tk_a3) + 0.5 × expertise 0.500 (tk_a3: skills 1.00, role 0.00, history 0.00) + 0.05 × 1 pending",
	}},
	{"lia", "", "2 tasks are in progress, and 2 may be", []string{
		"site 1.100 = 1 × urgency 0.75 (tk_s1) + 0.5 × expertise 0.500 (tk_s1: skills 1.00, role 0.00, history 0.00) + 0.05 × 2 pending",
	}},
	{"lou", "", "a question of @max to @lou has no answer yet", []string{
		"ops 0.800 = 1 × urgency 0.75 (tk_o2) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
	}},
	{"max", "", "its board has no SOP and no documentation", []string{
		"research 1.050 = 1 × urgency 1.00 (tk_r1) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
		"ops 0.800 = 1 × urgency 0.75 (tk_o2) + 0.5 × expertise 0.000 (no task is in its line) + 0.05 × 1 pending",
	}},
}

func TestWhoTakesWhatIsAsItWasWorkedOutByHand(t *testing.T) {
	d := readScenario(t)
	minds := map[string]board.Mind{}
	var members []board.Member
	for _, a := range d.Agents {
		minds[a.Handle] = a.Mind
		members = append(members, a.Member)
	}
	for _, want := range takes {
		m := members[slices.IndexFunc(members, func(m board.Member) bool { return m.Handle == want.handle })]
		var done []board.Task
		for _, task := range d.Tasks {
			if task.Status == board.Done && task.AssigneeID == m.Handle {
				done = append(done, task)
			}
		}
		winner, terms := board.Route(m, d.Boards, board.Open(d.Tasks, m.Handle, nil), done, noon)
		var routes []string
		for _, t := range terms {
			routes = append(routes, t.String())
		}
		if diff := cmp.Diff(want.routes, routes); diff != "" {
			t.Errorf("@%s (-want +got):\n%s", want.handle, diff)
		}
		s := board.Scene{Member: m, Mind: minds[m.Handle], Tasks: d.Tasks, Members: members, Minds: minds, Resources: d.Resources, Messages: d.AgentMessages, Now: noon}
		s.Board = d.Boards[slices.IndexFunc(d.Boards, func(b board.Board) bool { return b.ID == winner })]
		task, why := "", []string{}
		for _, c := range s.Candidates() {
			if waits := c.Task.Status.Waits() && c.Task.AssigneeID == ""; c.Drop == "" {
				task, why = c.Task.ID, []string{c.Detail}
				break
			} else if waits && !slices.Contains(why, c.Detail) {
				why = append(why, c.Detail)
			}
		}
		if got := strings.Join(why, "; "); task != want.task || got != want.why {
			t.Errorf("@%s takes %q: %s, want %q: %s", want.handle, task, got, want.task, want.why)
		}
		if i := slices.IndexFunc(d.Tasks, func(t board.Task) bool { return t.ID == task }); i >= 0 {
			d.Tasks[i].Status, d.Tasks[i].AssigneeID, d.Tasks[i].ExecutionStatus = board.InProgress, m.Handle, board.ExecutionRunning
		}
	}
}

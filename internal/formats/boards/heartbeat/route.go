package heartbeat

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// mostCandidates bounds the tasks that a decision is explained for.
const mostCandidates = 60

// Refresh looks at all boards and chooses one; again, when somebody else has claimed what this
// agent wanted.
func (s *session) Refresh(ctx context.Context) error {
	if s.claiming != "" { // Nothing of it was written.
		delete(s.held, s.claiming)
		s.claiming, s.holdsMind, s.mind.CurrentTaskID = "", s.heldMind, ""
		s.losses++
	}
	before := s.tasks
	s.tasks, s.outgoing = map[string]taskRow{}, nil
	var tasks []board.Task
	lapsed := map[string]bool{}
	for _, b := range s.boards {
		rows, err := readRows[board.Task](ctx, s, loop.RowQuery{
			Set: board.SetTasks, Scope: b.ID, States: []string{string(board.Backlog), string(board.Todo), string(board.InProgress)}, Limit: mostTasks,
		})
		if err != nil {
			return err
		}
		for _, t := range rows {
			s.tasks[t.row.Key] = taskRow{t.value, t.row}
			tasks = append(tasks, t.value)
			waits := t.value.ExecutionStatus == board.ExecutionApproval
			lapsed[t.row.Key] = t.value.Status == board.InProgress && t.row.RunID == "" && !waits
		}
	}
	for _, key := range s.back {
		if _, there := s.tasks[key]; !there { // Its row says so when the repair is written.
			s.tasks[key] = before[key]
			tasks = append(tasks, before[key].Task)
		}
	}
	done, err := readRows[board.Task](ctx, s, loop.RowQuery{Set: board.SetTasks, Owner: s.handle, States: []string{string(board.Done)}, Newest: true, Limit: mostDone})
	if err != nil {
		return err
	}
	var past []board.Task
	for _, t := range done {
		past = append(past, t.value)
	}
	open := slices.Clone(tasks)
	for i, t := range open {
		if lapsed[t.ID] {
			open[i].Status, open[i].AssigneeID = board.Todo, "" // It waits for anybody.
		} else if t.Status == board.InProgress && t.AssigneeID == s.handle {
			open[i].Status = board.Todo // It waits for an answer, which may be there.
		}
	}
	_, terms := board.Route(s.me, s.boards, open, past, s.v.Now)
	for _, t := range terms {
		s.remark("route", "%s", t)
	}
	s.mind.RoutedAt = board.At(s.v.Now)
	if err := s.chooseBoard(ctx, terms, tasks, lapsed); err != nil {
		return err
	}
	return s.trimLogs(ctx)
}

// chooseBoard turns to the best board on which the agent may begin something, or else to the
// best one. A run for one task, or for the answer that one waits for, turns to the board of that
// task.
func (s *session) chooseBoard(ctx context.Context, terms []board.Terms, tasks []board.Task, lapsed map[string]bool) error {
	s.winner, s.candidates = board.Board{}, nil
	first := *s
	key := s.v.Run.Overrides.Step
	for _, step := range s.steps {
		if step.State == loop.StepWaiting && step.WaitsFor == s.v.Run.Approval {
			key = step.Key
		}
	}
	asked, isAsked := s.tasks[key]
	for _, t := range terms {
		if t.Pending == 0 || isAsked && t.BoardID != asked.BoardID {
			continue
		}
		s.winner = s.boards[slices.IndexFunc(s.boards, func(b board.Board) bool { return b.ID == t.BoardID })]
		if err := s.lookAt(ctx, tasks, lapsed); err != nil {
			return err
		}
		if slices.ContainsFunc(s.candidates, func(c board.Candidate) bool { return c.Drop == "" }) {
			return nil
		}
		if first.winner.ID == "" {
			first = *s
		}
	}
	s.winner, s.candidates, s.resources, s.about = first.winner, first.candidates, first.resources, first.about
	return nil
}

// lookAt lists the tasks of the winning board as the agent sees them, and flags those that
// lack something.
func (s *session) lookAt(ctx context.Context, tasks []board.Task, lapsed map[string]bool) error {
	of := func(t board.Task) bool { return t.BoardID == s.winner.ID }
	var ids, parents []string
	for _, t := range tasks {
		if !of(t) {
			continue
		}
		ids = append(ids, t.ID)
		if _, known := s.tasks[t.ParentTaskID]; t.ParentTaskID != "" && !known {
			parents = append(parents, t.ParentTaskID)
		}
	}
	if len(parents) > 0 {
		found, err := readRows[board.Task](ctx, s, loop.RowQuery{Set: board.SetTasks, Keys: parents})
		if err != nil {
			return err
		}
		for _, p := range found {
			if !slices.ContainsFunc(tasks, func(t board.Task) bool { return t.ID == p.value.ID }) {
				tasks = append(tasks, p.value)
			}
		}
	}
	resources, err := readRows[board.Resource](ctx, s, loop.RowQuery{Set: board.SetResources, Scope: s.winner.ID, Limit: mostResource})
	if err != nil {
		return err
	}
	s.resources, s.about = nil, nil
	for _, r := range resources {
		s.resources = append(s.resources, r.value)
	}
	messages, err := s.v.Mail.About(ctx, ids...)
	if err != nil {
		return err
	}
	minds := map[string]board.Mind{s.handle: s.mind}
	var ordered []string
	for _, d := range messages {
		m := board.FromDelivery(d)
		s.about = append(s.about, m)
		if m.MessageType == board.Order && m.ToAgentID != s.handle {
			ordered = append(ordered, m.ToAgentID)
		}
	}
	members := []board.Member{s.me}
	if len(s.about) > 0 {
		all, err := s.roster()
		if err != nil {
			return err
		}
		members = all.members
		others, err := readRows[board.Mind](ctx, s, loop.RowQuery{Set: board.SetMinds, Keys: append([]string{s.handle}, ordered...)})
		if err != nil {
			return err
		}
		for _, m := range others {
			if m.row.Key == s.handle {
				continue
			}
			if m.row.RunID != "" {
				m.value.LastHeartbeat = board.At(s.v.Now) // It is having one, however long that takes.
			}
			minds[m.row.Key] = m.value
		}
	}
	scene := board.Scene{
		Member: s.me, Mind: s.mind, Board: s.winner, Tasks: tasks, Members: members, Minds: minds, Resources: s.resources, Messages: s.about, Lapsed: lapsed, Now: s.v.Now,
	}
	s.candidates = slices.DeleteFunc(scene.Candidates(), func(c board.Candidate) bool { return !of(c.Task) })
	s.spread()
	return s.flag()
}

// spread lets an agent that was too late begin elsewhere among the first tasks that are worth
// the same to it: else all who wake at once try the same ones in the same order, and each time
// all but one are too late.
func (s *session) spread() {
	if s.losses == 0 {
		return
	}
	at := slices.IndexFunc(s.candidates, func(c board.Candidate) bool { return c.Drop == "" })
	if at < 0 {
		return
	}
	first := s.candidates[at]
	same := s.candidates[at:]
	if end := slices.IndexFunc(same, func(c board.Candidate) bool { return c.Drop != "" || c.Detail != first.Detail }); end >= 0 {
		same = same[:end]
	}
	const most = 10 // doublings
	width := min(len(same), 2<<min(s.losses, most))
	draw := fnv.New32a()
	fmt.Fprint(draw, s.v.Run.ID, s.losses)
	n := int(draw.Sum32() % uint32(width))
	same[0], same[n] = same[n], same[0]
}

// manyAttempts is how many attempts at a task may fill its log.
const manyAttempts = 50

// trimLogs drops the oldest entries of logs that are full, of tasks that this agent has
// attempted many times.
func (s *session) trimLogs(ctx context.Context) error {
	for key := range s.tasks {
		if s.steps[key].Attempts < manyAttempts {
			continue
		}
		newest, err := s.v.Rows.List(ctx, loop.RowQuery{Set: board.SetLog, Scope: key, Newest: true, Limit: 2 * board.MostLog})
		if err != nil {
			return err
		}
		for _, row := range newest[min(len(newest), board.MostLog):] {
			row.Body = nil
			s.outgoing = append(s.outgoing, loop.Change{Kind: loop.ChangeRow, Row: &row})
		}
	}
	return nil
}

// flag asks the lead about tasks that nobody can begin, once for each state of a task.
func (s *session) flag() error {
	for _, c := range s.candidates {
		if c.Drop != loop.ReasonNotReady {
			continue
		}
		all, err := s.roster()
		if err != nil {
			return err
		}
		gaps := board.Flags(c.Task, c.Gaps, all.members)
		digest := board.Digest(c.Task, gaps)
		t := s.tasks[c.Task.ID]
		if len(gaps) == 0 || t.Flagged == digest {
			continue
		}
		t.Flagged = digest
		row := t.row
		row.Body = withFields(row.Body, t.Task, "flagged")
		changes := []loop.Change{{Kind: loop.ChangeRow, Row: &row}}
		words := fmt.Sprintf("%s (%s) cannot be begun: %s. What is missing?", c.Task.Title, c.Task.ID, board.GapWords(gaps))
		asked := board.Escalate(all.team, s.handle, board.MatterNoDocs)[:1]
		if by := c.Task.CreatedBy; by != "" && by != board.Human && by != s.handle && !slices.Contains(asked, by) {
			if _, known := all.team.Find(by); known {
				asked = append(asked, by)
			}
		}
		for _, who := range asked {
			changes = append(changes, s.deliver(board.Message{ID: "ready/" + c.Task.ID + "/" + digest, ToAgentID: who, MessageType: board.Question, TaskID: "", Content: words}))
		}
		s.remark("pre-claim", "%s is not ready: %s; asked %s", c.Task.ID, board.GapWords(gaps), strings.Join(asked, ", "))
		s.outgoing = append(s.outgoing, changes...)
	}
	return nil
}

// deliver is a message of this agent.
func (s *session) deliver(m board.Message) loop.Change {
	m.FromAgentID = s.handle
	d := m.Delivery()
	return loop.Change{Kind: loop.ChangeDeliver, Delivery: &d}
}

// Candidates implements engine.Session: what is to be answered, and then the tasks of the
// winning board.
func (s *session) Candidates(_ engine.Sensed, now time.Time) (list []plan.Candidate) {
	cools, why := s.mind.Cools(now)
	for _, key := range s.replies {
		c := plan.Candidate{Step: s.stepFor(key, loop.StepReply, s.titleOf(key))}
		if cools {
			c.Drop, c.Detail = loop.ReasonCoolOff, why
		}
		list = append(list, c)
	}
	for _, c := range s.candidates[:min(len(s.candidates), mostCandidates)] {
		p := plan.Candidate{Step: s.stepFor(c.Task.ID, loop.StepWork, c.Task.Title), Drop: c.Drop, Detail: c.Detail, TakenBack: true}
		switch {
		case p.Step.State == loop.StepWaiting && c.Drop == loop.ReasonApproval:
			p.Drop, p.Detail = "", "" // Whether it has its answer, the engine knows.
		case s.held[c.Task.ID]:
			p.Drop, p.Detail = "", ""
		case p.Step.State == loop.StepBlocked && s.hasItsAnswer(p.Step):
			p.Step.State = loop.StepOpen
		case p.Step.State == loop.StepDone || p.Step.State == loop.StepDropped || p.Step.State == loop.StepEscalated:
			p.Step = p.Step.AsNew() // Whoever put it back into a column wants it done again.
		}
		list = append(list, p)
	}
	return list
}

// hasItsAnswer reports whether the run that left a step blocked asked a question about it that
// was answered since: it need not wait for anything else.
func (s *session) hasItsAnswer(step loop.Step) bool {
	return slices.ContainsFunc(s.v.Recent, func(run loop.Run) bool {
		return run.N == step.BlockedAt && slices.ContainsFunc(s.about, func(m board.Message) bool {
			return m.MessageType == board.Question && m.TaskID == step.Key && m.Response != "" && strings.HasPrefix(m.ID, run.ID+"/")
		})
	})
}

// stepFor is the row of a step, or a new one.
func (s *session) stepFor(key string, kind loop.StepKind, title string) loop.Step {
	step, known := s.steps[key]
	if !known {
		step = loop.Step{Key: key, Kind: kind, State: loop.StepOpen}
	}
	step.Title = title
	return step
}

// titleOf is what is to be answered, in a line.
func (s *session) titleOf(key string) string {
	if m, is := s.mentions[key]; is {
		return fmt.Sprintf("answer %s: %s", at(m.comment.AuthorID), firstLine(m.comment.Content))
	}
	m := s.inbox[key]
	return fmt.Sprintf("answer the %s of %s: %s", m.MessageType, at(m.FromAgentID), firstLine(m.Content))
}

// longestTitle is how many bytes of a text stand in a title.
const longestTitle = 120

func firstLine(text string) string { return cut(readiness.FirstLine(text), longestTitle) }

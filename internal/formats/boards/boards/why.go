package boards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// TaskWhy says who would take a task, and why everybody else does not, schema
// pawl.task-why/v1.
type TaskWhy struct {
	Schema string `json:"schema"`
	board.Task

	Slug   string        `json:"board"`
	Words  string        `json:"words"`  // the answer in one sentence
	Agents []AgentChoice `json:"agents"` // those of the board, by handle
}

// AgentChoice is what one agent makes of a task.
type AgentChoice struct {
	Handle string         `json:"handle"`
	Status board.Presence `json:"status"`
	Takes  bool           `json:"takes"`            // it is what it would begin next
	Reason loop.Reason    `json:"reason"`           // chosen, or why not
	Detail string         `json:"detail,omitempty"` // the reason in words
	Gaps   []board.Gap    `json:"gaps,omitempty"`   // if the task is not ready for it
	Terms  []board.Terms  `json:"terms"`            // of its boards, the best first
	Routes []string       `json:"routes"`           // the terms as sums
}

// WhyTask says what each agent of a board makes of a task now.
func (s *Service) WhyTask(ctx context.Context, id string) (v TaskWhy, err error) {
	v.Schema = "pawl.task-why/v1"
	err = s.ws.View(ctx, func(r *store.Reader) error {
		t, err := read[board.Task](ctx, r, s.ws.ID, board.SetTasks, id)
		if err != nil {
			return err
		}
		w, err := s.world(ctx, r)
		if err != nil {
			return err
		}
		v.Task, v.Slug, v.Agents = t.value, w.slugOf(t.value.BoardID), []AgentChoice{}
		for _, m := range w.members {
			if m.On(t.value.BoardID) {
				v.Agents = append(v.Agents, w.choice(m, t.value))
			}
		}
		v.Words = v.sentence()
		return nil
	})
	return v, absent(err, "task", id, loop.PawlCommand("task list"))
}

// world is everything that the choices of agents depend on.
type world struct {
	boards    []board.Board
	tasks     []board.Task
	members   []board.Member
	minds     map[string]board.Mind
	resources []board.Resource
	messages  []board.Message
	lapsed    map[string]bool
	now       time.Time
}

func (s *Service) world(ctx context.Context, r *store.Reader) (w world, err error) {
	w = world{lapsed: map[string]bool{}, now: s.ws.Now()}
	if w.boards, err = list[board.Board](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetBoards}); err != nil {
		return w, err
	}
	rows, err := r.Rows(ctx, s.ws.ID, loop.RowQuery{Set: board.SetTasks, Limit: everything})
	if err != nil {
		return w, err
	}
	if w.tasks, err = board.FromRows[board.Task](rows); err != nil {
		return w, err
	}
	var open []string
	for i, row := range rows {
		t := w.tasks[i]
		w.lapsed[t.ID] = t.Status == board.InProgress && t.ClaimedAt != 0 && t.ExecutionStatus != board.ExecutionApproval && row.RunID == ""
		if t.Status.Waits() || t.Status == board.InProgress {
			open = append(open, t.ID)
		}
	}
	if w.members, err = s.members(ctx, r); err != nil {
		return w, err
	}
	if w.minds, err = s.minds(ctx, r); err != nil {
		return w, err
	}
	if w.resources, err = list[board.Resource](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetResources}); err != nil {
		return w, err
	}
	about, err := r.MessagesAbout(ctx, s.ws.ID, open)
	for _, d := range about {
		w.messages = append(w.messages, board.FromDelivery(d))
	}
	return w, err
}

func (w world) slugOf(id string) string {
	for _, b := range w.boards {
		if b.ID == id {
			return b.Slug
		}
	}
	return id
}

// candidates are the tasks of a board as an agent sees them.
func (w world) candidates(m board.Member, boardID string) []board.Candidate {
	i := slices.IndexFunc(w.boards, func(b board.Board) bool { return b.ID == boardID })
	scene := board.Scene{Member: m, Mind: w.minds[m.Handle], Members: w.members, Minds: w.minds, Resources: w.resources, Messages: w.messages, Lapsed: w.lapsed, Now: w.now}
	if i >= 0 {
		scene.Board = w.boards[i]
	}
	for _, t := range w.tasks {
		switch busy := t.Status == board.InProgress && t.AssigneeID == m.Handle && t.ExecutionStatus != board.ExecutionApproval && !w.lapsed[t.ID]; {
		case t.BoardID == boardID:
			scene.Tasks = append(scene.Tasks, t)
		case busy:
			scene.Mind.CurrentTaskID = t.ID
		}
	}
	return scene.Candidates()
}

// choice is what an agent makes of a task: it takes the first that it may of its boards, the
// best first.
func (w world) choice(m board.Member, t board.Task) AgentChoice {
	var done []board.Task
	for _, d := range w.tasks {
		if d.Status == board.Done && d.AssigneeID == m.Handle {
			done = append(done, d)
		}
	}
	c := AgentChoice{Handle: m.Handle, Status: m.Present(w.minds[m.Handle], w.now)}
	_, c.Terms = board.Route(m, w.boards, board.Open(w.tasks, m.Handle, w.lapsed), done, w.now)
	first := ""
	for _, terms := range c.Terms {
		c.Routes = append(c.Routes, terms.String())
		for _, candidate := range w.candidates(m, terms.BoardID) {
			free := candidate.Drop == ""
			if free && first == "" {
				first = candidate.Task.ID
			}
			if candidate.Task.ID != t.ID {
				continue
			}
			c.Reason, c.Detail, c.Takes = candidate.Drop, candidate.Drop.Explain(candidate.Detail), free && first == t.ID
			switch {
			case candidate.Drop == loop.ReasonNotReady:
				c.Gaps = candidate.Gaps
			case c.Takes:
				c.Reason, c.Detail = loop.ReasonChosen, candidate.Detail
			case free:
				c.Reason, c.Detail = loop.ReasonOutranked, first+" goes first"
			}
		}
	}
	return c
}

// sentence is the answer to the question why nobody took the task.
func (v TaskWhy) sentence() string {
	var takers, why []string
	for _, a := range v.Agents {
		if a.Takes {
			takers = append(takers, "@"+a.Handle)
		}
		if detail := strings.ReplaceAll(a.Detail, "@"+a.Handle, "the agent"); !a.Takes && !slices.Contains(why, detail) {
			why = append(why, detail)
		}
	}
	switch {
	case v.Status == board.Done:
		return "it is done"
	case v.Status == board.InProgress && v.AssigneeID != "" && len(takers) == 0:
		return "@" + v.AssigneeID + " works on it"
	case len(takers) > 0:
		return fmt.Sprintf("%s would take it next; whoever has its heartbeat first does", strings.Join(takers, ", "))
	case len(v.Agents) == 0:
		return "no agent works on its board"
	case len(why) == 1:
		return "nobody takes it: " + why[0]
	}
	return "nobody takes it; each agent has its reason"
}

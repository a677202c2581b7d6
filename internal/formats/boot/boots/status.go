package boots

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Status is where the work of a workspace stands, schema pawl.boot-status/v1.
type Status struct {
	Schema      string     `json:"schema"`
	Project     string     `json:"project"`
	Phase       string     `json:"phase"`
	NextIntent  string     `json:"next_intent"`
	LastUpdated *time.Time `json:"last_updated"`
	Errors      int        `json:"errors"` // that STATE.json records

	Next    Next     `json:"next"`
	Tasks   []Task   `json:"tasks"`             // in the order of the file
	Repairs []string `json:"repairs,omitempty"` // that a run would make first

	Last     *Session `json:"last"`             // the newest session of the branch
	Branch   string   `json:"branch"`           // that the memory is on
	Remote   string   `json:"remote,omitempty"` // the branch that it is pushed to; empty: there is no origin
	Unpushed *int     `json:"unpushed"`         // commits that Remote has not, as far as is known here; null: it was never seen
	Waits    []string `json:"waits,omitempty"`  // approvals and questions that are open
	Boot     string   `json:"boot,omitempty"`   // why the schemas of the format are used instead of those of the boot repository
}

// Next is what a run would work on.
type Next struct {
	Task     string      `json:"task,omitempty"` // id; empty: none
	Title    string      `json:"title,omitempty"`
	Reason   loop.Reason `json:"reason"`
	Why      string      `json:"why"`
	Question string      `json:"question,omitempty"` // that would be asked first
	Answers  []string    `json:"answers,omitempty"`  // one of them settles it; none: any text does
}

// Task is a task, and why it is not worked on next.
type Task struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Status   string      `json:"status"`
	Priority string      `json:"priority"`
	Reason   loop.Reason `json:"reason,omitempty"` // empty: it is the next one
	Why      string      `json:"why,omitempty"`
}

// StatusRequest asks what a run would do.
type StatusRequest struct {
	Request string `json:"request,omitempty"` // that the run would have
}

// Status reads the memory as a run would, and writes nothing. Of a memory that no run can
// use the error is a *loop.Fault.
func (s *Service) Status(ctx context.Context, r StatusRequest) (Status, error) {
	link, err := s.readLink()
	if err != nil {
		return Status{}, err
	}
	m, err := s.openMemory(ctx, link)
	if err != nil {
		return Status{}, err
	}
	v := Status{Schema: "pawl.boot-status/v1", Branch: m.branch, Tasks: []Task{}}
	schemas := bootstate.FormatSchemas()
	if contract, err := s.contract(ctx, link.Link); err == nil {
		schemas = contract.Schemas
	} else {
		v.Boot = err.Error()
	}
	memory, repairs, stop := schemas.Recover(m.find(ctx))
	if stop != nil {
		c := Checked{}
		c.stopBy(stop)
		return Status{}, &loop.Fault{
			Exit: c.Exit, What: stop.Path + " cannot be used", Why: stop.Message, Fix: "{1} names each fault with its place", Actions: []loop.Command{loop.PawlCommand("boot check")},
		}
	}
	for _, repair := range repairs {
		v.Repairs = append(v.Repairs, repair.Note)
	}
	found, err := s.ws.Loop(ctx, loop.ProtocolBoot+":"+bootdef.Name)
	if err != nil {
		return v, err
	}
	v.Waits = found.Open
	live := ""
	if found.Last != nil && s.ws.Liveness(*found.Last) == lookup.Running {
		live = found.Last.ID
	}
	memory, _ = schemas.CloseLost(memory, live, s.ws.Now()) // As a run does before it plans.
	v.fill(memory, r.Request, s.ws.Now())
	if v.Last, err = m.lastSession(ctx); err != nil {
		return v, err
	}
	if err := m.countUnpushed(ctx, &v); err != nil {
		return v, err
	}
	return v, nil
}

// fill says what the memory says.
func (v *Status) fill(memory bootstate.Memory, request string, now time.Time) {
	state := memory.State
	v.Project, v.Phase, v.NextIntent, v.Errors = state.Project(), string(state.Phase()), state.NextIntent(), state.ErrorCount()
	v.LastUpdated = shape.Time(state.LastUpdated())
	decision, todo := bootstate.Plan(state, memory.Tasks, request, nil, now)
	v.Next = Next{Task: decision.Task, Reason: decision.Reason, Why: decision.Reason.Explain(decision.Detail)}
	if q := decision.Question; q != nil {
		v.Next.Question, v.Next.Answers = q.Text, q.Answers
	}
	passed := map[string]bootstate.Passed{}
	for _, p := range decision.Passed {
		passed[p.Task] = p
	}
	for _, task := range todo.Tasks() {
		one := Task{ID: task.ID, Title: task.Title, Status: string(task.Status), Priority: string(task.Priority)}
		if p, is := passed[task.ID]; is {
			one.Reason, one.Why = p.Reason, p.Reason.Explain(p.Detail)
		}
		if task.ID == decision.Task {
			v.Next.Title = task.Title
		}
		v.Tasks = append(v.Tasks, one)
	}
}

// countUnpushed compares the branch with what is known of origin. Nothing is asked of it.
func (m memory) countUnpushed(ctx context.Context, v *Status) error {
	if m.branch == "" || m.rev == "" {
		return nil
	}
	if _, err := m.ws.Repo.RemoteURL("origin"); err != nil {
		if errors.Is(err, loop.ErrNotFound) {
			return nil // There is nowhere to push to.
		}
		return err
	}
	v.Remote = "origin/" + m.branch
	remote := "refs/remotes/" + v.Remote
	tips, err := m.ws.Repo.Tips(ctx, remote)
	if err != nil || tips[remote] == "" {
		return err
	}
	n, err := m.ws.Repo.Ahead(ctx, m.rev, tips[remote])
	v.Unpushed = &n
	return err
}

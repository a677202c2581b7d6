package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Landing is a yes to a landing that has not come about.
type Landing struct {
	Approval string       `json:"approval"`
	Action   loop.Action  `json:"action"`
	By       string       `json:"by"`                // who said yes
	Tries    int          `json:"tries"`             // since a person asked for it
	Most     int          `json:"most"`              // tries before it rests until a person asks for it
	Failure  string       `json:"failure,omitempty"` // why the last try did not land
	Rests    bool         `json:"rests,omitempty"`   // until a person asks for it
	Next     *time.Time   `json:"next,omitempty"`    // before which no run of the loop tries it; nil: the next one does, or it rests
	Expires  time.Time    `json:"expires"`           // until when the yes is valid
	Land     loop.Command `json:"land"`              // tries it at once
}

// landingOf is how a yes to a landing stands that has not come about; asked is the run whose
// proposal it is.
func landingOf(a loop.Approval, asked string, now time.Time) *Landing {
	if a.State != loop.ApprovalLanding || !a.Pending(now) {
		return nil
	}
	next := plan.NextLanding(a, now)
	return &Landing{
		Approval: a.ID, Action: a.Action, By: a.By, Tries: a.Tries, Most: plan.MaxLandings, Failure: a.Failure, Expires: a.Expires,
		Rests: next.Move == plan.LandingRest, Next: shape.Time(next.At), Land: engine.LandAgain(a, asked),
	}
}

// String says how it stands.
func (l Landing) String() string {
	text := fmt.Sprintf("%s said yes to %s, and it has not landed", l.By, l.Action.Landing())
	if l.Failure != "" {
		text += ": " + l.Failure
	}
	at := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
	switch {
	case l.Rests:
		text += fmt.Sprintf("; it was tried %d times, and rests until a person asks for it", l.Tries)
	case l.Next != nil:
		text += fmt.Sprintf("; the first run after %s tries it again (%d of %d)", at(*l.Next), l.Tries+1, l.Most)
	default:
		text += fmt.Sprintf("; the next run tries it (%d of %d)", l.Tries+1, l.Most)
	}
	return text + "; the yes is valid until " + at(l.Expires)
}

// advice is what a person can do about it.
func (l Landing) advice() loop.Advice {
	return loop.Advise("nothing has landed, and the yes stays valid; once the cause is gone: {1}; to take it back: {2}", l.Land, loop.PawlCommand("reject", l.Approval))
}

// approvalOf is how the approval of a run stands, with what does again what it
// allowed, if that is a landing that the run was fired for.
func (s *Service) approvalOf(ctx context.Context, r *store.Reader, run loop.Run, name string) (state loop.ApprovalState, again *loop.Command, landing *Landing, err error) {
	id := run.Approval
	if fired := engine.AnswerOf(run); id == "" {
		id = fired
	}
	if id == "" {
		return "", nil, nil, nil
	}
	a, err := r.Approval(ctx, id)
	if err != nil || a.Action.Kind == loop.ActionCommand || a.Action.Kind == loop.ActionQuestion {
		return a.State, nil, nil, err
	}
	asked, err := r.Run(ctx, a.RunID)
	if err != nil {
		return a.State, nil, nil, err
	}
	of := fmt.Sprintf("%s#%d", name, asked.N)
	if a.RunID != run.ID {
		again = new(engine.LandAgain(a, of))
	}
	return a.State, again, landingOf(a, of, s.ws.Now()), nil
}

// landingsOf are the yeses of a loop whose landing has not come about.
func (s *Service) landingsOf(ctx context.Context, r *store.Reader, l loop.Loop) (landings []Landing, err error) {
	list, err := r.Approvals(ctx, l.ID, loop.ApprovalLanding)
	for _, a := range list {
		asked, err := r.Run(ctx, a.RunID)
		if err != nil {
			return nil, err
		}
		if left := landingOf(a, fmt.Sprintf("%s#%d", l.Name, asked.N), s.ws.Now()); left != nil {
			landings = append(landings, *left)
		}
	}
	return landings, err
}

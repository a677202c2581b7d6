package control

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/store"
)

// RestView is what keeps a loop from acting, without anybody having paused it.
type RestView struct {
	Reason loop.Reason `json:"reason"`
	Until  *time.Time  `json:"until"` // null: until somebody resumes the loop
	Detail string      `json:"detail"`
}

// subjects are what a hold of the loop may stand under: the loop, and the account
// that its agent acts with, as far as that is known here.
func (s *Service) subjects(ctx context.Context, l loopState) []string {
	subjects := []string{engine.LoopHold(l.LoopID())}
	d := l.usable()
	if d.Agent == "" && d.AgentCommand == "" && l.last != nil {
		d.Agent = l.last.Agent // A run named one.
	}
	actor, err := s.Actor(ctx, d)
	if err != nil {
		return subjects
	}
	cred, err := actor.Credential(s.Environ, proc.Variable(s.Environ, "HOME"), s.Now())
	if err == nil && cred.Account != "" {
		subjects = append(subjects, engine.AccountHold(cred.Account))
	}
	return subjects
}

// Listing lists the workspace's loops as Loops does, each with what keeps it from
// acting.
func (s *Service) Listing(ctx context.Context) ([]LoopRow, error) {
	list, err := s.allStates(ctx)
	if err != nil {
		return nil, err
	}
	rows := s.rowsOf(list)
	return rows, s.rests(ctx, list, rows)
}

// rests fills in the rows what keeps each of the loops from acting now. Who acts in
// which loop is only looked up where something rests at all.
func (s *Service) rests(ctx context.Context, list []loopState, rows []LoopRow) error {
	resting := map[string]loop.Hold{}
	err := s.view(ctx, func(r *store.Reader) error {
		holds, err := r.Holds(ctx)
		for _, h := range holds {
			if plan.Holds(h, s.Now()) {
				resting[h.Subject] = h
			}
		}
		return err
	})
	if absent(err) {
		return nil
	}
	if err != nil || len(resting) == 0 {
		return err
	}
	for i := range rows {
		for _, subject := range s.subjects(ctx, list[i]) {
			if h, ok := resting[subject]; ok && rows[i].Rests == nil {
				rows[i].Rests = &RestView{Reason: h.Reason, Until: timeOrNil(h.Until), Detail: h.Detail}
			}
		}
	}
	return nil
}

// drift says whether the loop's newest run used far more than those before it.
func (s *Service) drift(ctx context.Context, loopID string) (words string, err error) {
	err = s.view(ctx, func(r *store.Reader) error {
		history, err := r.History(ctx, loopID, plan.Past+1)
		if err != nil || len(history) == 0 {
			return err
		}
		_, words = plan.Drift(history[1:], history[0])
		return nil
	})
	if absent(err) {
		return "", nil
	}
	return words, err
}

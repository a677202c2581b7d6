package loops

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Rest says why a loop does not act although nobody paused it.
type Rest struct {
	Reason loop.Reason `json:"reason"`
	Until  *time.Time  `json:"until"` // null: until somebody resumes the loop
	Detail string      `json:"detail"`
}

// holdSubjects returns the subjects whose holds keep the loop from acting: the loop,
// and the account of its agent, if that is known.
func (s *Service) holdSubjects(ctx context.Context, l lookup.Loop) []string {
	subjects := []string{engine.LoopHold(l.LoopID())}
	d := l.Usable()
	if d.Agent == "" && d.AgentCommand == "" && l.Last != nil {
		d.Agent = l.Last.Agent // The run was started with --agent.
	}
	actor, err := s.ws.Actor(ctx, d)
	if err != nil {
		return subjects
	}
	cred, err := actor.FindCredential(s.Environ, proc.LookupVariable(s.Environ, "HOME"), s.ws.Now())
	if err == nil && cred.Account != "" {
		subjects = append(subjects, engine.AccountHold(cred.Account))
	}
	return subjects
}

// addRests adds to the rows why loops do not act now. It looks up the agents of loops
// only if there is any hold.
func (s *Service) addRests(ctx context.Context, list []lookup.Loop, rows []Row) error {
	resting := map[string]loop.Hold{}
	err := s.ws.View(ctx, func(r *store.Reader) error {
		holds, err := r.Holds(ctx)
		for _, h := range holds {
			if plan.HoldActive(h, s.ws.Now()) {
				resting[h.Subject] = h
			}
		}
		return err
	})
	if lookup.Absent(err) {
		return nil
	}
	if err != nil || len(resting) == 0 {
		return err
	}
	for i := range rows {
		for _, subject := range s.holdSubjects(ctx, list[i]) {
			if h, ok := resting[subject]; ok && rows[i].Rests == nil {
				rows[i].Rests = &Rest{Reason: h.Reason, Until: shape.Time(h.Until), Detail: h.Detail}
			}
		}
	}
	return nil
}

package runs

import (
	"context"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// checkAccepted refuses an agent to fire a definition that confines nothing, or that no person
// has accepted as it is: a file that an agent has written itself would otherwise run on this
// machine. What fires by itself does not come here.
func (s *Service) checkAccepted(ctx context.Context, by loop.Actor, e catalog.Entry) error {
	d := e.Definition.WithDefaults()
	what := by.Who + " may not run " + e.Name
	if sandbox.Tier(d.Sandbox) == sandbox.None {
		f := &loop.Fault{Exit: loop.ExitRefused, What: what, Why: "sandbox: none confines nothing, and only a person runs such a loop", Err: loop.ErrUnconfined}
		return f.WithAdvice(loop.Advise("set sandbox: full; or let a person run it: {1}", loop.PawlCommand("run", e.Name)))
	}
	accepted := false
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		accepted, err = r.IsAccepted(ctx, e.LoopID(), d.Digest())
		return err
	})
	if accepted || err != nil && !lookup.Absent(err) {
		return err
	}
	accept := loop.PawlCommand("run", e.Name)
	if e.File != "" {
		accept = loop.PawlCommand("check", e.Name)
	}
	f := &loop.Fault{Exit: loop.ExitRefused, What: what, Why: "no person has accepted its definition as it is now", Err: loop.ErrUnaccepted}
	return f.WithAdvice(loop.Advise("let a person read the definition and accept it: {1}", accept))
}

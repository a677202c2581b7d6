package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Start carries out a prepared run and blocks until it has ended. A loop whose
// only goal is that a command passes is not run if it passes already: then the
// view has no id.
func (s *Service) Start(ctx context.Context, p Prepared) (View, error) {
	if goals := s.ws.Formats.Of(p.Target.Loop.Protocol).Goals; goals != nil && goals.IsUntil(p.Target.Definition) && p.Firing.Trigger == triggerManual && p.Firing.Request == "" {
		passes, err := s.gatesPass(ctx, &p)
		if err != nil {
			return View{}, err
		}
		if passes {
			return View{
				Schema: "pawl.run/v1", Loop: p.Target.Loop.Name, Protocol: p.Target.Loop.Protocol, Iterations: []Iteration{},
				Outcome: loop.OutcomeQuiet, Reason: loop.ReasonSensedNothing, Detail: "`" + p.Target.Definition.Verify + "` already passes; nothing to do",
			}, nil
		}
	}
	run, err := s.Engine.Run(ctx, p.Target, p.Firing)
	if err != nil {
		return View{}, err
	}
	// Whoever interrupted the run wants to see how it ended.
	return s.Show(context.WithoutCancel(ctx), run.ID)
}

// Again is the request to work the last step of a run once more, from the same base, with
// what a person tells the agent. A run that worked on nothing is refused with a
// *loop.Fault.
func (s *Service) Again(ctx context.Context, ref, hint string) (StartRequest, error) {
	run, err := s.ws.Run(ctx, ref)
	if err != nil {
		return StartRequest{}, err
	}
	var its []loop.Iteration
	var steps []loop.Step
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		if its, err = r.Iterations(ctx, run.ID); err == nil {
			steps, err = r.Steps(ctx, run.LoopID)
		}
		return err
	})
	if err != nil {
		return StartRequest{}, err
	}
	name, _, _ := strings.Cut(s.ws.RunName(ctx, run), "#")
	for _, format := range s.ws.Formats {
		if format.NoRepeat != nil && run.LoopID == catalog.LoopID(s.ws.ID, format.Name, name) {
			if f := format.NoRepeat(name, run); f != nil {
				return StartRequest{}, f
			}
		}
	}
	if len(its) == 0 || run.BaseCommit == "" {
		f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("rerun %s#%d", name, run.N), Why: "it worked on no step, so that there is nothing to do again"}
		return StartRequest{}, f.WithAdvice(loop.Advise("run the loop: {1}", loop.PawlCommand("run", name)))
	}
	r := StartRequest{Loop: name, Request: run.Request, Overrides: run.Overrides, Repeats: true}
	r.Overrides.Base, r.Overrides.Hint = run.BaseCommit, hint
	if run.Request != "" {
		r.Overrides.RequestBy = cmp.Or(run.Requester(), loop.RoleTrigger) // Whoever repeats it has not written it.
	}
	last := its[len(its)-1].StepID
	for _, step := range steps {
		if step.ID == last {
			r.Overrides.Step = step.Key
		}
	}
	return r, nil
}

// Fire queues a prepared run for whoever executes the runs of this node, and returns
// its row.
func (s *Service) Fire(ctx context.Context, p Prepared) (run loop.Run, err error) {
	t := p.Target
	if err := s.Engine.Admit(t, p.Firing.Overrides); err != nil {
		return run, err
	}
	for {
		err = s.ws.Store.Update(ctx, func(tx *store.Tx) (err error) {
			if run, err = s.Engine.Fire(ctx, tx, t, p.Firing); err != nil || s.Hint == nil {
				return err
			}
			return s.Hint(ctx, tx, []loop.Run{run})
		})
		if !errors.Is(err, engine.ErrNewLoop) {
			return run, err
		}
		if t, err = s.Engine.Introduce(ctx, t); err != nil {
			return run, err
		}
	}
}

// gatesPass tries the gates on the base, and keeps what they said for the run.
func (s *Service) gatesPass(ctx context.Context, p *Prepared) (bool, error) {
	if all, err := s.ws.Paused(ctx); !all.IsZero() || err != nil || !engine.Switch(s.ws.Root, p.Target.Loop.Name).IsZero() {
		return false, err // The engine says so.
	}
	t := p.Target
	t.Definition = p.Firing.Overrides.Apply(t.Definition)
	base, err := s.ws.Repo.Base(ctx, t.Definition.Base)
	if err != nil {
		return false, err
	}
	defer waiting.For(ctx, "the command to be tried on the base", nil)()
	results, err := s.Engine.TryGates(ctx, t, nil)
	if err != nil {
		return false, err
	}
	p.Firing.Tried = engine.Tried{Commit: base.Commit, Gates: results}
	return !slices.ContainsFunc(results, func(g loop.GateResult) bool { return !g.Pass }), nil
}

// Recover concludes what dead processes left in this workspace, and closes
// approvals whose time has run out. Every verb that writes does so first.
func (s *Service) Recover(ctx context.Context) ([]engine.Recovered, error) {
	var loops []loop.Loop
	var overdue bool
	defs := map[string]loop.Definition{}
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		if overdue, err = r.OverdueApprovals(ctx, s.ws.Now()); err != nil {
			return err
		}
		if loops, err = r.UnfinishedLoops(ctx, s.ws.ID, s.ws.Node.ID); err != nil {
			return err
		}
		for _, l := range loops {
			if l.Definition == "" {
				continue
			}
			if defs[l.ID], err = r.Definition(ctx, l.Definition); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found []engine.Recovered
	var errs []error
	for _, l := range loops {
		t := s.ws.Target(defs[l.ID])
		if t.Loop = l; s.ws.Formats.Protocol(l.Protocol) == nil {
			continue
		}
		t.Protocol = s.ws.Formats.Protocol(l.Protocol)
		paid, err := s.Engine.FinishOwed(ctx, t)
		found = append(found, paid...)
		var rec *engine.Recovered
		if err == nil {
			rec, err = s.Engine.Recover(ctx, t)
		}
		if err != nil {
			// One loop whose files cannot be written is no reason to leave the others.
			errs = append(errs, engine.RecoverFault(l.Name, err))
		}
		if rec != nil {
			found = append(found, *rec)
		}
	}
	if overdue { // The database's clock has the last word.
		errs = append(errs, s.ws.Store.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.ExpireApprovals(ctx)
			return err
		}))
	}
	errs = append(errs, s.Engine.Sweep(ctx, s.ws.Repo))
	return found, errors.Join(errs...)
}

// Live reports whether a run of the workspace has a holder, dead or alive.
func (s *Service) Live(ctx context.Context) (live bool, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) error {
		loops, err := r.UnfinishedLoops(ctx, s.ws.ID, s.ws.Node.ID)
		for _, l := range loops {
			_, liveErr := r.Live(ctx, l.ID)
			live = live || liveErr == nil
			if liveErr != nil && !lookup.Absent(liveErr) {
				return liveErr
			}
		}
		return err
	})
	if lookup.Absent(err) {
		return false, nil
	}
	return live, err
}

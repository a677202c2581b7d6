package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// haltGap is the time between two looks at runs that are to stop.
	haltGap = 20 * time.Millisecond
	// keepWait is how long runs are waited for of which no program is left, and which still
	// keep their work, unless Deps say another time.
	keepWait = time.Second
)

// Halted is what became of the runs that a kill switch stops.
type Halted struct {
	Stopped []loop.HeldRun // that have ended, or of which no program is left
	Silent  []loop.HeldRun // whose holders have not answered
}

// Halting waits for runs that a kill switch stops.
type Halting struct {
	// Held lists those that somebody holds at the moment.
	Held func(context.Context) ([]loop.HeldRun, error)
	// HolderState looks at the process behind a holder. Conclude ends a run whose holder
	// is of this host and will never do so itself.
	HolderState func(loop.Holder) loop.HolderState
	Conclude    func(context.Context, loop.HeldRun) error

	Now  func() time.Time
	Wait time.Duration // 0: 10 s
	Keep time.Duration // of it for runs of which no program is left, and which still keep their work; 0: 1 s
}

// Run blocks until each holder has answered: its run has ended, or it has said that no
// program of the run is left. It does not wait for a holder elsewhere whose lease is
// over, and for nobody for longer than its time.
func (h Halting) Run(ctx context.Context) (Halted, error) {
	caller, began := ctx, h.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Wait, stopWait))
	defer cancel()
	var at standing
	defer waiting.For(ctx, "the runs to end", nil)()
	tick := time.NewTicker(haltGap)
	defer tick.Stop()
	for look := caller; ; look = ctx { // The first look is always taken.
		err := h.look(look, &at)
		if err != nil && look.Err() == nil {
			return Halted{}, err
		}
		if err == nil && len(at.open) == 0 && (at.keeping == 0 || h.Now().Sub(began) >= cmp.Or(h.Keep, keepWait)) {
			return at.halted(), nil
		}
		select {
		case <-ctx.Done():
			if err := context.Cause(caller); err != nil {
				return Halted{}, fmt.Errorf("wait for the runs to end: %w", err)
			}
			return at.halted(), nil
		case <-tick.C:
		}
	}
}

// standing is how far the runs are, as they were last seen.
type standing struct {
	all     []loop.HeldRun // every run that was seen
	open    []loop.HeldRun // whose holders may still answer
	lost    []loop.HeldRun // whose holders are elsewhere, and their leases over
	keeping int            // so many have no programs any more and have not ended
}

func (h Halting) look(ctx context.Context, at *standing) error {
	held, err := h.Held(ctx)
	if err != nil {
		return err
	}
	at.open, at.lost, at.keeping = nil, nil, 0
	for _, r := range held {
		if !slices.ContainsFunc(at.all, func(seen loop.HeldRun) bool { return seen.ID == r.ID }) {
			at.all = append(at.all, r)
		}
		switch state := h.HolderState(r.Holder); {
		case state == loop.HolderDead, state == loop.HolderStopped:
			at.open = append(at.open, r)
			if err := h.Conclude(ctx, r); err != nil {
				return err
			}
		case r.Stopped:
			at.keeping++
		case state == loop.HolderElsewhere && r.Left <= 0:
			at.lost = append(at.lost, r)
		default:
			at.open = append(at.open, r)
		}
	}
	return nil
}

func (at standing) halted() Halted {
	h := Halted{Silent: append(slices.Clone(at.open), at.lost...)}
	for _, r := range at.all {
		if !slices.ContainsFunc(h.Silent, func(silent loop.HeldRun) bool { return silent.ID == r.ID }) {
			h.Stopped = append(h.Stopped, r)
		}
	}
	return h
}

// WaitHalted waits for the runs of loops, or of the whole workspace if no id is given, that
// a kill switch stops. A holder of this host that died, or is stopped, is dealt with as
// by WaitEnded. Those of a loop are waited for until their work is kept.
func (s *Service) WaitHalted(ctx context.Context, loopIDs ...string) (Halted, error) {
	keep := s.KeepWait
	if len(loopIDs) > 0 {
		keep = cmp.Or(s.StopWait, stopWait)
	}
	return Halting{
		Held: func(ctx context.Context) (list []loop.HeldRun, err error) {
			if len(loopIDs) == 0 {
				return s.ws.Store.HeldRuns(ctx, s.ws.ID, "")
			}
			for _, id := range loopIDs {
				held, err := s.ws.Store.HeldRuns(ctx, s.ws.ID, id)
				if err != nil {
					return nil, err
				}
				list = append(list, held...)
			}
			return list, nil
		},
		HolderState: s.ws.HolderState,
		Conclude:    s.ConcludeHeld,
		Now:         s.ws.Now, Wait: s.StopWait, Keep: keep,
	}.Run(ctx)
}

// ConcludeHeld concludes a run of the workspace if its holder, of this host, will never
// do so.
func (s *Service) ConcludeHeld(ctx context.Context, r loop.HeldRun) error {
	_, err := s.readOrConclude(ctx, r.ID)
	return err
}

// SilentFault says of runs whose holders did not answer a kill switch what is known of
// them and what a person can do.
func SilentFault(silent []loop.HeldRun) error {
	if len(silent) == 0 {
		return nil
	}
	var names, whys []string
	for _, r := range silent {
		name := fmt.Sprintf("%s#%d", r.Loop, r.N)
		names = append(names, name)
		why := fmt.Sprintf("%s holds %s in phase %s", r.Holder, name, r.Phase)
		if r.Node != "" {
			why += " on node " + r.Node
		}
		whys = append(whys, why+", and was last heard of at "+r.Heard.UTC().Format(time.RFC3339))
	}
	what := "run " + names[0] + " did not stop"
	if len(names) > 1 {
		what = fmt.Sprintf("%d runs did not stop: %s", len(names), strings.Join(names, ", "))
	}
	first := silent[0]
	f := &loop.Fault{
		Exit: loop.ExitHeld, What: what, Why: strings.Join(whys, "; "),
		Err: &loop.HeldError{Run: names[0], Holder: first.Holder},
	}
	until := first.Heard.Add(first.Lease).UTC().Format(time.RFC3339)
	return f.WithAdvice(loop.Advise(fmt.Sprintf(
		"the switch is set, and whoever sees it stops; wait for it, or end the process there (kill -KILL %d on %s) and then run {1}; without a sign of life it loses the run at %s",
		first.Holder.PID, first.Holder.Host, until), loop.PawlCommand("recover")))
}

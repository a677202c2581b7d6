package notify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func (r *rig) late(titles ...string) {
	r.t.Helper()
	for i := range 2 { // The second look finds nothing new.
		if err := TellLate(r.t.Context(), r.store, i == 0); err != nil {
			r.t.Fatal(err)
		}
	}
	r.want(titles...)
}

func TestALoopThatStopsComingIsToldOnceAndOnceThatItComesAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		d := loop.Definition{Name: "ci", Cadence: "1h"}.WithDefaults()
		due := r.clock.now().Add(time.Hour)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.AddDefinition(ctx, r.loop.ID, d), tx.SaveRegistration(ctx, r.loop.ID, loop.Registration{Source: "s", Good: d.Digest(), Planned: due, Due: due}))
		})
		r.clock.add(2 * time.Hour)
		r.late()
		r.clock.add(3 * time.Minute)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SetSwitch(ctx, loop.Actor{Who: "ann"}, "", "")
			return err
		})
		r.late() // It is paused.
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ClearSwitch(ctx, "")
			return err
		})
		r.late("ci is late")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.PlanNext(ctx, r.loop.ID, due.Add(2*time.Hour), due.Add(2*time.Hour), due.Add(time.Hour))
		})
		r.late("ci is late", "ci is back")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			l, err := tx.Number(ctx, "ws", r.loop.Protocol, r.loop.Name)
			if err != nil {
				return err
			}
			_, err = tx.Fire(ctx, loop.Run{ID: "run_q", LoopID: l.ID, N: l.LastN, Key: "q", Trigger: "schedule", Definition: "d"})
			return err
		})
		r.late("ci is late", "ci is back")
		r.clock.add(16 * time.Minute) // Nobody takes up the run.
		r.late("ci is late", "ci is back", "ci is late")
	})
}

func TestALoopWhoseDefinitionBrokeIsToldWhenItDoesNotCome(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		d := loop.Definition{Name: "ci", Cadence: "1h"}.WithDefaults()
		reg := loop.Registration{Source: "s", Good: d.Digest(), Planned: r.clock.now().Add(time.Hour), Due: r.clock.now().Add(time.Hour)}
		register := func(broken string) {
			reg.Broken = broken
			r.update(func(ctx context.Context, tx *store.Tx) error {
				return errors.Join(tx.AddDefinition(ctx, r.loop.ID, d), tx.SaveRegistration(ctx, r.loop.ID, reg))
			})
		}
		register(".loops/ci/loop.config.yaml:3:1: cadence: soon")
		r.clock.add(time.Hour + 3*time.Minute)
		r.late() // Mended within the hour, it comes at the next time.
		r.clock.add(time.Hour)
		r.late("ci is late")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			lasting, err := tx.LastingNotices(ctx)
			if err == nil && !strings.HasSuffix(lasting[0].Body, "its definition broke. .loops/ci/loop.config.yaml:3:1: cadence: soon") {
				r.t.Errorf("it says %q", lasting[0].Body)
			}
			return err
		})
		register("")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.PlanNext(ctx, r.loop.ID, reg.Due.Add(2*time.Hour), reg.Due.Add(2*time.Hour), r.clock.now())
		})
		r.late("ci is late", "ci is back")
	})
}

func TestALoopThatWaitsBecauseItsClockWasSetBackIsTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		d := loop.Definition{Name: "ci", Cadence: "1h"}.WithDefaults()
		ticked := r.clock.now().Add(168 * time.Hour)
		due := ticked.Add(time.Hour)
		r.clock.add(168*time.Hour + time.Minute)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.AddDefinition(ctx, r.loop.ID, d), tx.SaveRegistration(ctx, r.loop.ID, loop.Registration{Source: "s", Good: d.Digest(), Planned: due, Due: due}),
				tx.PlanNext(ctx, r.loop.ID, due, due, ticked))
		})
		run := r.end(loop.OutcomeQuiet, "", "")
		r.late()
		r.clock.add(-time.Hour) // Its next time is the second from now.
		r.late()
		r.clock.add(-167*time.Hour - time.Minute)
		if err := TellLate(r.t.Context(), r.store, false); err != nil {
			r.t.Fatal(err)
		}
		r.want() // Nobody has looked for it.
		r.late("ci is late")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			lasting, err := tx.LastingNotices(ctx)
			const says = "The clock of the store was set back: it comes at 2026-12-07T13:00:00Z, which was planned before, and not at 2026-11-30T13:00:00Z. If the clock is wrong now, set it right."
			if err == nil && lasting[0].Body != says {
				r.t.Errorf("it says %q", lasting[0].Body)
			}
			return err
		})
		r.clock.add(168 * time.Hour)
		r.late("ci is late", "ci is back")
		// A run that is dated after the clock was set back hides nothing.
		r.clock.add(-2 * time.Hour)
		since := r.clock.now()
		r.update(func(ctx context.Context, tx *store.Tx) error {
			next := since.Add(time.Minute)
			return tx.PlanNext(ctx, r.loop.ID, next, next, since)
		})
		r.clock.add(2*time.Hour + 30*time.Second)
		if !r.clock.now().Before(run.Created) {
			r.t.Fatalf("the run was fired at %s, now is %s", run.Created, r.clock.now())
		}
		r.late("ci is late", "ci is back", "ci is late")
	})
}

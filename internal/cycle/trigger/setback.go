package trigger

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// mostSetBack is how many loops one call of PlanAnew looks at.
const mostSetBack = 1000

// PlanAnew plans loops of all nodes anew that wait because the clock was set back, as far as
// the ledger does not have their earlier times: no planned time fires twice. It returns them
// as they are planned now. It reads all loops of the store.
func (t *Trigger) PlanAnew(ctx context.Context) (anew []loop.Loop, err error) {
	var ids []string
	err = t.Store.View(ctx, func(r *store.Reader) error {
		list, err := r.LoopsSetBack(ctx, t.Store.Now(), mostSetBack)
		ids = nil
		for _, l := range list {
			ids = append(ids, l.ID)
		}
		return err
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	slices.Sort(ids)
	err = t.Store.Update(ctx, func(tx *store.Tx) error {
		anew = nil
		locked, err := tx.LockLoops(ctx, ids...)
		if err != nil {
			return err
		}
		for _, l := range locked {
			d, err := tx.Definition(ctx, l.Registered.Good)
			if err != nil {
				return err
			}
			if _, waits := schedule.SetBack(d, l, tx.Now()); !waits {
				continue
			}
			after := tx.Now()
			if l.Ticked.After(after) {
				after = l.Ticked
			}
			next, err := schedule.Next(d, l.Created, after)
			if err != nil {
				return err
			}
			if !next.Planned.Before(l.Registered.Planned) {
				continue
			}
			if err := tx.PlanNext(ctx, l.ID, next.Planned, next.Due, l.Ticked); err != nil {
				return err
			}
			l.Registered.Planned, l.Registered.Due = next.Planned, next.Due
			anew = append(anew, l)
		}
		return nil
	})
	return anew, err
}

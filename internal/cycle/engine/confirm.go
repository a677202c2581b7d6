package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// afterConfirm is between the last question and the step that it is about.
var afterConfirm = fault.New("engine.effect.confirm.after")

// confirmEffect is asked by every kind of effect right before the step that cannot be
// taken back. A process may have been stopped for a long time before it gets
// here: the run may have another holder by now (ErrLeaseLost), or the kill switch
// may be set (ErrPaused). After it only a stop of this very process can come
// between, and whoever takes the run ends a stopped process first.
func (h *heldRun) confirmEffect(ctx context.Context) error {
	if sw := h.switchFile(); !sw.IsZero() {
		return &loop.PausedError{By: sw}
	}
	return h.confirmHold(ctx, true)
}

// confirmAccount is confirmEffect for an effect that no switch keeps from happening.
func (h *heldRun) confirmAccount(ctx context.Context) error { return h.confirmHold(ctx, false) }

func (h *heldRun) confirmHold(ctx context.Context, heedsSwitch bool) error {
	var asked store.Asked
	err := h.Store.View(ctx, func(r *store.Reader) (err error) {
		asked, err = r.Asked(ctx, h.run.ID)
		return err
	})
	switch {
	case err != nil:
		return err
	case asked.Fence != h.run.Fence:
		return loop.ErrLeaseLost
	case heedsSwitch && asked.Switch != "":
		return &loop.PausedError{By: loop.KillSwitch{Scope: asked.Switch}}
	case asked.Lease < h.Store.Lease()/2: // It must not lapse before the step is taken.
		err := h.Store.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Extend(ctx, h.run.ID, h.run.Fence)
			return err
		})
		if err != nil {
			return err
		}
	}
	return afterConfirm.Hit(ctx)
}

// effectLock is the file of the git directory that is locked while effects of a
// run are applied, and while a run is taken from its holder.
func effectLock(repo *git.Repo, runID string) string {
	return filepath.Join(repo.GitDir, "pawl-effects-"+runID)
}

// acquire keeps every other process of this host from concluding the run
// until it ends here. If another has it already, it is taking the run over.
func (o *outbox) acquire() error {
	if o.lock != nil {
		return nil
	}
	f, err := flock.Try(effectLock(o.target.Repo, o.run.ID))
	if errors.Is(err, flock.ErrHeld) {
		return fmt.Errorf("%w: another process concludes run %s", loop.ErrLeaseLost, o.run.ID)
	}
	if err != nil {
		return fmt.Errorf("lock the effects of run %s: %w", o.run.ID, err)
	}
	o.lock = f
	return nil
}

// release removes the file while it is still locked, so that nothing is
// left of a run that has ended.
func (o *outbox) release() error {
	if o.lock == nil {
		return nil
	}
	err := errors.Join(os.Remove(o.lock.Name()), o.lock.Close())
	o.lock = nil
	return err
}

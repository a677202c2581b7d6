package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// labelGap is the time between two questions for the label while a run works.
const labelGap = time.Minute

// ErrNoCodeHost means that a repository has no code host that could be asked for a
// label.
var ErrNoCodeHost = errors.New("origin is not the address of a repository on a code host")

// askLabel asks the code host for the label that pauses all loops, if the
// definition names it. A label that cannot be asked stops the loop at L3 only, and is a
// warning below.
func (e *Engine) askLabel(ctx context.Context, t Target) (sw loop.KillSwitch, warning string) {
	if e.Label == nil || !t.Definition.NamesLabel() {
		return sw, ""
	}
	on, err := e.Label(ctx, t.Repo)
	switch {
	case on != "":
		return loop.KillSwitch{Label: on}, ""
	case err == nil, errors.Is(err, ErrNoCodeHost):
		return sw, ""
	case t.Definition.Tier == loop.TierUnattended:
		return loop.KillSwitch{Unread: err.Error()}, ""
	}
	return sw, fmt.Sprintf("the label %s cannot be asked for, and does not stop this run: %s", loop.PauseLabel, err)
}

// labelEnding is an ending if the label stops the run.
func (h *heldRun) labelEnding(ctx context.Context) *ending {
	sw, _ := h.askLabel(ctx, h.target)
	return pausedBy(sw)
}

// watchLabel asks for the label while the run works, and ends ctx with it. The
// second value stops that.
func (h *heldRun) watchLabel(ctx context.Context) (context.Context, func()) {
	if h.Label == nil || !h.def.NamesLabel() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(h.LabelGap)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if end := h.labelEnding(ctx); end != nil && ctx.Err() == nil {
					cancel(&stopError{*end})
				}
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}

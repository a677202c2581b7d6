package compose

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

// Verbs are what an operator can do in one workspace.
type Verbs struct {
	*control.Service
}

// Verbs returns the verbs for the repository that contains dir.
func (d *Parts) Verbs(ctx context.Context, dir string) (*Verbs, error) {
	return verbs(ctx, d.deps, dir)
}

// WithoutStore returns the verbs that files are enough for, for the repository
// that contains dir: Pause and Kill set the kill switch by its file.
func WithoutStore(ctx context.Context, dir string, environ []string, now func() time.Time) (*Verbs, error) {
	elsewhere := func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }
	return verbs(ctx, control.Deps{Now: now, Environ: environ, HolderState: elsewhere}, dir)
}

func verbs(ctx context.Context, d control.Deps, dir string) (*Verbs, error) {
	s, err := control.New(ctx, d, dir)
	if err != nil {
		return nil, err
	}
	return &Verbs{Service: s}, nil
}

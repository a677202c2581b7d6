package git

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pawl-run/pawl/internal/git/object"
)

// changedPath is one path that differs between two commits. An empty id means that
// the path is not there.
type changedPath struct {
	path     string
	old, now object.Entry
}

// changedPaths lists what differs between two trees or commits, sorted by path. A
// path that no checkout may hold is an error.
func (r *Repo) changedPaths(ctx context.Context, from, to string) (changed []changedPath, err error) {
	for _, id := range []string{from, to} {
		if err := r.Format.Check(id); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
	}
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	found, err := blobs.Differ(from, to, math.MaxInt, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range found.Paths {
		if err := object.CheckPath(d.Path); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
		c := changedPath{path: d.Path, old: d.Old, now: d.New}
		for _, side := range []*object.Entry{&c.old, &c.now} {
			if side.ID != "" {
				*side = object.Entry{Path: d.Path, Mode: object.PlainMode(side.Mode), ID: side.ID}
			}
		}
		changed = append(changed, c)
	}
	return changed, nil
}

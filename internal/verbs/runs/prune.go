package runs

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Pruned says which snapshots were removed, schema pawl.pruned/v1.
type Pruned struct {
	Schema  string        `json:"schema"`
	DryRun  bool          `json:"dry_run"`
	Removed []Snapshot    `json:"removed"` // with DryRun: that would be
	Kept    []Snapshot    `json:"kept"`
	Packed  bool          `json:"packed"`  // the refs that remain were packed
	Mirrors []mirror.Info `json:"mirrors"` // of histories, of all repositories, that were removed; with DryRun: that would be
	Feed    int64         `json:"feed"`    // entries of the store's feed that were removed
	Notices int64         `json:"notices"` // that were removed, with what became of them
}

// Prune removes the refs of snapshots that were settled at least olderThan ago,
// and packs the others. It also removes mirrors of histories that no run has used
// since then, or whose repository is gone: a run that wants one makes it again, what the
// store's feed said before then, and notices of before then whose matter does not last. One that a step waits for, whose run or step is not
// done, or that no run of this store made is never removed. Each removal is an
// entry of the loop's audit chain before it is done, with the commit, so that
// the work can be found for as long as git keeps it.
func (s *Snapshots) Prune(ctx context.Context, by loop.Actor, olderThan time.Duration, dryRun bool) (Pruned, error) {
	p := Pruned{Schema: "pawl.pruned/v1", DryRun: dryRun, Removed: []Snapshot{}, Kept: []Snapshot{}, Mirrors: []mirror.Info{}}
	rows, err := s.List(ctx)
	if err != nil {
		return p, err
	}
	p.sort(rows, s.ws.Now().Add(-olderThan))
	unused, err := s.engine.Mirrors().Collect(ctx, clock.System{}.Now().Add(-olderThan), dryRun) // Files are dated by this host.
	p.Mirrors = append(p.Mirrors, unused...)
	if err != nil || dryRun {
		return p, err
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if p.Feed, err = tx.PruneFeed(ctx, s.ws.Now().Add(-olderThan), math.MaxInt); err != nil {
			return err
		}
		p.Notices, err = tx.PruneNotices(ctx, s.ws.Now().Add(-olderThan))
		return err
	})
	if err != nil {
		return p, err
	}
	if err := s.recordRemovals(ctx, by, &p, s.ws.Now().Add(-olderThan)); err != nil {
		return p, err
	}
	var errs []error
	gone := []Snapshot{}
	for _, row := range p.Removed {
		if err := s.ws.Repo.DeleteRef(ctx, row.Ref, row.Commit); err != nil {
			errs = append(errs, err, s.linkSnapshot(ctx, by, row, map[string]any{"verb": "keep", "why": err.Error()}))
			p.Kept = append(p.Kept, row)
			continue
		}
		gone = append(gone, row)
	}
	p.Removed = gone
	err = s.ws.Repo.PackRefs(ctx)
	p.Packed = err == nil
	return p, errors.Join(append(errs, err)...)
}

// sort tells the snapshots that were settled before a time from the others.
func (p *Pruned) sort(rows []Snapshot, before time.Time) {
	p.Removed, p.Kept = p.Removed[:0], p.Kept[:0]
	for _, row := range rows {
		if row.State == SnapshotSettled && !row.Settled.After(before) {
			p.Removed = append(p.Removed, row)
			continue
		}
		p.Kept = append(p.Kept, row)
	}
}

// recordRemovals looks again and records what is to be removed, in one transaction: a
// step that has begun to wait meanwhile keeps its snapshot.
func (s *Snapshots) recordRemovals(ctx context.Context, by loop.Actor, p *Pruned, before time.Time) error {
	if len(p.Removed) == 0 {
		return nil
	}
	rows, kept := slices.Clone(p.Removed), slices.Clone(p.Kept)
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		for i := range rows {
			rows[i].State, rows[i].Waits, rows[i].Settled = SnapshotForeign, "", nil
		}
		if err := s.addOwners(ctx, &tx.Reader, rows); err != nil {
			return err
		}
		p.sort(rows, before)
		p.Kept = append(p.Kept, kept...)
		// Whoever takes the locks of several chains takes them in one order.
		slices.SortStableFunc(p.Removed, func(a, b Snapshot) int { return strings.Compare(a.Run.LoopID, b.Run.LoopID) })
		for _, row := range p.Removed {
			if err := s.link(ctx, tx, by, row, map[string]any{"verb": "remove", "settled": row.Settled.UTC().Format(time.RFC3339)}); err != nil {
				return err
			}
		}
		return nil
	})
}

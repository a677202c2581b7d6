package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// SnapshotKept is the state of work of which no snapshot could be made: its files
// lie in a folder of pawl's home. Restore tries again to make one.
const SnapshotKept = "kept"

// keptRows are the copies in pawl's home that runs of the workspace left as they
// lie.
func (s *Service) keptRows(ctx context.Context, r *store.Reader) ([]SnapshotRow, error) {
	copies, err := engine.KeptCopies(s.Home)
	if err != nil {
		return nil, err
	}
	var rows []SnapshotRow
	for _, k := range copies {
		run, err := r.Run(ctx, k.RunID)
		if absent(err) {
			continue // Another store's.
		}
		if err != nil {
			return nil, err
		}
		name, _, err := s.loopOf(ctx, r, run.LoopID)
		if err != nil {
			return nil, err
		}
		if name != "" {
			rows = append(rows, SnapshotRow{
				Dir: k.Dir, Base: run.BaseCommit, Loop: name, N: run.N, RunID: run.ID, When: k.When, State: SnapshotKept, run: run,
			})
		}
	}
	return rows, nil
}

// keptFault says where the work of a run lies that no command can show as a patch.
func keptFault(verb string, row SnapshotRow, err error) error {
	run := fmt.Sprintf("%s#%d", row.Loop, row.N)
	f := &loop.Fault{
		Exit: loop.ExitNotReady, What: verb + " " + run, Why: "no snapshot of its work could be made; its files are in " + row.Dir, Err: err,
		Fix:     "copy them from there; {1} tries again to put them on a branch",
		Actions: []loop.Command{loop.Pawl("recover restore", run).With("branch", "NAME").Blank("NAME")},
	}
	if err != nil {
		f.Why += " (" + err.Error() + ")"
		f.Advised(loop.Advise("copy them from there by hand"))
	}
	return f
}

// keptOf is the kept copy of a run, if there is one.
func (s *Service) keptOf(ctx context.Context, run loop.Run) (row SnapshotRow, ok bool, err error) {
	err = s.view(ctx, func(r *store.Reader) error {
		rows, err := s.keptRows(ctx, r)
		for _, kept := range rows {
			if kept.RunID == run.ID {
				row, ok = kept, true
			}
		}
		return err
	})
	return row, ok, err
}

// snapshotKept makes the snapshot of a kept copy that there was none of.
func (s *Service) snapshotKept(ctx context.Context, row SnapshotRow) (SnapshotRow, error) {
	if s.Engine == nil {
		return row, errors.ErrUnsupported
	}
	ref, commit, err := s.Engine.SnapshotKept(ctx, s.repo, row.run)
	if err != nil {
		return row, keptFault("restore", row, err)
	}
	row.Ref, row.Commit = ref, commit
	return row, nil
}

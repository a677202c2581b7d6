package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// SnapshotKept is the state of work of which no snapshot could be made: its files
// lie in a folder of pawl's home. Restore tries again to make one.
const SnapshotKept = "kept"

// keptCopies lists the copies in pawl's home that runs of the workspace left as
// they are.
func keptCopies(ctx context.Context, ws *lookup.Workspace, r *store.Reader, home string) ([]Snapshot, error) {
	copies, err := engine.KeptCopies(home)
	if err != nil {
		return nil, err
	}
	var rows []Snapshot
	for _, k := range copies {
		run, err := ws.RunByID(ctx, r, k.RunID)
		if lookup.Absent(err) {
			continue // Another workspace's, or another store's.
		}
		if err != nil {
			return nil, err
		}
		l, err := r.Loop(ctx, run.LoopID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Snapshot{
			Dir: k.Dir, Base: run.BaseCommit, Loop: l.Name, N: run.N, RunID: run.ID, When: k.When, State: SnapshotKept, Run: run,
		})
	}
	return rows, nil
}

// keptFault says where the work of a run lies that no command can show as a patch.
func keptFault(verb string, row Snapshot, err error) error {
	run := fmt.Sprintf("%s#%d", row.Loop, row.N)
	f := &loop.Fault{
		Exit: loop.ExitNotReady, What: verb + " " + run, Why: "no snapshot of its work could be made; its files are in " + row.Dir, Err: err,
		Fix:     "copy them from there; {1} tries again to put them on a branch",
		Actions: []loop.Command{loop.PawlCommand("recover restore", run).WithFlag("branch", "NAME").WithBlanks("NAME")},
	}
	if err != nil {
		f.Why += " (" + err.Error() + ")"
		f = f.WithAdvice(loop.Advise("copy them from there by hand"))
	}
	return f
}

// snapshotKept makes the snapshot of a kept copy that there was none of.
func (s *Snapshots) snapshotKept(ctx context.Context, row Snapshot) (Snapshot, error) {
	if s.engine == nil {
		return row, errors.ErrUnsupported
	}
	ref, commit, err := s.engine.SnapshotKept(ctx, s.ws.Repo, row.Run)
	if err != nil {
		return row, keptFault("restore", row, err)
	}
	row.Ref, row.Commit = ref, commit
	return row, nil
}

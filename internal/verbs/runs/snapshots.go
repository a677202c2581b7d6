package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// KeepSnapshots is how long a snapshot is kept after the last of its steps was
// done or dropped.
const KeepSnapshots = 14 * 24 * time.Hour

// States of a snapshot.
const (
	SnapshotWaiting = "waiting" // a step goes on from it
	SnapshotRunning = "running" // its run has not ended
	SnapshotOpen    = "open"    // a step of its run is not done yet
	SnapshotSettled = "settled" // nothing needs it any more
	SnapshotForeign = "foreign" // no run of this store made it
)

// Snapshot is work that is on no branch, schema pawl.snapshots/v1.
type Snapshot struct {
	Ref     string     `json:"ref"` // empty: no snapshot could be made, and the files are in Dir
	Commit  string     `json:"commit"`
	Base    string     `json:"base"` // what the work was done on
	Loop    string     `json:"loop"`
	N       int64      `json:"n"` // number of the run, 0 if it is not known
	RunID   string     `json:"run_id"`
	When    time.Time  `json:"when"`
	Files   int        `json:"files"`
	Bytes   int64      `json:"bytes"`
	State   string     `json:"state"`
	Waits   string     `json:"waits,omitempty"` // title of the step that goes on from it
	Settled *time.Time `json:"settled,omitempty"`
	Dir     string     `json:"dir,omitempty"` // folder in pawl's home

	Run loop.Run `json:"-"` // that made it; zero if it is not known
}

// Name is the ref as verbs accept it, without refs/pawl/snapshots/.
func (s Snapshot) Name() string { return strings.TrimPrefix(s.Ref, git.SnapshotPrefix) }

// LeftWork is the work that runs left on no branch, schema pawl.snapshots/v1, and
// the repositories that are gone.
type LeftWork struct {
	shape.Listing[Snapshot]

	Gone []GoneRepository `json:"gone"`
}

// NewLeftWork lists snapshots and repositories that are gone.
func NewLeftWork(rows []Snapshot, gone []GoneRepository) LeftWork {
	return LeftWork{shape.ListingOf("pawl.snapshots/v1", rows), gone}
}

// Snapshots carries out the verbs for work that runs left on no branch.
type Snapshots struct {
	ws     *lookup.Workspace
	engine *engine.Engine // nil if it only reads
	home   string         // pawl's own folder
}

// NewSnapshots makes the verbs for the work that runs of a workspace left.
func NewSnapshots(ws *lookup.Workspace, e *engine.Engine, home string) *Snapshots {
	return &Snapshots{ws: ws, engine: e, home: home}
}

// List returns the snapshots of the repository, the newest first.
func (s *Snapshots) List(ctx context.Context) ([]Snapshot, error) {
	kept, err := s.ws.Repo.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	rows := []Snapshot{}
	for _, k := range kept {
		base := k.Parent
		if base == "" {
			base = s.ws.Repo.Format.EmptyTree()
		}
		rows = append(rows, Snapshot{Ref: k.Ref, Commit: k.Commit, Base: base, When: k.When, Files: k.Files, Bytes: k.Bytes, State: SnapshotForeign})
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		if err := s.addOwners(ctx, r, rows); err != nil {
			return err
		}
		kept, err := keptCopies(ctx, s.ws, r, s.home)
		rows = append(rows, kept...)
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b Snapshot) int { return b.When.Compare(a.When) })
	return rows, nil
}

// addOwners adds what the store knows of the snapshots.
func (s *Snapshots) addOwners(ctx context.Context, r *store.Reader, rows []Snapshot) error {
	// Steps of the other checkouts of the repository go on from the same refs.
	waiting, err := r.Waiting(ctx, s.ws.ID, s.ws.Repo.Shared())
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		err := s.addOwner(ctx, r, row)
		if err != nil && !lookup.Absent(err) {
			return err
		}
		if title, ok := waiting[row.Ref]; ok {
			row.State, row.Waits = SnapshotWaiting, title
		}
	}
	return nil
}

func (s *Snapshots) addOwner(ctx context.Context, r *store.Reader, row *Snapshot) error {
	run, err := s.snapshotRun(ctx, r, row.Ref)
	if err != nil {
		return err
	}
	l, err := r.Loop(ctx, run.LoopID)
	if err != nil {
		return err
	}
	at, settled, err := r.Settled(ctx, run)
	row.Run, row.Loop, row.N, row.RunID = run, l.Name, run.N, run.ID
	switch {
	case run.State != loop.RunEnded:
		row.State = SnapshotRunning
	case settled:
		row.State, row.Settled = SnapshotSettled, &at
	default:
		row.State = SnapshotOpen
	}
	return err
}

// snapshotRun finds the run that made a snapshot: by its row, or by the id of
// the run in the name. Without either it is somebody else's, and ErrNotFound.
func (s *Snapshots) snapshotRun(ctx context.Context, r *store.Reader, ref string) (loop.Run, error) {
	run, err := r.SnapshotRun(ctx, s.ws.ID, ref, false)
	if !lookup.Absent(err) {
		return run, err
	}
	name := strings.TrimPrefix(ref, git.SnapshotPrefix)
	if id, rescued := strings.CutPrefix(name, "rescued/"); rescued {
		id, _, _ = strings.Cut(id, "-")
		return s.rescuedRun(ctx, r, id)
	}
	if s.ws.Repo.Shared() {
		if run, err := r.SnapshotRun(ctx, s.ws.ID, ref, true); !lookup.Absent(err) {
			return run, err
		}
	}
	return s.namedRun(ctx, r, name)
}

// rescuedRun finds a run by its id, which a ref names that anybody can make: of the workspace,
// or of another checkout of its repository.
func (s *Snapshots) rescuedRun(ctx context.Context, r *store.Reader, id string) (loop.Run, error) {
	run, err := s.ws.RunByID(ctx, r, id)
	if !lookup.Absent(err) || !s.ws.Repo.Shared() {
		return run, err
	}
	return r.RunOfRepository(ctx, s.ws.ID, id)
}

// namedRun resolves LOOP/N-TAIL, where TAIL is the end of the run's id: a second
// snapshot of a run, which its row does not name.
func (s *Snapshots) namedRun(ctx context.Context, r *store.Reader, name string) (loop.Run, error) {
	missing := fmt.Errorf("run of %s: %w", name, loop.ErrNotFound)
	at := strings.LastIndexByte(name, '/')
	number, tail, tailed := strings.Cut(name[at+1:], "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if at < 0 || !tailed || err != nil {
		return loop.Run{}, missing
	}
	if again := tail[:len(tail)/2]; tail == again+"-"+again {
		tail = again
	}
	loops, err := r.LoopsNamed(ctx, s.ws.ID, name[:at])
	if err != nil {
		return loop.Run{}, err
	}
	for _, l := range loops {
		run, err := r.RunNumber(ctx, l.ID, n)
		if err == nil && strings.HasSuffix(run.ID, tail) {
			return run, nil
		}
		if err != nil && !lookup.Absent(err) {
			return run, err
		}
	}
	return loop.Run{}, missing
}

// Find finds a snapshot: by its ref, with or without refs/pawl/snapshots/, or by a
// RUN that made one.
func (s *Snapshots) Find(ctx context.Context, name string) (Snapshot, error) {
	rows, err := s.List(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	for _, row := range rows {
		if row.Ref != "" && (row.Ref == name || row.Ref == git.SnapshotPrefix+name) {
			return row, nil
		}
	}
	// A run of another checkout of the repository left it here, too.
	if i := newestOf(rows, name); name != "" && i >= 0 {
		return rows[i], nil
	}
	none := &loop.Fault{Exit: loop.ExitNotFound, What: "there is no snapshot " + name, Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("recover")}, Err: loop.ErrNotFound}
	run, err := s.ws.Run(ctx, name)
	if lookup.Absent(err) {
		return Snapshot{}, none
	}
	if err != nil {
		return Snapshot{}, err
	}
	if i := newestOf(rows, run.ID); i >= 0 {
		return rows[i], nil
	}
	none.Why = fmt.Sprintf("run #%d left no work behind, or its snapshot was removed", run.N)
	return Snapshot{}, none
}

// newestOf is the index of the newest snapshot that a run left, or else of its kept copy; -1 if
// it left none.
func newestOf(rows []Snapshot, runID string) int {
	i := slices.IndexFunc(rows, func(row Snapshot) bool { return row.RunID == runID && row.Ref != "" })
	if i < 0 {
		i = slices.IndexFunc(rows, func(row Snapshot) bool { return row.RunID == runID })
	}
	return i
}

// Diff is what a snapshot changed against its parent, as a patch.
func (s *Snapshots) Diff(ctx context.Context, name string) (Patch, error) {
	row, err := s.Find(ctx, name)
	if err == nil && row.Ref == "" {
		err = keptFault("show", row, nil)
	}
	if err != nil {
		return Patch{}, err
	}
	patch, err := s.ws.Repo.Diff(ctx, row.Base, row.Commit)
	if err != nil {
		return Patch{}, err
	}
	return newPatch(name, patch), nil
}

// Restored is a snapshot that was put on a branch, schema pawl.restored/v1.
type Restored struct {
	Schema string `json:"schema"`
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
	Branch string `json:"branch"`
}

// Restore puts a snapshot on a new branch, and makes it first of work that was kept
// as it lies. A branch of that name is never
// moved, no file of the checkout is touched, and the snapshot stays.
func (s *Snapshots) Restore(ctx context.Context, by loop.Actor, name, branch string) (Restored, error) {
	ref := "refs/heads/" + branch
	err := git.CheckRef(ref)
	if err == nil && (branch == "pawl" || strings.HasPrefix(branch, "pawl/")) {
		err = errors.New("branches below pawl/ are proposals of runs")
	}
	if err != nil {
		return Restored{}, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("branch %q", branch), Why: err.Error(), Fix: "name another, for example rescue/1", Err: err}
	}
	row, err := s.Find(ctx, name)
	if err != nil {
		return Restored{}, err
	}
	if at, there, err := s.ws.Repo.Ref(ctx, ref); err != nil || there {
		return Restored{}, branchTakenFault(branch, at, err)
	}
	if row.Ref == "" {
		if row, err = s.snapshotKept(ctx, row); err != nil {
			return Restored{}, err
		}
	}
	if err := s.ws.Repo.UpdateRef(ctx, ref, row.Commit, ""); err != nil {
		return Restored{}, branchTakenFault(branch, "", err)
	}
	return Restored{"pawl.restored/v1", row.Ref, row.Commit, branch}, s.linkSnapshot(ctx, by, row, map[string]any{"verb": "restore", "branch": branch})
}

func branchTakenFault(branch, at string, err error) error {
	f := &loop.Fault{Exit: loop.ExitMissing, What: "make branch " + branch, Fix: "name another with --branch; no branch is ever moved", Err: err}
	if f.Why = "it exists at " + short(at); err != nil {
		f.Why = err.Error()
	}
	return f
}

// linkSnapshot records what is done to a snapshot in the chain of its loop, or
// of the workspace if it belongs to none.
func (s *Snapshots) linkSnapshot(ctx context.Context, by loop.Actor, row Snapshot, body map[string]any) error {
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error { return s.link(ctx, tx, by, row, body) })
}

func (s *Snapshots) link(ctx context.Context, tx *store.Tx, by loop.Actor, row Snapshot, body map[string]any) error {
	chain := row.Run.LoopID
	if chain == "" {
		chain = s.ws.ID
	}
	body["ref"], body["commit"] = row.Ref, row.Commit
	return tx.LinkBy(ctx, by, chain, loop.LinkSnapshot, row.RunID, body)
}

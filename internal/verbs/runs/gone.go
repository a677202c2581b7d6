package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// GoneRepository is a checkout that pawl has run loops in and that is not there
// any more.
type GoneRepository struct {
	Root string    `json:"root"`
	Why  string    `json:"why"`
	Runs []GoneRun `json:"runs"` // that have not ended, or of which files are left; empty: nothing is open
	Next string    `json:"next"` // what a person can do, for somebody with a shell

	Actions []loop.Command `json:"actions"` // those of Next, as data
}

// GoneRun is a run of a checkout that is gone.
type GoneRun struct {
	Run   string     `json:"run"` // LOOP#N
	ID    string     `json:"id"`
	State string     `json:"state"` // dead, lost, running, queued or ended
	Phase loop.Phase `json:"phase"`
	Kept  []KeptPath `json:"kept"`
}

// KeptPath is a folder or file in pawl's home that holds work of a run.
type KeptPath struct {
	Path  string `json:"path"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Gone lists the checkouts that lay on this node and are gone, with what is open of
// them. Home is pawl's own folder.
func Gone(ctx context.Context, s *store.Store, node, home string, state func(loop.Holder) loop.HolderState) ([]GoneRepository, error) {
	list := []GoneRepository{}
	if s == nil {
		return list, nil
	}
	err := s.View(ctx, func(r *store.Reader) error {
		all, err := r.Workspaces(ctx, node)
		if err != nil {
			return err
		}
		var left map[string][]KeptPath // by run; looked for when something is gone
		for _, w := range all {
			why := goneWhy(w.Root)
			if why == "" {
				continue
			}
			if left == nil {
				if left, err = leftInHome(home); err != nil {
					return err
				}
			}
			g := GoneRepository{Root: w.Root, Why: why, Runs: []GoneRun{}}
			if err := g.addRuns(ctx, r, w.ID, left, func(run loop.Run) string { return lookup.Liveness(run, state(run.Holder), s.Now()) }); err != nil {
				return err
			}
			advice := g.nextStep()
			g.Next, g.Actions = advice.String(), advice.Actions
			list = append(list, g)
		}
		return nil
	})
	return list, err
}

// goneWhy says why a checkout cannot be worked in any more; empty: it is there,
// or cannot be looked at.
func goneWhy(root string) string {
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return "its folder was deleted or moved, or its disk is not mounted"
	}
	if dir, err := gitdir.Of(root); err == nil && dir == "" {
		return "its folder is there and holds no git repository any more"
	}
	return ""
}

// addRuns adds the runs of a workspace that are not over or have left something.
func (g *GoneRepository) addRuns(ctx context.Context, r *store.Reader, workspace string, left map[string][]KeptPath, state func(loop.Run) string) error {
	loops, err := r.Loops(ctx, workspace)
	if err != nil {
		return err
	}
	for _, l := range loops {
		var runs []loop.Run
		live, err := r.Live(ctx, l.ID)
		switch {
		case err == nil:
			runs = append(runs, live)
		case !lookup.Absent(err):
			return err
		}
		for id := range left {
			run, err := r.Run(ctx, id)
			if err != nil && !lookup.Absent(err) {
				return err
			}
			if err == nil && run.LoopID == l.ID && run.ID != live.ID {
				runs = append(runs, run)
			}
		}
		slices.SortFunc(runs, func(a, b loop.Run) int { return int(a.N - b.N) })
		for _, run := range runs {
			g.Runs = append(g.Runs, GoneRun{
				Run: fmt.Sprintf("%s#%d", l.Name, run.N), ID: run.ID, State: state(run), Phase: run.Phase, Kept: shape.List(left[run.ID]),
			})
		}
	}
	return nil
}

// nextStep says what a person can do about a checkout that is gone.
func (g *GoneRepository) nextStep() loop.Advice {
	if len(g.Runs) == 0 {
		return loop.Advise("nothing of it is open; {1} removes its packed histories", loop.PawlCommand("recover prune"))
	}
	back := loop.Advise("if it was moved, move it back to "+g.Root+" and run {1} in it: that concludes these runs and keeps their work on refs", loop.PawlCommand("recover"))
	var kept []string
	for _, run := range g.Runs {
		for _, k := range run.Kept {
			kept = append(kept, k.Path)
		}
	}
	if len(kept) == 0 {
		return back.Then("; ", loop.Advise("if it is gone for good, nothing of these runs is left"))
	}
	return back.Then("; ", loop.Advise("if it is gone for good, copy what you need out of the folders named here and remove them: nothing else does"))
}

// leftInHome finds what runs have left in pawl's home: their copies of a tree and
// their own folders.
func leftInHome(home string) (map[string][]KeptPath, error) {
	left := map[string][]KeptPath{}
	for _, dir := range []string{"trees", "runs"} {
		entries, err := os.ReadDir(filepath.Join(home, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for what runs have left: %w", err)
		}
		for _, e := range entries {
			id, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "kept-"), "-")
			if !e.IsDir() || !strings.HasPrefix(id, "run_") {
				continue
			}
			if k := sizeOf(filepath.Join(home, dir, e.Name())); k.Files > 0 {
				left[id] = append(left[id], k)
			}
		}
	}
	return left, nil
}

// sizeOf counts the regular files below a folder; what cannot be read is not
// counted.
func sizeOf(path string) KeptPath {
	k := KeptPath{Path: path}
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				k.Files++
				k.Bytes += info.Size()
			}
		}
		return nil // What is below a folder that cannot be read is left out.
	})
	return k
}

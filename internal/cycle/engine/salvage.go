package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A run is always concluded, whatever became of its work. What keeps the work is
// tried in this order: the branch or the snapshot that the run was to leave, a
// snapshot of its copy, the newest candidate that git still has, and the copy as
// it lies, under a name that nothing removes. workTree.unkept says what is not kept, and
// where the rest is.

// candidateSuffix ends the name of a snapshot that holds a candidate, because the
// copy could not be seen. The copy may hold more.
const candidateSuffix = "-candidate"

// keepPrefix begins the name of a copy that is kept as it lies.
const keepPrefix = "kept-"

var errNoCopy = errors.New("its copy is gone")

// keepCopy keeps the copy of a run because its candidate cannot be kept.
func (wt *workTree) keepCopy(ctx context.Context, why error) error {
	if wt.mayPassLater(ctx, why) {
		return why
	}
	if wt.copy == nil {
		var err error
		if wt.copy, err = wt.host().Adopt(ctx, wt.target.Repo, wt.run); err != nil {
			return wt.salvage(ctx, errors.Join(why, err))
		}
	}
	if wt.copy == nil {
		return wt.salvage(ctx, errors.Join(why, errNoCopy))
	}
	err := wt.keepSnapshot(ctx)
	switch {
	case errors.Is(err, workspace.ErrIncomplete):
		return wt.setAside(err)
	case err != nil:
		return wt.salvage(ctx, errors.Join(why, err))
	}
	wt.noteLoss(fmt.Sprintf("what the gates saw cannot be kept (%s); the copy that it was taken from is kept instead", firstLine(why.Error())))
	return nil
}

// salvage keeps work if no snapshot of it can be made: it keeps the newest
// candidate, and sets the copy aside. An error means that the run cannot be
// concluded now, and that a later try may do better.
func (wt *workTree) salvage(ctx context.Context, why error) error {
	if wt.mayPassLater(ctx, why) {
		return why
	}
	to, err := wt.setAsideUnread()
	if err != nil {
		return errors.Join(why, err)
	}
	words := fmt.Sprintf("no snapshot of its work could be made (%s)", firstLine(why.Error()))
	if wt.run.Snapshot == "" {
		if n := wt.keepNewest(ctx); n > 0 {
			words += fmt.Sprintf("; what iteration %d had done is kept in %s", n, wt.run.Snapshot)
		}
	}
	if to == "" {
		words += "; nothing is left in " + wt.copyPath() + ", and what was done only there is lost"
	} else {
		words += "; its files are kept as they lie in " + to
	}
	wt.noteLoss(words)
	return nil
}

// mayPassLater reports whether an error may be gone when somebody tries again, without
// anything being lost by waiting.
func (wt *workTree) mayPassLater(ctx context.Context, err error) bool {
	f, ok := errors.AsType[*loop.Fault](err)
	return ctx.Err() != nil || errors.Is(err, loop.ErrLeaseLost) || projection.DiskFull(err) || ok && f.Exit == loop.ExitMissing
}

// noteLoss notes what could not be kept, for whoever reads of the run.
func (wt *workTree) noteLoss(words string) {
	wt.unkept = joinWords(wt.unkept, wt.said.Hide(words))
	wt.said.Note("%s", wt.said.Hide(words))
}

func joinWords(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func (wt *workTree) copyPath() string {
	return wt.host().CopyPath(runenv.TreeName(wt.run.ID, runenv.ForAct))
}

// setAsideUnread keeps whatever lies where the copy was.
func (wt *workTree) setAsideUnread() (string, error) {
	if tree := wt.copy; tree != nil {
		wt.copy = nil
		if err := tree.Leave(); err != nil {
			return "", err
		}
		if to, err := tree.KeepAs(keepPrefix + wt.run.ID); err == nil {
			return to, nil
		}
	}
	return wt.host().Trees(wt.target.Repo, sandbox.None).SetAside(runenv.TreeName(wt.run.ID, runenv.ForAct), keepPrefix+wt.run.ID)
}

// keepNewest puts the newest candidate that git still has under a snapshot ref, and
// returns its iteration. One that adds a secret is left out.
func (wt *workTree) keepNewest(ctx context.Context) (iteration int) {
	for _, it := range slices.Backward(wt.its) {
		if it.Candidate == "" || it.Candidate == wt.run.BaseCommit {
			continue
		}
		compared, err := workspace.Compare(ctx, wt.target.Repo, wt.run.BaseCommit, it.Candidate)
		if err != nil || findLeaks(wt.said.Secrets(), compared.Changes) != nil {
			continue
		}
		ref := wt.snapshotRef() + candidateSuffix
		if err := wt.keepAt(ctx, ref, it.Candidate); err == nil {
			wt.run.Snapshot = ref
			return it.N
		}
	}
	return 0
}

// missingCopy says that nothing is left of the copy in which a dead run worked,
// unless it died before it had one.
func (wt *workTree) missingCopy(ctx context.Context, died loop.Phase) error {
	worked := []loop.Phase{loop.PhaseGather, loop.PhaseVerify, loop.PhaseConclude}
	if began := died == loop.PhaseAct && wt.host().TurnBegan(wt.run.ID, len(wt.its)); !began && !slices.Contains(worked, died) {
		return nil
	}
	return wt.salvage(ctx, errNoCopy)
}

// KeptCopy is a copy of a run that was set aside as it lies, because no snapshot of
// it could be made.
type KeptCopy struct {
	RunID string
	Dir   string // that holds its files; of a layered copy those that were changed
	When  time.Time
}

// KeptCopies lists the copies that are kept in a home of pawl's, of all
// repositories; none without a home. Only people remove one.
func KeptCopies(home string) ([]KeptCopy, error) {
	if home == "" {
		return nil, nil
	}
	h := runenv.Host{Home: home}
	entries, err := os.ReadDir(filepath.Dir(h.CopyPath(keepPrefix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the copies that are kept: %w", err)
	}
	var list []KeptCopy
	for _, e := range entries {
		id, kept := strings.CutPrefix(e.Name(), keepPrefix)
		info, err := e.Info()
		if !kept || err != nil {
			continue
		}
		list = append(list, KeptCopy{RunID: id, Dir: workspace.ContentDir(h.CopyPath(e.Name())), When: info.ModTime()})
	}
	return list, nil
}

// SnapshotKept makes the snapshot of a kept copy after all, and returns its ref and
// commit. The copy stays. It is an error if what lies there can still not be
// compared with what the run was based on.
func (e *Engine) SnapshotKept(ctx context.Context, repo *git.Repo, run loop.Run) (ref, commit string, err error) {
	tree, err := e.host().AdoptKept(ctx, repo, run, keepPrefix+run.ID)
	if err != nil {
		return "", "", err
	}
	ref, commit, err = makeSnapshot(ctx, tree, snapshotPrefix+"kept/"+run.ID, run.ID, "pawl: work of run "+run.ID+" that was kept as it lies", e.Now())
	if err = errors.Join(err, tree.Leave()); err == nil && commit == "" {
		err = errors.New("nothing in it differs from what the run was based on")
	}
	return ref, commit, err
}

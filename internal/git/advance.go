package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The places at which landing can be interrupted.
var (
	beforeJournal = fault.New("git.advance.journal.before")
	afterJournal  = fault.New("git.advance.journal.after")
	beforeMove    = fault.New("git.advance.ref.before")
	afterMove     = fault.New("git.advance.ref.after")
	beforeFile    = fault.New("git.advance.file.before")
	afterFile     = fault.New("git.advance.file.after")
	beforeIndex   = fault.New("git.advance.index.before")
	afterIndex    = fault.New("git.advance.index.after")
)

// Advance is a branch that moves forward, and the checkout with it if that is
// the branch checked out here.
type Advance struct {
	Branch string // short name
	Onto   string // the commit at which the branch must be
	Commit string // the commit at which it is to be, a descendant of Onto unless Rewrites is set
	From   string // what a person would merge by hand, for the fix; empty means Commit

	// Files of pawl's own, by path, and the blob that each may hold in the checkout instead of
	// that of Onto. A file that Commit has as that blob may be anything else too, and stays.
	Memory map[string]string `json:",omitempty"`

	// Rewrites allows a Commit that does not descend from Onto: whoever sets it has made the
	// commits again that the branch loses.
	Rewrites bool `json:",omitempty"`

	// Confirm is asked right before the ref moves, while no other Advance can run
	// in this checkout; its error leaves the ref where it is. Nil confirms.
	Confirm func(context.Context) error `json:"-"`
}

func (a Advance) ref() string { return headPrefix + a.Branch }

// Advance moves the branch by compare-and-swap. ErrRefMoved means that it was
// neither at Onto nor at Commit. If the branch is checked out here, the files
// that differ between the two commits are written byte for byte, no filter
// runs, and the index is told. A file among them that is not exactly what Onto
// holds, a branch that is checked out in another worktree, an unfinished merge
// and the like are a *loop.Fault, and nothing is changed.
//
// The ref moves first. If the process ends after that, the next Advance of any
// branch finishes those paths that still are what they were at Onto and leaves
// all others as it finds them; repeating the same Advance does that and nothing
// else. One Advance runs at a time in a checkout.
func (r *Repo) Advance(ctx context.Context, a Advance) error {
	if err := a.check(r.Format); err != nil {
		return err
	}
	j, err := openJournal(r.Dirs, a)
	if err != nil {
		return err
	}
	defer j.close()
	if err := r.resume(ctx, j); err != nil {
		return err
	}
	tip, _, err := r.Ref(ctx, a.ref())
	if err != nil || tip == a.Commit {
		return err
	}
	if tip != a.Onto {
		return fmt.Errorf("advance %s: %w: it is %s and not %s", a.Branch, ErrRefMoved, orMissing(tip), a.Onto)
	}
	t, err := r.checkAdvanceable(ctx, a)
	if err != nil {
		return err
	}
	if t == nil {
		return r.moveBranch(ctx, a)
	}
	defer t.close()
	if err := j.write(ctx, a); err != nil {
		return err
	}
	if err := r.moveBranch(ctx, a); err != nil {
		if errors.Is(err, ErrRefMoved) {
			err = errors.Join(err, j.clear())
		}
		return err
	}
	return t.finish(ctx, j)
}

// Unfinished reports whether an Advance of this checkout ended after its ref
// moved and before its files did, and which.
func (r *Repo) Unfinished(ctx context.Context) (Advance, bool, error) {
	a, ok := readJournal(r.Dirs, r.Format)
	if !ok {
		return Advance{}, false, nil
	}
	tip, _, err := r.Ref(ctx, a.ref())
	return a, err == nil && tip == a.Commit, err
}

// FinishAdvance brings the checkout to its branch if an Advance ended between the two.
func (r *Repo) FinishAdvance(ctx context.Context) error {
	a, unfinished, err := r.Unfinished(ctx)
	if err != nil || !unfinished {
		return err
	}
	return r.Advance(ctx, a)
}

// Contains reports whether commit is tip or one of its ancestors. If the repository
// does not have the commit, the error is loop.ErrNotFound.
func (r *Repo) Contains(ctx context.Context, tip, commit string) (bool, error) {
	for _, id := range []string{tip, commit} {
		if err := r.Format.Check(id); err != nil {
			return false, fmt.Errorf("compare history: %w", err)
		}
	}
	contained, known, err := r.containsByParents(ctx, tip, commit)
	if err != nil && !errors.Is(err, loop.ErrNotFound) {
		return false, fmt.Errorf("compare history of %s with %s: %w", tip, commit, err)
	}
	if known {
		return contained, nil
	}
	_, err = r.git.Output(ctx, nil, "merge-base", "--is-ancestor", commit, tip)
	if program.Status(err) == 1 {
		return false, nil
	}
	if program.Status(err) != 0 {
		if _, gone := r.git.Output(ctx, nil, "cat-file", "-e", commit); program.Status(gone) != 0 {
			err = loop.ErrNotFound
		}
	}
	if err != nil {
		return false, fmt.Errorf("compare history of %s with %s: %w", tip, commit, err)
	}
	return true, nil
}

// containsByParents answers Contains if one of the commits is the parent of the other, for
// which the commits are read and git is not asked.
func (r *Repo) containsByParents(ctx context.Context, tip, commit string) (contained, known bool, err error) {
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	parents, err := blobs.Parents(tip)
	if slices.Contains(parents, commit) {
		return true, true, nil
	}
	if err == nil {
		parents, err = blobs.Parents(commit)
	}
	return false, slices.Contains(parents, tip), err
}

func (a Advance) check(format object.Format) error {
	if err := CheckRef(a.ref()); err != nil {
		return fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	for _, id := range slices.Concat([]string{a.Onto, a.Commit}, slices.Collect(maps.Values(a.Memory))) {
		if err := format.Check(id); err != nil {
			return fmt.Errorf("advance %s: %w", a.Branch, err)
		}
	}
	return nil
}

// CanAdvance says why Advance would refuse this now, by the same rules, and
// changes nothing. The ref itself is not compared.
func (r *Repo) CanAdvance(ctx context.Context, a Advance) error {
	if err := a.check(r.Format); err != nil {
		return err
	}
	t, err := r.checkAdvanceable(ctx, a)
	if t != nil {
		t.close()
	}
	return err
}

// checkAdvanceable refuses an Advance that would lose commits or work. It returns the
// checkout that has to be updated, or nil if the branch is not checked out here.
func (r *Repo) checkAdvanceable(ctx context.Context, a Advance) (*checkoutUpdate, error) {
	forward, err := a.Rewrites, error(nil)
	if !forward {
		forward, err = r.Contains(ctx, a.Commit, a.Onto)
	}
	if err != nil {
		return nil, err
	}
	if !forward {
		return nil, &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("%s cannot be advanced to %s", a.Branch, a.Commit),
			Why: "it would lose commits: " + a.Onto + " is not in its history", Fix: "make the change again on top of " + a.Branch,
		}
	}
	if err := a.checkWorktrees(r.Dirs); err != nil {
		return nil, err
	}
	head, err := r.checkedOutRef(ctx)
	if err != nil {
		return nil, fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	if head != a.ref() {
		return nil, nil
	}
	t, err := r.openCheckout(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := t.checkClean(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// moveBranch confirms and moves the ref.
func (r *Repo) moveBranch(ctx context.Context, a Advance) error {
	if err := beforeMove.Hit(ctx); err != nil {
		return fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	if a.Confirm != nil {
		if err := a.Confirm(ctx); err != nil {
			return fmt.Errorf("advance %s: %w", a.Branch, err)
		}
	}
	if err := r.UpdateRef(ctx, a.ref(), a.Commit, a.Onto); err != nil {
		return fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	if err := afterMove.Hit(ctx); err != nil {
		return fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	return nil
}

// resume finishes what an earlier process began. If the branch in the journal is not
// at the commit, the ref was never moved, or somebody has committed since.
func (r *Repo) resume(ctx context.Context, j *journal) error {
	a, ok, err := r.Unfinished(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return j.clear()
	}
	head, err := r.checkedOutRef(ctx)
	if err != nil {
		return err
	}
	if head != a.ref() {
		return j.clear()
	}
	t, err := r.openCheckout(ctx, a)
	if err != nil {
		return err
	}
	defer t.close()
	return t.finish(ctx, j)
}

// checkedOutRef returns the full name of the ref that is checked out here, or nothing.
func (r *Repo) checkedOutRef(ctx context.Context) (string, error) {
	head, err := r.headName(ctx)
	if head == "HEAD" {
		head = ""
	}
	return head, err
}

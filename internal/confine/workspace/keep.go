package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const snapshotPrefix = "refs/pawl/snapshots/"

// Snapshot commits the present content of the tree on top of its base, and sets ref,
// which must be below refs/pawl/snapshots/ and not exist. Problems are left out and named
// in the message. If nothing differs from the base, it returns "" and sets nothing. If
// ref has exactly this content already, its commit is returned, so that Snapshot can be
// repeated after a crash. If content is over the limits, the error is ErrIncomplete, and
// the commit has the rest.
func (t *Tree) Snapshot(ctx context.Context, ref, message string, when time.Time) (commit string, err error) {
	if !strings.HasPrefix(ref, snapshotPrefix) {
		return "", fmt.Errorf("snapshot tree %s: ref %s is not below %s", t.Name, ref, snapshotPrefix)
	}
	changes, problems, err := t.Changes(ctx)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return "", t.incompleteError(problems)
	}
	draft := object.Draft{Base: t.Base, Changes: changes, Message: leftOut(message, problems), When: when}
	if t.Base == "" {
		draft.Tree = t.From
	}
	commit, err = t.commitDraft(ctx, ref, draft)
	if errors.Is(err, loop.ErrNotFound) {
		commit, err = t.commitDraft(ctx, ref, draft) // The objects were garbage collected before ref was set.
	}
	if err != nil {
		return "", fmt.Errorf("snapshot tree %s: %w", t.Name, err)
	}
	return commit, t.incompleteError(problems)
}

func (t *Tree) commitDraft(ctx context.Context, ref string, draft object.Draft) (string, error) {
	c, err := t.trees.repo.Candidate(ctx, draft)
	if err != nil {
		return "", err
	}
	return t.keepRef(ctx, ref, c.Commit)
}

func (t *Tree) incompleteError(problems []Problem) error {
	for _, p := range problems {
		if p.Rule.overLimit() {
			return fmt.Errorf("snapshot tree %s: %q is %s: %w", t.Name, p.Path, p.Rule, ErrIncomplete)
		}
	}
	return nil
}

// ErrIncomplete means that a snapshot was made without the content over the limits. The
// directory should be kept.
var ErrIncomplete = errors.New("the snapshot is incomplete")

// KeepAs renames the directory below the same root, so that nothing removes it, and
// returns its path. Of layers it has what was written (upper), and Adopt takes them up by
// the new name. The tree must not be used afterwards.
func (t *Tree) KeepAs(name string) (string, error) {
	to, err := t.trees.treePath(name)
	if r := t.newRecord(t.pushed); err == nil && (!r.Whole || len(r.Pushed) > 0) {
		err = t.trees.writeRecord(name, r)
	}
	if err == nil {
		err = os.Rename(t.hostDir(), to)
	}
	if err == nil {
		t.form.release()
		err = t.trees.dropRecord(t.Name)
	}
	if err == nil {
		err = sandbox.RemoveTree(t.trees.hiddenPath(t.Name, suffixUnit))
	}
	if err != nil {
		return "", fmt.Errorf("keep tree %s: %w", t.Name, err)
	}
	return to, nil
}

// ContentDir returns the directory with what was written to the tree in dir: for layers, a
// part of dir.
func ContentDir(dir string) string {
	upper := filepath.Join(dir, upperName)
	_, err := os.Lstat(filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+suffixRecord))
	if info, upperErr := os.Lstat(upper); err == nil && upperErr == nil && info.IsDir() {
		return upper
	}
	return dir
}

// SetAside renames whatever has the name of a tree below the same root, so that nothing
// removes it, and returns its path. It does not read it, so that it also works for a tree
// that Adopt cannot read. It returns "" if there is nothing, and may be repeated after a
// crash.
func (t *Trees) SetAside(name, as string) (string, error) {
	from, err := t.treePath(name)
	if err != nil {
		return "", fmt.Errorf("set tree aside: %w", err)
	}
	to, err := t.treePath(as)
	if err != nil {
		return "", fmt.Errorf("set tree aside: %w", err)
	}
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		_, err := os.Lstat(to)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("set tree %s aside: %w", name, err)
		}
		return to, nil // It was set aside before.
	}
	if text, err := os.ReadFile(t.hiddenPath(name, suffixRecord)); err == nil {
		if err := os.WriteFile(t.hiddenPath(as, suffixRecord), text, 0o600); err != nil {
			return "", fmt.Errorf("set tree %s aside: %w", name, err)
		}
	}
	if err := os.Rename(from, to); err != nil {
		return "", fmt.Errorf("set tree %s aside: %w", name, err)
	}
	return to, nil
}

// PreventParking makes Remove delete the directory. Otherwise it would be parked for the
// next use, with whatever was written to it.
func (t *Tree) PreventParking() error {
	return sandbox.RemoveTree(t.trees.hiddenPath(t.Name, suffixUnit))
}

func (t *Tree) keepRef(ctx context.Context, ref, commit string) (string, error) {
	if err := beforeSnap.Hit(ctx); err != nil {
		return "", err
	}
	repo := t.trees.repo
	err := repo.UpdateRef(ctx, ref, commit, "")
	if errors.Is(err, git.ErrRefMoved) {
		there, ok, lookErr := repo.Ref(ctx, ref)
		if lookErr != nil || !ok {
			return "", cmp.Or(lookErr, err)
		}
		if files, _, _, diffErr := repo.DiffStat(ctx, there, commit); diffErr != nil || files > 0 {
			return "", cmp.Or(diffErr, err)
		}
		return there, nil
	}
	if err != nil {
		return "", err
	}
	return commit, afterSnap.Hit(ctx)
}

// leftOut adds the problems that a snapshot leaves out to its message, as far as their
// paths fit.
func leftOut(message string, problems []Problem) string {
	if len(problems) == 0 {
		return message
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(message[:min(len(message), object.MaxMessage/2)]))
	fmt.Fprintf(&b, "\n\nLeft out: %d\n", len(problems))
	for _, p := range problems {
		line := fmt.Sprintf("- %.200q %s\n", p.Path, p.Rule)
		if b.Len()+len(line) > object.MaxMessage-8 {
			b.WriteString("- …\n")
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// Remove deletes the directory, whatever its modes. It is not an error if the directory
// is gone already.
func (t *Tree) Remove(ctx context.Context) error {
	defer t.form.release()
	return t.trees.Remove(ctx, t.Name)
}

// Remove deletes the tree of that name, and whatever a process left while making or
// removing it.
func (t *Trees) Remove(ctx context.Context, name string) error {
	dir, err := t.treePath(name)
	if err != nil {
		return fmt.Errorf("remove tree: %w", err)
	}
	gone := t.hiddenPath(name, suffixGone)
	err = errors.Join(beforeRemove.Hit(ctx), sandbox.RemoveTree(gone), sandbox.RemoveTree(t.hiddenPath(name, suffixNew)))
	if err == nil {
		err = t.parkCopy(ctx, name, dir)
	}
	if err == nil {
		if err = os.Rename(dir, gone); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = errors.Join(sandbox.RemoveTree(gone), t.dropRecord(name))
	}
	if err != nil {
		return fmt.Errorf("remove tree %s: %w", name, err)
	}
	return nil
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
)

const snapshotPrefix = "refs/pawl/snapshots/"

// Snapshot commits what is in the tree now, on top of its base, and sets ref,
// which must lie below refs/pawl/snapshots/ and not exist. Problems are left
// out and named in the message. If nothing differs from the base it returns ""
// and sets nothing. A ref that holds exactly this content already is accepted,
// so that it can be repeated after a crash; its commit is returned.
func (t *Tree) Snapshot(ctx context.Context, ref, message string, when time.Time) (commit string, err error) {
	if !strings.HasPrefix(ref, snapshotPrefix) {
		return "", fmt.Errorf("snapshot tree %s: ref %s is not below %s", t.Name, ref, snapshotPrefix)
	}
	changes, problems, err := t.Changes(ctx)
	if err != nil || len(changes) == 0 {
		return "", err
	}
	draft := git.Draft{Base: t.Base, Changes: changes, Message: leftOut(message, problems), When: when}
	if t.Base == "" {
		draft.Tree = t.From
	}
	c, err := t.trees.repo.Candidate(ctx, draft)
	if err == nil {
		commit, err = t.keep(ctx, ref, c.Commit)
	}
	if err != nil {
		return "", fmt.Errorf("snapshot tree %s: %w", t.Name, err)
	}
	return commit, nil
}

func (t *Tree) keep(ctx context.Context, ref, commit string) (string, error) {
	if err := beforeSnap.Hit(ctx); err != nil {
		return "", err
	}
	repo := t.trees.repo
	err := repo.UpdateRef(ctx, ref, commit, "")
	if errors.Is(err, git.ErrRefMoved) {
		there, ok, lookErr := repo.Ref(ctx, ref)
		if lookErr != nil || !ok {
			return "", errors.Join(err, lookErr)
		}
		if files, _, _, diffErr := repo.DiffStat(ctx, there, commit); diffErr != nil || files > 0 {
			return "", errors.Join(err, diffErr)
		}
		return there, nil
	}
	if err != nil {
		return "", err
	}
	return commit, afterSnap.Hit(ctx)
}

// leftOut adds what a snapshot does not hold to its message. The message is
// short enough for the first few paths to fit.
func leftOut(message string, problems []Problem) string {
	if len(problems) == 0 {
		return message
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(message[:min(len(message), git.MaxMessage/2)]))
	fmt.Fprintf(&b, "\n\nLeft out: %d\n", len(problems))
	for _, p := range problems {
		line := fmt.Sprintf("- %.200q %s\n", p.Path, p.Rule)
		if b.Len()+len(line) > git.MaxMessage-8 {
			b.WriteString("- …\n")
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// Remove deletes the directory, whatever its modes. A directory that is gone
// is no error.
func (t *Tree) Remove(ctx context.Context) error { return t.trees.Remove(ctx, t.Name) }

// Remove deletes the tree of that name and everything that a process left
// behind while it made or removed it.
func (t *Trees) Remove(ctx context.Context, name string) error {
	dir, err := t.path(name)
	if err != nil {
		return fmt.Errorf("remove tree: %w", err)
	}
	gone := t.hidden(name, suffixGone)
	err = errors.Join(beforeRemove.Hit(ctx), discard(gone), discard(t.hidden(name, suffixNew)))
	if err == nil {
		if err = os.Rename(dir, gone); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = discard(gone)
	}
	if err != nil {
		return fmt.Errorf("remove tree %s: %w", name, err)
	}
	return nil
}

// discard removes a directory. Directories that keep their owner out are opened
// on the way, and only if that is needed.
func discard(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

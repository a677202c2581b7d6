package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
)

// packTimeout bounds the packing of a whole history. Only a very large one takes
// minutes.
const packTimeout = 30 * time.Minute

// Reach says which objects are packed.
type Reach struct {
	Commit  string // with all that it reaches
	Without string // a commit; what it reaches is left out. Empty: nothing is
	Alone   bool   // the commit and its tree, without the commits before it
}

// PackReach writes one or more packs into objects/pack below dir, which must
// exist, and returns their names without a suffix. It reads this repository only:
// what a partial clone has not fetched is left out, and nothing is fetched.
// Nothing is written to the repository. Two packs with one name are the same.
func (r *Repo) PackReach(ctx context.Context, dir string, reach Reach) (names []string, err error) {
	for _, id := range []string{reach.Commit, reach.Without} {
		if err := r.Format.Check(id); err != nil && id != "" {
			return nil, fmt.Errorf("pack history: %w", err)
		}
	}
	partial, err := r.Partial()
	if err != nil {
		return nil, fmt.Errorf("pack the history of %s: %w", reach.Commit, err)
	}
	revs := reach.Commit + "\n"
	if reach.Alone {
		revs = "--shallow " + reach.Commit + "\n" + revs
	}
	if reach.Without != "" {
		revs += "^" + reach.Without + "\n"
	}
	// No deltas are looked for: those that the repository has are taken over, and
	// the rest is copied as it is.
	args := []string{"pack-objects", "--revs", "-q", "--delta-base-offset", "--window=0"}
	if partial {
		args = append(args, "--missing=allow-any")
	}
	objects := filepath.Join(dir, "objects")
	// Git makes its temporary files in the object directory, which therefore is
	// the new one, and reads the repository as one that it borrows from.
	git := r.git.With("GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quotedPath(filepath.Join(r.CommonDir, "objects")))
	git.Timeout = packTimeout
	out, err := git.Output(ctx, strings.NewReader(revs), append(args, filepath.Join(objects, "pack", "pack"))...)
	if err != nil {
		return nil, fmt.Errorf("pack the history of %s: %w", reach.Commit, withErrno(err))
	}
	for name := range strings.FieldsSeq(string(out)) {
		if err := r.Format.Check(name); err != nil {
			return nil, fmt.Errorf("pack the history of %s: git answered %q", reach.Commit, out)
		}
		names = append(names, "pack-"+name)
	}
	return names, nil
}

// quotedPath is a path as lists of object directories hold it, in which a colon
// of its own would end it.
func quotedPath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// withErrno adds what a full disk is called to an error of git's, which knows it
// by its words only.
func withErrno(err error) error {
	failed, ok := errors.AsType[*program.Error](err)
	if !ok {
		return err
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if strings.Contains(strings.ToLower(failed.Stderr), errno.Error()) {
			return fmt.Errorf("%w: %w", err, errno)
		}
	}
	return err
}

// Partial reports whether the repository is a partial clone, which may lack
// objects that it knows of.
func (r *Repo) Partial() (bool, error) {
	dirs, err := r.ObjectDirs()
	if err != nil {
		return false, err
	}
	for _, dir := range dirs {
		if len(dirglob.Find(filepath.Join(dir, "pack"), "*.promisor")) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Absent counts the files and folders of a commit that a partial clone has not
// fetched.
func (r *Repo) Absent(ctx context.Context, commit string) (int, error) {
	if err := r.Format.Check(commit); err != nil {
		return 0, fmt.Errorf("look for what is not fetched: %w", err)
	}
	out, err := r.git.Output(ctx, nil, "rev-list", "--objects", "--no-object-names", "--missing=print", commit+"^{tree}")
	if err != nil {
		return 0, fmt.Errorf("look for what of %s is not fetched: %w", commit, err)
	}
	absent := 0
	for line := range strings.Lines(string(out)) {
		if line[0] == '?' {
			absent++
		}
	}
	return absent, nil
}

// ShallowFor is what git has to know about where a shallow clone ends for the
// history of one commit, nil if that is complete.
func (r *Repo) ShallowFor(ctx context.Context, commit string) ([]byte, error) {
	all, err := r.Shallow()
	if err != nil || all == nil {
		return nil, err
	}
	if err := r.Format.Check(commit); err != nil {
		return nil, fmt.Errorf("look where the history ends: %w", err)
	}
	out, err := r.git.Output(ctx, nil, "rev-list", "--max-parents=0", commit)
	if err != nil {
		return nil, fmt.Errorf("look where the history of %s ends: %w", commit, err)
	}
	ends := strings.Fields(string(all))
	var list strings.Builder
	for root := range strings.FieldsSeq(string(out)) {
		if slices.Contains(ends, root) {
			list.WriteString(root + "\n")
		}
	}
	if list.Len() == 0 {
		return nil, nil
	}
	return []byte(list.String()), nil
}

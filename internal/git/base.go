package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Base is what a run starts from.
type Base struct {
	Branch string // short name, empty when HEAD is detached
	Commit string
	Tree   string // always the tree of Commit
}

// Base resolves a branch by its short or full name, or HEAD if branch is
// empty. An unknown branch and a repository without commits are a *loop.Fault.
func (r *Repo) Base(ctx context.Context, branch string) (Base, error) {
	branch = strings.TrimPrefix(branch, headPrefix)
	rev := headPrefix + branch
	if branch == "" {
		var err error
		if rev, err = r.headName(ctx); err != nil {
			return Base{}, fmt.Errorf("resolve HEAD: %w", err)
		}
	} else if err := CheckRef(rev); err != nil {
		return Base{}, r.unknownBranch(ctx, branch, err)
	}
	b, err := r.resolveBase(ctx, rev)
	if errors.Is(err, loop.ErrNotFound) {
		return Base{}, r.unknownBranch(ctx, branch, err)
	}
	if err != nil {
		return Base{}, fmt.Errorf("resolve %s: %w", rev, err)
	}
	if rev != "HEAD" {
		b.Branch = strings.TrimPrefix(rev, headPrefix)
	}
	return b, nil
}

// resolveBase returns the commit of a ref and its tree. If git has to say what the ref
// is, it is asked for the commit before and after the tree: if the ref moved in between,
// they would not match.
func (r *Repo) resolveBase(ctx context.Context, rev string) (b Base, err error) {
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if CheckRef(rev) == nil {
		if id, known := r.refInFiles(rev); known && id != "" {
			found, err := blobs.Resolve(id+"^{commit}", id+"^{tree}")
			if err != nil {
				return b, err
			}
			if found[0].ID != "" && found[1].ID != "" {
				return Base{Commit: found[0].ID, Tree: found[1].ID}, nil
			}
		}
	}
	for range 5 {
		found, err := blobs.Resolve(rev+"^{commit}", rev+"^{tree}", rev+"^{commit}")
		if err != nil {
			return b, err
		}
		if found[0].ID == "" || found[1].ID == "" {
			return b, fmt.Errorf("%s names no commit: %w", rev, loop.ErrNotFound)
		}
		if found[0].ID == found[2].ID {
			return Base{Commit: found[0].ID, Tree: found[1].ID}, nil
		}
	}
	return b, errors.New("it moves faster than it can be read")
}

// headName returns the ref that is checked out, or HEAD if no branch is. It reads
// the files of the repository, and asks git only if they are not enough.
func (r *Repo) headName(ctx context.Context) (string, error) {
	head, _ := readSymbolicRef(filepath.Join(r.GitDir, "HEAD"))
	if CheckRef(head) == nil {
		if next, err := readSymbolicRef(filepath.Join(r.CommonDir, filepath.FromSlash(head))); err == nil && next == "" {
			return head, nil
		}
	}
	out, err := r.git.Output(ctx, nil, "rev-parse", "--symbolic-full-name", "HEAD")
	if program.Status(err) != 0 {
		return "HEAD", nil // It names a branch without commits, or none.
	}
	name := cmp.Or(strings.TrimSpace(string(out)), "HEAD")
	if err == nil && name != "HEAD" && refRule(name) != "" {
		err = fmt.Errorf("git answered %q", out)
	}
	return name, err
}

// readSymbolicRef returns the ref that the file of a symbolic ref names, or nothing
// if the file holds an object name or does not exist. A link, as old versions of git
// wrote, is an error.
func readSymbolicRef(file string) (string, error) {
	f, info, err := safeopen.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, min(info.Size(), 2048))
	if _, err := io.ReadFull(f, text); err != nil {
		return "", err
	}
	ref, isRef := strings.CutPrefix(string(text), "ref:")
	if !isRef {
		return "", nil
	}
	return strings.TrimSpace(ref), nil
}

// unknownBranch says why a branch, or HEAD if branch is empty, did not resolve.
func (r *Repo) unknownBranch(ctx context.Context, branch string, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	refs, err := r.Refs(ctx, headPrefix)
	if err != nil {
		return errors.Join(cause, err)
	}
	if len(refs) == 0 {
		return &loop.Fault{
			Exit: loop.ExitNotFound, What: r.Root + " has no commits",
			Fix: "make the first commit: {1} && {2}", Err: loop.ErrNotFound,
			Actions: []loop.Command{loop.HostCommand("git", "add", "-A"), loop.HostCommand("git", "commit")},
		}
	}
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, strings.TrimPrefix(ref.Name, headPrefix))
	}
	near := strings.Join(nearestNames(branch, names), ", ")
	if branch == "" {
		return &loop.Fault{
			Exit: loop.ExitNotFound, What: "HEAD of " + r.Root + " names no commit",
			Fix: "commit something first, or name a branch: " + near, Err: loop.ErrNotFound,
		}
	}
	if slices.Contains(names, branch) {
		return fmt.Errorf("resolve branch %s: %w", branch, cause)
	}
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no branch %q in %s", branch, r.Root),
		Fix: "use one of: " + near, Err: loop.ErrNotFound,
	}
}

// nearestNames returns the three names that take the fewest edits from want.
func nearestNames(want string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(editDistance(want, a), editDistance(want, b))
	})
	return sorted[:min(3, len(sorted))]
}

// editDistance is the number of single-byte edits between two names, of which only
// the first 64 bytes count.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a[:min(64, len(a))]), strings.ToLower(b[:min(64, len(b))])
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
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
	rev, args := "HEAD", []string{"--symbolic-full-name", "HEAD"}
	if branch != "" {
		rev, args = headPrefix+branch, nil
		if err := CheckRef(rev); err != nil {
			return Base{}, r.unknownBranch(ctx, branch, err)
		}
	}
	// The commit is asked twice, around its tree: a ref that moves in between
	// would otherwise give a commit with another commit's tree.
	args = append([]string{"rev-parse", rev + "^{commit}", rev + "^{tree}", rev + "^{commit}"}, args...)
	for range 5 {
		out, err := r.git(ctx, nil, args...)
		if err != nil {
			return Base{}, r.unknownBranch(ctx, branch, err)
		}
		lines := strings.Fields(string(out))
		if len(lines) < 3 {
			return Base{}, fmt.Errorf("resolve %s: git answered %q", rev, out)
		}
		if lines[0] != lines[2] {
			continue
		}
		if len(lines) > 3 && lines[3] != "HEAD" {
			branch = strings.TrimPrefix(lines[3], headPrefix)
		}
		return Base{Branch: branch, Commit: lines[0], Tree: lines[1]}, nil
	}
	return Base{}, fmt.Errorf("resolve %s: it moves faster than it can be read", rev)
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
			Fix: "commit something first", Err: loop.ErrNotFound,
		}
	}
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, strings.TrimPrefix(ref.Name, headPrefix))
	}
	near := strings.Join(nearest(branch, names), ", ")
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

// nearest returns the three names that take the fewest edits from want.
func nearest(want string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(distance(want, a), distance(want, b))
	})
	return sorted[:min(3, len(sorted))]
}

// distance is the number of single-byte edits between two names, of which only
// the first 64 bytes count.
func distance(a, b string) int {
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

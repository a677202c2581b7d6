package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
)

// Commit is a commit as a history lists it.
type Commit struct {
	ID      string
	Parents []string
	When    time.Time // of the committer
	Message string
}

// History lists the commits that are in the history of a revision and not in that of
// another one, newest first, at most so many; an empty other revision is that of nothing.
// With a path it lists only commits that changed the path, which may be a folder. Both
// revisions are full object names, HEAD or full ref names.
func (r *Repo) History(ctx context.Context, rev, not, path string, most int) ([]Commit, error) {
	args := []string{"log", "-z", "--no-show-signature", "--no-notes", "--no-color", "--format=%H%x1f%P%x1f%ct%x1f%B", "-n", strconv.Itoa(most)}
	for _, name := range []string{rev, not} {
		if name == "" {
			continue
		}
		if err := r.checkRevision(name); err != nil {
			return nil, fmt.Errorf("list commits: %w", err)
		}
	}
	args = append(args, rev)
	if not != "" {
		args = append(args, "^"+not)
	}
	args = append(args, "--")
	if path != "" {
		if err := object.CheckPath(path); err != nil {
			return nil, fmt.Errorf("list commits: %w", err)
		}
		args = append(args, path)
	}
	out, err := r.git.Output(ctx, nil, args...)
	if err != nil {
		return nil, fmt.Errorf("list commits of %s: %w", rev, err)
	}
	var list []Commit
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		fields := strings.SplitN(record, "\x1f", 4)
		if len(fields) != 4 {
			continue
		}
		seconds, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || r.Format.Check(fields[0]) != nil {
			return nil, fmt.Errorf("list commits of %s: unexpected record %q", rev, record)
		}
		list = append(list, Commit{ID: fields[0], Parents: strings.Fields(fields[1]), When: time.Unix(seconds, 0).UTC(), Message: fields[3]})
	}
	return list, nil
}

// Ahead counts the commits that one revision has and another one has not.
func (r *Repo) Ahead(ctx context.Context, rev, of string) (int, error) {
	for _, one := range []string{rev, of} {
		if err := r.checkRevision(one); err != nil {
			return 0, fmt.Errorf("count commits: %w", err)
		}
	}
	out, err := r.git.Output(ctx, nil, "rev-list", "--count", rev, "^"+of, "--")
	if err != nil {
		return 0, fmt.Errorf("count commits of %s beside %s: %w", rev, of, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

func (r *Repo) checkRevision(rev string) error {
	if rev == "HEAD" || r.Format.Check(rev) == nil {
		return nil
	}
	return CheckRef(rev)
}

// MergeBase returns the best common ancestor of two commits; empty: they have none.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	for _, id := range []string{a, b} {
		if err := r.Format.Check(id); err != nil {
			return "", fmt.Errorf("find a common ancestor: %w", err)
		}
	}
	out, err := r.git.Output(ctx, nil, "merge-base", a, b)
	if program.Status(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find a common ancestor of %s and %s: %w", a, b, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Stashes lists the commits of the stashes, newest first, at most so many.
func (r *Repo) Stashes(ctx context.Context, most int) ([]string, error) {
	refs, err := r.forEachRef(ctx, "refs/stash")
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	out, err := r.git.Output(ctx, nil, "log", "-g", "--format=%H", "-n", strconv.Itoa(most), "refs/stash", "--")
	if err != nil {
		return nil, fmt.Errorf("list stashes: %w", err)
	}
	return strings.Fields(string(out)), nil
}

package git

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
)

// Commit writes a commit of an existing tree and returns its name. No ref
// points to it. The message is cleaned by CleanMessage.
func (r *Repo) Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error) {
	args := []string{"commit-tree", tree}
	for _, id := range append([]string{tree}, parents...) {
		if err := r.Format.Check(id); err != nil {
			return "", fmt.Errorf("commit tree %s: %w", tree, err)
		}
	}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	date := fmt.Sprintf("@%d +0000", max(0, when.Unix())) // Git has no dates before 1970.
	out := &program.Bounded{Limit: 1 << 10}
	dated := r.git.With("GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	if err := dated.Pipe(ctx, strings.NewReader(object.CleanMessage(message)), out, args...); err != nil {
		return "", fmt.Errorf("commit tree %s: %w", tree, err)
	}
	id := strings.TrimSpace(out.String())
	return id, r.Format.Check(id)
}

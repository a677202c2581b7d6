package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/pawl-run/pawl/internal/git/object"
)

// Changes compares the directory with the tree that it was made from, and returns the
// differences, sorted by path: deletions, and files and links with the object name of
// their content. Of the mode of a file only the owner's executable bit counts. What was
// pushed and has not changed is not a difference. Files that match their mark are not
// read. The .git at the top is the agent's own temporary directory and is skipped.
//
// Changes makes files and directories that it has to read readable for their owner.
func (t *Tree) Changes(ctx context.Context) ([]object.FileChange, []Problem, error) {
	j := judge{ctx: ctx, repo: t.trees.repo, dir: t.form.writableDir(), limits: t.trees.options.Limits}
	info, err := os.Lstat(j.dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", j.dir)
	}
	if err == nil {
		defer j.closeFilled()
		err = j.openFilled(t.pushed, t.filled)
	}
	if err == nil {
		err = t.form.scanWritten(&j, info)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compare tree %s: %w", t.Name, err)
	}
	slices.SortFunc(j.changes, func(a, b object.FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return j.changes, j.problems, nil
}

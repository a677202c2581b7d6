package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestALookAtAFolderWithManyFilesEndsWithItsContext(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	var stop context.CancelCauseFunc
	why := errors.New("the switch")
	asked := 0
	skip := func(paths []string) []bool {
		if asked += len(paths); stop != nil {
			stop(why)
		}
		return make([]bool, len(paths))
	}
	tree, err := New(t.TempDir(), repo, Options{Limits: Limits{Skip: skip}}).Make(t.Context(), "x", base.Commit)
	must(t, err)
	const files = 20 * atOnce
	for i := range files {
		must(t, os.WriteFile(filepath.Join(tree.Dir, fmt.Sprintf("f%05d", i)), nil, 0o644))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop = cancel
	if _, _, err := tree.Changes(ctx); !errors.Is(err, why) || asked > 2*atOnce {
		t.Errorf("Changes = %v after %d of %d files, want the cause after no more than %d", err, asked, files, 2*atOnce)
	}
	// Work is not lost: the next look, with a context of its own, sees all of it.
	stop = nil
	changes, _, err := tree.Changes(t.Context())
	if err != nil || len(changes) != files {
		t.Errorf("%d changes, %v, want %d", len(changes), err, files)
	}
}

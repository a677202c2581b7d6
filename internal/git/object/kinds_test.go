//go:build unix

package object

import (
	"io"
	"testing"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

// What is asked for as one kind of object and is another has no content to believe.
func TestAnObjectOfAnotherKindIsNotRead(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"d/f": "x"})
	commit, tree, blob := gittest.Run(t, dir, "rev-parse", "HEAD"), gittest.Run(t, dir, "rev-parse", "HEAD^{tree}"), gittest.Run(t, dir, "rev-parse", "HEAD:d/f")
	ignore := func(int, int64, io.Reader) error { return nil }
	for name, read := range map[string]func(b *Blobs) error{
		"the content of a tree":    func(b *Blobs) error { return b.Each([]string{tree}, ignore) },
		"the content of a commit":  func(b *Blobs) error { _, err := b.Read(commit); return err },
		"the files of a file":      func(b *Blobs) error { _, _, err := b.Tree(blob); return err },
		"the folders of a file":    func(b *Blobs) error { _, _, err := b.Within(blob, 1, func(string) bool { return true }); return err },
		"what a file adds":         func(b *Blobs) error { _, _, err := b.Added(blob, commit); return err },
		"what is added to a file":  func(b *Blobs) error { _, _, err := b.Added(commit, blob); return err },
		"how a file differs":       func(b *Blobs) error { _, err := b.Differ(blob, tree, 10, 10); return err },
		"how a tree is not a file": func(b *Blobs) error { _, err := b.Differ(tree, blob, 10, 10); return err },
	} {
		b, err := open(t, dir).Blobs(t.Context())
		must(t, err)
		if err := read(b); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = b.Close() // Its process ended with the error.
	}
}

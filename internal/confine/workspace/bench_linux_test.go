package workspace

import (
	"fmt"
	"testing"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
)

// BenchmarkFiftyThousandFiles is what one turn costs in a large repository.
func BenchmarkFiftyThousandFiles(b *testing.B) {
	dir := benchRepo(b, 50_000)
	benchGit(b, dir, "repack", "-adq")
	repo, err := git.Open(b.Context(), dir)
	must(b, err)
	base, err := repo.Base(b.Context(), "")
	must(b, err)
	b.Run("first base", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			trees := layeredTrees(b, repo, Limits{})
			b.StartTimer()
			tree, err := trees.Make(b.Context(), "x", base.Commit)
			must(b, err)
			b.StopTimer()
			must(b, tree.Remove(b.Context()))
			b.StartTimer()
		}
	})
	trees := layeredTrees(b, repo, Limits{})
	tree, err := trees.Make(b.Context(), "act", base.Commit)
	must(b, err)
	for i := range 10 {
		write(b, layersOf(tree).upper, map[string]string{fmt.Sprintf("d%d/f%d.go", i, i): "edited"})
	}
	b.Run("make, change ten files, look, remove", func(b *testing.B) {
		for b.Loop() {
			tree, err := trees.Make(b.Context(), "x", base.Commit)
			must(b, err)
			for i := range 10 {
				write(b, layersOf(tree).upper, map[string]string{fmt.Sprintf("d%d/f%d.go", i, i): "edited"})
			}
			list, _, err := tree.Changes(b.Context())
			if err != nil || len(list) != 10 {
				b.Fatalf("%d changes, %v", len(list), err)
			}
			must(b, tree.Remove(b.Context()))
		}
	})
	list, _, err := tree.Changes(b.Context())
	must(b, err)
	n := 0
	b.Run("delta", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			n++
			c, err := repo.Candidate(b.Context(), object.Draft{Base: base.Commit, Changes: list[:9], Message: fmt.Sprint(n)})
			must(b, err)
			must(b, trees.layerCache().dropLayer(b.Context(), c.Tree+"-"+base.Tree))
			b.StartTimer()
			gate, err := trees.Make(b.Context(), "gate", c.Commit)
			must(b, err)
			b.StopTimer()
			must(b, gate.Remove(b.Context()))
			b.StartTimer()
		}
	})
	benchPool(b, pooledTrees(b, repo), base.Commit)
	benchStatus(b, tree)
}

func benchPool(b *testing.B, trees *Trees, commit string) {
	b.Helper()
	tree, err := trees.Make(b.Context(), "x", commit)
	must(b, err)
	must(b, tree.Remove(b.Context()))
	b.Run("a parked copy, made and removed", func(b *testing.B) {
		for b.Loop() {
			tree, err := trees.Make(b.Context(), "x", commit)
			must(b, err)
			must(b, tree.Remove(b.Context()))
		}
	})
}

func benchStatus(b *testing.B, tree *Tree) {
	b.Helper()
	m := mount(b, b, tree, nil)
	b.Run("git status inside", func(b *testing.B) {
		for b.Loop() {
			m.run(b, "git status --porcelain")
		}
	})
}

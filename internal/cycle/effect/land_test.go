//go:build unix

package effect_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAttack109ACommitWithAnotherTreeThanTheGatedOneNeverLands(t *testing.T) {
	b := newBench(t)
	when := time.Unix(1_700_000_000, 0)
	writeFile(t, filepath.Join(b.dir, "a.txt"), "never gated\n")
	gittest.Run(t, b.dir, "add", "-A")
	other := gittest.Run(t, b.dir, "write-tree")
	gittest.Run(t, b.dir, "reset", "-q", "--hard")
	for name, merge := range map[string]string{"by a fast-forward": "", "by a merge": "true"} {
		t.Run(name, func(t *testing.T) {
			commit, err := b.repo.Commit(t.Context(), other, []string{b.parent}, "m", when)
			if err != nil {
				t.Fatal(err)
			}
			e := loop.Effect{Kind: effect.KindLand, Key: "k", Args: map[string]string{
				effect.ArgBase: "main", effect.ArgOnto: b.parent, effect.ArgCommit: commit, effect.ArgTree: b.gated, effect.ArgMerge: merge,
				effect.ArgMessage: "m", effect.ArgWhen: when.UTC().Format(time.RFC3339), effect.ArgBranch: "pawl/x/1",
			}}
			land := effect.NewLand(b.repo)
			if got, err := land.Apply(t.Context(), e, yes); err == nil {
				t.Errorf("landed %v", got)
			}
			if found, err := land.Look(t.Context(), e); err == nil || found.Applied {
				t.Errorf("found %+v, %v, want an error", found, err)
			}
			if tip := gittest.Run(t, b.dir, "rev-parse", "main"); tip != b.parent {
				t.Errorf("main is at %s, was %s", tip, b.parent)
			}
		})
	}
}

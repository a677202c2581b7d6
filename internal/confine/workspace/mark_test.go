//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAMarkOfTheTickOfItsSealProvesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	must(t, os.WriteFile(name, []byte("1"), 0o644))
	info, err := os.Stat(name)
	must(t, err)
	written, ok := stampOf(info)
	if !ok {
		t.Fatal("the system gives no stamps")
	}
	for what, c := range map[string]struct {
		noted, sealed bool
		now           int64
		want          bool
	}{
		"sealed one nanosecond later":                        {true, true, written.changed + 1, true},
		"sealed in the tick of the write":                    {true, true, written.changed, false},
		"sealed before the write, by a clock that went back": {true, true, written.changed - 1, false},
		"not sealed":             {true, false, 0, false},
		"sealed and never noted": {false, true, written.changed + 1, false},
	} {
		t.Run(what, func(t *testing.T) {
			var m mark
			if c.noted {
				m.setFrom(info)
			}
			if c.sealed {
				m.sealBefore(c.now)
			}
			if got := m.isUntouched(info); got != c.want {
				t.Errorf("the mark of the untouched file holds: %v, want %v", got, c.want)
			}
		})
	}
	t.Run("noted again after the seal", func(t *testing.T) {
		var m mark
		m.setFrom(info)
		m.sealBefore(written.changed + 1)
		m.setFrom(info)
		if m.isUntouched(info) {
			t.Error("a mark that was taken after the seal holds")
		}
	})
}

// A file is written right after its tree was made, as soon as a program can, with
// the size and the time that it had. On kernels whose clock for files ticks every
// few milliseconds that is within the tick of the seal.
func TestAWriteInTheTickOfTheSealIsAChange(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1", "d/b": "2"})
	for name, trees := range map[string]*Trees{"plain": New(t.TempDir(), repo, Options{}), "pooled": pooledTrees(t, repo)} {
		t.Run(name, func(t *testing.T) {
			sure := false
			for end := time.Now().Add(10 * time.Second); !sure && time.Now().Before(end); {
				for range 10 {
					tree, err := trees.Make(t.Context(), "x", base.Commit)
					must(t, err)
					file := filepath.Join(tree.Dir, "a")
					was, err := os.Stat(file)
					must(t, err)
					f, err := os.OpenFile(file, os.O_WRONLY, 0)
					must(t, err)
					_, err = f.WriteString("x")
					must(t, err)
					must(t, f.Close())
					must(t, os.Chtimes(file, was.ModTime(), was.ModTime()))
					if c, p := changes(t, tree); short(c) != "M a" || p != nil {
						t.Fatalf("changes %s, %v, want M a", short(c), p)
					}
					sure = sure || markOf(tree, "d/b").sure
					must(t, tree.Remove(t.Context()))
				}
			}
			if !sure {
				t.Error("no mark was ever sure: each file of each tree is read")
			}
		})
	}
}

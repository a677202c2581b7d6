//go:build unix

package hazard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestWhatCannotBeReadIsRefusedAndNeverBlocks(t *testing.T) {
	cases := map[string]func(dir string){
		"syntax":      func(dir string) { gittest.Write(t, dir, map[string]string{".git/config": "[core\n"}) },
		"a NUL":       func(dir string) { gittest.Write(t, dir, map[string]string{".git/config": "[a]\nb = \x00\n"}) },
		"a FIFO":      func(dir string) { must(t, os.Remove(dir+"/.git/config")); fifo(t, dir+"/.git/config") },
		"a directory": func(dir string) { must(t, os.Mkdir(dir+"/.git/config.worktree", 0o755)) },
		"too much":    func(dir string) { must(t, os.Truncate(dir+"/.git/config", gitdir.MaxRead+1)) },
		"a circle": func(dir string) {
			gittest.Run(t, dir, "config", "include.path", "circle")
			must(t, os.Symlink("circle", dir+"/.git/circle"))
		},
		"packed refs":    func(dir string) { fifo(t, dir+"/.git/packed-refs") },
		"too many hooks": func(dir string) { writeMany(t, dir+"/.git/hooks", maxEntries+1) },
		"hooks is a file": func(dir string) {
			must(t, os.RemoveAll(dir+"/.git/hooks"))
			gittest.Write(t, dir, map[string]string{".git/info/alternates": "x", ".git/info/grafts": "x"})
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"f": "x"})
			r := open(t, dir)
			make(dir)
			if found := hazards(t, r); !slices.ContainsFunc(found, func(h Hazard) bool { return h.Refuse }) {
				t.Errorf("hazards = %+v, want a refusal", found)
			}
		})
	}
}

// Git itself stops there, with an error: whoever reads less would miss a program.
func TestIncludesAndObjectStoresAreFollowedAsDeepAsGitDoes(t *testing.T) {
	refused := func(dir string) (all int, refused []string) {
		for _, h := range hazards(t, open(t, dir)) {
			all++
			if h.Refuse {
				refused = append(refused, h.Key+" "+h.Why)
			}
		}
		return all, refused
	}
	for links, want := range map[int]string{maxIncludes: "", maxIncludes + 1: "include.path includes are nested too deeply"} {
		dir := gittest.Repo(t, nil)
		files := map[string]string{}
		for i := range links {
			files[fmt.Sprintf(".git/c%d", i)] = fmt.Sprintf("[include]\n\tpath = c%d\n", i+1)
		}
		files[".git/config"] = "[core]\n\tbare = false\n" + files[".git/c0"]
		delete(files, ".git/c0")
		files[fmt.Sprintf(".git/c%d", links)] = "[user]\n\tname = x\n"
		gittest.Write(t, dir, files)
		if all, got := refused(dir); all != links || strings.Join(got, "; ") != want {
			t.Errorf("%d includes: %d found, %q refused, want %q", links, all, got, want)
		}
	}
	for links, want := range map[int]string{maxIncludes + 1: "", maxIncludes + 2: "objects/info/alternates object stores are nested too deeply"} {
		dir := gittest.Repo(t, nil)
		files := map[string]string{}
		for i := range links {
			name := fmt.Sprintf(".git/objects%d/info/alternates", i)
			if i == 0 {
				name = ".git/objects/info/alternates"
			}
			files[name] = fmt.Sprintf("../objects%d\n", i+1)
		}
		gittest.Write(t, dir, files)
		if all, got := refused(dir); all != links || strings.Join(got, "; ") != want {
			t.Errorf("%d stores: %d found, %q refused, want %q", links, all, got, want)
		}
	}
	dir := gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{".git/objects/info/http-alternates": "https://example.org/objects\n"})
	if all, got := refused(dir); all != 1 || len(got) != 1 || got[0] != "objects/info/http-alternates objects come from another host" {
		t.Errorf("objects of another host: %q", got)
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}

func writeMany(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("x%d", i)), nil, 0o600))
	}
}

func TestAFingerprintChangesWithEveryValueAndWithNothingElse(t *testing.T) {
	dir, _ := gittest.Hostile(t)
	r := open(t, dir)
	before := hazards(t, r)
	shuffled := slices.Clone(before)
	slices.Reverse(shuffled)
	if Fingerprint(before) != Fingerprint(shuffled) || len(Changed(before, shuffled)) > 0 {
		t.Error("the order changes the fingerprint")
	}
	gittest.Run(t, dir, "config", "user.name", "somebody")
	if now := hazards(t, r); Fingerprint(now) != Fingerprint(before) {
		t.Errorf("a harmless key changes the fingerprint: %+v", Changed(before, now))
	}
	long := strings.Repeat("x", 1000)
	seen := map[string]bool{Fingerprint(before): true, Fingerprint(nil): true}
	for _, value := range []string{"a", "b", "a ", "a\n", long, long + "y", "ä", "\\303\\244", "\xff"} {
		gittest.Run(t, dir, "config", "core.pager", value)
		now := hazards(t, r)
		if seen[Fingerprint(now)] {
			t.Errorf("the fingerprint of %.20q is an old one", value)
		}
		seen[Fingerprint(now)] = true
		if diff := Changed(before, now); len(diff) != 1 || diff[0].Key != "core.pager" {
			t.Errorf("Changed = %+v, want core.pager", diff)
		}
	}
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	must(t, os.Remove(hook))
	must(t, os.WriteFile(hook, []byte("another"), 0o755))
	if now := hazards(t, r); len(Changed(before, now)) != 2 {
		t.Errorf("Changed = %+v, want the pager and the hook", Changed(before, now))
	}
}

func TestAHazardIsOneBoundedLineWithoutASecret(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "text")
		got := Printable(text)
		if len(got) > maxText+60 || strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsPrint(c) }) {
			rt.Errorf("Printable(%q) = %q", text, got)
		}
	})
	if got := Printable("url.https://bob:hunter2@example.org/.insteadof"); strings.Contains(got, "hunter2") {
		t.Errorf("printable = %q", got)
	}
}

func TestWhatIsFoundIsShownWithoutSecretsAndEscapes(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{
		".git/config":           "[http \"\x1b[2J\"]\n\tproxy = https://bob:hunter2@example.org\n[core]\n\tbare = false\n",
		".git/hooks/\x1b[2Jpre": "x",
	})
	found := hazards(t, open(t, dir))
	if len(found) != 2 {
		t.Errorf("found %+v, want the proxy and the hook", found)
	}
	for _, h := range found {
		if text := h.Key + h.Where + h.Value; strings.Contains(text, "hunter2") || strings.Contains(text, "\x1b") {
			t.Errorf("shown as %q", text)
		}
	}
}

// Each file is read once, however often it is named.
func TestAFileThatIncludesItselfIsNamedOnce(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{
		".git/config": "[include]\n\tpath = more\n", ".git/more": "[include]\n\tpath = more\n[core]\n\tpager = x\n",
	})
	var got []string
	for _, h := range hazards(t, open(t, dir)) {
		if h.Refuse {
			t.Errorf("%+v is refused", h)
		}
		got = append(got, h.Where+" "+h.Key)
	}
	slices.Sort(got)
	if want := []string{".git/config include.path", ".git/more core.pager", ".git/more include.path"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestAScanThatIsCanceledGivesNoAnswer(t *testing.T) {
	dir, _ := gittest.Hostile(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Scan(ctx, open(t, dir)); err == nil {
		t.Error("a canceled scan gave an answer")
	}
}

func BenchmarkHazards(b *testing.B) {
	b.Run("10_packed_refs", func(b *testing.B) { benchmarkHazards(b, 10, 10) })
	b.Run("50000_packed_refs_and_500_branches", func(b *testing.B) { benchmarkHazards(b, 50_000, 500) })
}

func benchmarkHazards(b *testing.B, packed, branches int) {
	b.Helper()
	dir := b.TempDir()
	for _, sub := range []string{"objects", "refs", "hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git", sub), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	var refs strings.Builder
	for i := range packed {
		fmt.Fprintf(&refs, "%040x refs/remotes/origin/branch-%d\n", i, i)
	}
	config := "[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = more\n" + strings.Repeat("[branch \"b\"]\n\tremote = origin\n\tmerge = refs/heads/b\n", branches)
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": config, "more": "[alias]\nx = !y\n", "packed-refs": refs.String(), "hooks/pre-commit": "x"} {
		if err := os.WriteFile(filepath.Join(dir, ".git", name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	r, err := gitdir.Find(dir)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if found, err := Scan(b.Context(), r); err != nil || len(found) != 3 {
			b.Fatalf("hazards = %+v, %v", found, err)
		}
	}
}

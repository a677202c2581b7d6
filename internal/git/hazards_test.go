//go:build unix

package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func hazards(t *testing.T, r *Repo) []hazard.Hazard {
	t.Helper()
	found, err := hazard.Scan(t.Context(), r.Dirs)
	must(t, err)
	return found
}

// find returns the first hazard with this kind and key.
func find(found []hazard.Hazard, kind, key string) (hazard.Hazard, bool) {
	i := slices.IndexFunc(found, func(h hazard.Hazard) bool { return h.Kind == kind && h.Key == key })
	if i < 0 {
		return hazard.Hazard{}, false
	}
	return found[i], true
}

func TestAttack032EveryExecutingKeyIsNamedAndNoneRuns(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	r := open(t, dir)
	found := hazards(t, r)
	for _, key := range []string{
		"core.fsmonitor", "core.hookspath", "core.pager", "core.editor", "core.sshcommand", "core.gitproxy", "core.askpass",
		"core.alternaterefscommand", "remote.origin.uploadpack", "remote.origin.url", "filter.evil.clean", "filter.evil.smudge",
		"filter.evil.process", "diff.external", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "gpg.program",
		"gpg.ssh.program", "gpg.ssh.defaultkeycommand", "pager.ls-tree", "credential.helper", "alias.ls-tree", "gc.recentobjectshook",
		"sequence.editor", "uploadpack.packobjectshook", "trailer.x.cmd", "trailer.x.command", "tar.tar.command", "hook.x.command",
		"interactive.difffilter", "submodule.s.update",
	} {
		h, ok := find(found, hazard.Executes, key)
		if !ok || h.Refuse || h.Value == "" || h.Where != ".git/config" {
			t.Errorf("%s: %+v, %v, want it recorded", key, h, ok)
		}
	}
	for kind, keys := range map[string][]string{
		hazard.Leads:      {"protocol.allow", "protocol.ext.allow", "trace2.eventtarget", "core.attributesfile", "remote.origin.promisor"},
		hazard.Extension:  {"extensions.partialclone", "extensions.worktreeconfig"},
		hazard.Include:    {"include.path"},
		hazard.Attributes: {"info/attributes"},
	} {
		for _, key := range keys {
			if _, ok := find(found, kind, key); !ok {
				t.Errorf("%s %s is not named", kind, key)
			}
		}
	}
	if h, _ := find(found, hazard.Leads, "trace2.eventtarget"); h.Where != ".git/more" {
		t.Errorf("what is included is at %q, want .git/more", h.Where)
	}
	callEveryVerb(t, dir)
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

func TestAttack025EveryHookIsNamedAndNoneRuns(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	if len(gittest.Hooks) != 28 {
		t.Fatalf("%d hooks, want 28", len(gittest.Hooks))
	}
	found := hazards(t, open(t, dir))
	for _, name := range gittest.Hooks {
		h, ok := find(found, hazard.Hook, name)
		if !ok || !strings.Contains(h.Value, "sha256:") || !strings.HasPrefix(h.Value, "link to ") {
			t.Errorf("hook %s: %+v, %v, want it recorded with its digest", name, h, ok)
		}
	}
	l := landIn(t, dir)
	if err := l.repo.Advance(t.Context(), l.a); err != nil {
		t.Error(err)
	}
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

// landIn makes a candidate on main of a repository with the file f.
func landIn(t *testing.T, dir string) landing {
	t.Helper()
	r := open(t, dir)
	from := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(from, []byte("landed\r\n"), 0o600))
	c, err := r.Candidate(t.Context(), object.Draft{Base: base(t, r).Commit, Message: "m", When: when, Changes: []object.FileChange{{Path: "f", Mode: object.ModeFile, From: from}}})
	must(t, err)
	return landing{dir, r, Advance{Branch: "main", Onto: base(t, r).Commit, Commit: c.Commit}}
}

func TestAttack026NoFilterRunsWhileLanding(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	l := landIn(t, dir)
	must(t, l.repo.Advance(t.Context(), l.a))
	if got := readFile(t, filepath.Join(dir, "f")); got != "landed\r\n" {
		t.Errorf("f = %q, want it byte for byte", got)
	}
	if dirty, err := l.repo.Dirty(t.Context()); dirty || err != nil {
		t.Errorf("Dirty = %v, %v, want clean", dirty, err)
	}
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

func TestAttack029AnEmbeddedBareRepositoryIsNotEntered(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	marker := filepath.Join(t.TempDir(), "marker")
	evil := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = touch " + marker + "\n"
	gittest.Write(t, dir, map[string]string{
		"sub/HEAD": "ref: refs/heads/main\n", "sub/config": evil, "sub/objects/x": "", "sub/refs/x": "",
		"fake/.GIT/config": evil, "fake/.GIT/HEAD": "ref: refs/heads/main\n",
	})
	if _, err := Open(t.Context(), filepath.Join(dir, "sub")); err == nil {
		t.Error("the repository inside the tree was opened")
	}
	l := landIn(t, dir)
	callEveryVerb(t, dir)
	must(t, l.repo.Advance(t.Context(), l.a))
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the configuration of the repository inside the tree was used")
	}
}

func TestAttack034OddSubmodulesAreNeverEntered(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	marker := filepath.Join(t.TempDir(), "marker")
	r := open(t, dir)
	tip := base(t, r).Commit
	var changes []object.FileChange
	for _, path := range []string{"sub\r", "link", "-u", "a/.g it"} {
		changes = append(changes, object.FileChange{Path: path, Mode: object.ModeGitlink, ID: tip})
	}
	modules := filepath.Join(t.TempDir(), "m")
	must(t, os.WriteFile(modules, []byte("[submodule \"s\"]\n\tpath = \"sub\\r\"\n\turl = ext::touch "+marker+"\n\tupdate = !touch "+marker+"\n"), 0o600))
	changes = append(changes, object.FileChange{Path: ".gitmodules", Mode: object.ModeFile, From: modules})
	c, err := r.Candidate(t.Context(), object.Draft{Base: tip, Message: "m", When: when, Changes: changes})
	must(t, err)
	gittest.Run(t, dir, "config", "submodule.s.update", "!touch "+marker)
	gittest.Run(t, dir, "config", "submodule.recurse", "true")
	gittest.Run(t, dir, "config", "push.recurseSubmodules", "on-demand")
	must(t, os.Symlink(".git/hooks", filepath.Join(dir, "link")))
	wantFault(t, r.Advance(t.Context(), Advance{Branch: "main", Onto: tip, Commit: c.Commit}), 14, "git merge --ff-only")
	must(t, r.Push(t.Context(), Push{To: bareRemote(t), Commit: c.Commit, Ref: pushed}))
	_, conflicts, err := r.Rebase(t.Context(), Replay{Commit: c.Commit, Onto: tip, When: when})
	if err != nil || conflicts != nil {
		t.Errorf("Rebase = %q, %v", conflicts, err)
	}
	if _, ok := find(hazards(t, r), hazard.Executes, "submodule.s.update"); !ok {
		t.Error("the command of the submodule is not named")
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Error("a submodule was entered")
	}
}

func TestAttack038ObjectsAndHistoryFromElsewhereAreRefused(t *testing.T) {
	other := gittest.Repo(t, map[string]string{"o": "other"})
	cases := map[string]struct {
		make   func(dir string)
		kind   string
		refuse bool
	}{
		"alternates outside": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "# c\n" + other + "/.git/objects\n"})
		}, hazard.Alternates, true},
		"a quoted alternate outside": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": `"` + other + `/.git/objects"` + "\n"})
		}, hazard.Alternates, true},
		"a quoted alternate with an escape": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": `"\056./../../objects"` + "\n"})
		}, hazard.Alternates, true},
		"alternates outside by dots": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "../../objects\n"})
		}, hazard.Alternates, true},
		"alternates inside that lead outside": {func(dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, ".git", "more"), 0o755))
			must(t, os.Symlink(other+"/.git/objects", filepath.Join(dir, ".git", "more", "objects")))
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "../more/objects\n"})
		}, hazard.Alternates, true},
		"alternates of alternates": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "../more/objects\n", ".git/more/objects/info/alternates": other + "/.git/objects\n"})
		}, hazard.Alternates, true},
		"alternates inside": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "../more/objects\n", ".git/more/objects/x": ""})
		}, hazard.Alternates, false},
		"grafts": {func(dir string) {
			gittest.Write(t, dir, map[string]string{".git/info/grafts": gittest.Run(t, dir, "rev-parse", "HEAD") + "\n"})
		}, hazard.Graft, true},
		"a replace ref": {func(dir string) {
			gittest.Run(t, dir, "replace", "HEAD", gittest.Run(t, dir, "commit-tree", "-m", "other", "HEAD^{tree}"))
		}, hazard.Replace, false},
		"a packed replace ref": {func(dir string) {
			gittest.Run(t, dir, "replace", "HEAD", gittest.Run(t, dir, "commit-tree", "-m", "other", "HEAD^{tree}"))
			gittest.Run(t, dir, "pack-refs", "--all")
		}, hazard.Replace, false},
		"objects are a link": {func(dir string) {
			objects := filepath.Join(dir, ".git", "objects")
			must(t, os.Rename(objects, filepath.Join(other, filepath.Base(filepath.Dir(filepath.Dir(dir))))))
			must(t, os.Symlink(filepath.Join(other, filepath.Base(filepath.Dir(filepath.Dir(dir)))), objects))
		}, hazard.Leads, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"f": "x"})
			r := open(t, dir)
			b := base(t, r)
			c.make(dir)
			found := hazards(t, r)
			i := slices.IndexFunc(found, func(h hazard.Hazard) bool { return h.Kind == c.kind && h.Refuse == c.refuse })
			if i < 0 || slices.ContainsFunc(found, func(h hazard.Hazard) bool { return h.Refuse }) != c.refuse {
				t.Errorf("hazards = %+v, want %s, refused: %v", found, c.kind, c.refuse)
			}
			if got := base(t, r); got != b {
				t.Errorf("base = %+v, want %+v as the commits say", got, b)
			}
		})
	}
}

func TestAttack040AMessageOfAnythingBecomesACleanOne(t *testing.T) {
	r := open(t, gittest.Repo(t, map[string]string{"f": "x"}))
	b := base(t, r)
	c := commitOf(t, r, b.Commit, version{"f": "y"})
	message := "subject\x00\x1b[2J\n# a line\n" + strings.Repeat("x", 1<<20)
	got, _, err := r.Rebase(t.Context(), Replay{Commit: c, Onto: b.Commit, Message: message, When: when})
	must(t, err)
	text := gittest.Run(t, r.Root, "log", "-1", "--format=%B", got.Commit)
	if len(text) > object.MaxMessage || !strings.HasPrefix(text, "subject[2J\n# a line\n") {
		t.Errorf("message of %d bytes: %.60q", len(text), text)
	}
}

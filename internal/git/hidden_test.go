//go:build unix

package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

// Without its index nobody knows what a person has in the checkout, and a branch
// that moves alone would leave files behind that look like a person's work.
func TestABranchIsNotMovedWhereTheIndexCannotBeRead(t *testing.T) {
	g := newGiven(t)
	r := open(t, g.dir)
	a := Advance{Branch: "main", Onto: g.base.Commit, Commit: g.next}
	path := filepath.Join(g.dir, ".git/index")
	for name, spoil := range map[string]func() error{
		"a link to itself": func() error { return os.Symlink("index", path) },
		"a folder":         func() error { return os.Mkdir(path, 0o700) },
		"something else":   func() error { return os.WriteFile(path, []byte(strings.Repeat("x", 200)), 0o600) },
	} {
		must(t, os.RemoveAll(path))
		must(t, spoil())
		for verb, err := range map[string]error{"Advance": r.Advance(t.Context(), a), "CanAdvance": r.CanAdvance(t.Context(), a)} {
			if err == nil {
				t.Errorf("%s: %s = no error", name, verb)
			}
		}
		if tip := gittest.Run(t, g.dir, "rev-parse", "main"); tip != g.base.Commit {
			t.Fatalf("%s: main moved to %s", name, tip)
		}
	}
}

func TestABranchIsNotMovedWhereItsCheckoutIsGone(t *testing.T) {
	g := newGiven(t)
	top := filepath.Join(t.TempDir(), "side")
	gittest.Run(t, g.dir, "worktree", "add", "-q", "-b", "side", top)
	r := open(t, top)
	must(t, os.RemoveAll(top))
	if err := r.Advance(t.Context(), Advance{Branch: "side", Onto: g.base.Commit, Commit: g.next}); err == nil {
		t.Error("a branch was moved without its checkout")
	}
	if tip := gittest.Run(t, g.dir, "rev-parse", "side"); tip != g.base.Commit {
		t.Errorf("side moved to %s", tip)
	}
}

// Pawl reads the words of git, which it says in the user's language otherwise.
func TestTheUsersEnvironmentReachesARemoteWithoutLanguageAndPlaces(t *testing.T) {
	user := []string{"HOME=/home/u", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de", "GIT_DIR=/elsewhere", "SSH_AUTH_SOCK=/s"}
	wanted := map[string]string{
		"HOME": "/home/u", "LC_ALL": "C", "LANGUAGE": "", "GIT_DIR": "/scratch", "SSH_AUTH_SOCK": "/s", "GIT_WORK_TREE": "/scratch",
		"GIT_ALLOW_PROTOCOL": "ssh", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_ATTR_NOSYSTEM": "1",
	}
	for _, name := range []string{
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
		"GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_EXEC_PATH",
	} {
		user, wanted[name] = append(user, name+"=the user's"), "the user's"
	}
	env := Remote{Environ: user}.environ("/scratch", "ssh")
	for name, want := range wanted {
		var got []string // A program sees the first of several.
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				got = append(got, value)
			}
		}
		if strings.Join(got, " and ") != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if user[1] != "LC_ALL=de_DE.UTF-8" {
		t.Error("the environment of the caller was changed")
	}
}

func TestTheReasonOfARemoteIsItsFirstFourLines(t *testing.T) {
	if got := firstLines("\n one \n\ntwo\nthree\x1b[2J\nfour\nfive\n"); got != `one; two; three\x1b[2J; four` {
		t.Errorf("reason = %q", got)
	}
}

func TestNamesAreNearByTheEditsBetweenThem(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"main", "main", 0},
		{"main", "MAIN", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"main", "man", 1},
		{"man", "main", 1},
		{"kitten", "sitting", 3},
		{"ab", "ba", 2},
		{strings.Repeat("x", 64) + "a", strings.Repeat("x", 64) + "bcd", 0},
		{strings.Repeat("x", 63) + "a", strings.Repeat("x", 63) + "b", 1},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if got := nearestNames("dev", []string{"unrelated", "devel", "dev2", "de"}); !slices.Equal(got, []string{"dev2", "de", "devel"}) {
		t.Errorf("nearest = %q, want three, the nearest first", got)
	}
}

// A merge that git could not do is neither a conflict nor a clean one.
func TestAMergeThatGitCannotDoIsAnError(t *testing.T) {
	m := newMerge(open(t, gittest.Repo(t, nil)), nil)
	m.scratch = t.TempDir()
	if clean, err := m.mergeFile(t.Context(), m.scratch); clean || err == nil {
		t.Errorf("without files: clean %v, %v, want an error", clean, err)
	}
	for name, text := range map[string]string{"base": lines, "ours": edited("2", "x"), "now": edited("2", "y")} {
		must(t, os.WriteFile(filepath.Join(m.scratch, name), []byte(text), 0o600))
	}
	if clean, err := m.mergeFile(t.Context(), m.scratch); clean || err != nil {
		t.Errorf("two changes of one line: clean %v, %v, want a conflict", clean, err)
	}
}

// A file of which a side is gone must not be merged from what is left.
func TestAMergeOfContentsThatAreGoneIsAnError(t *testing.T) {
	g := newGiven(t)
	r := open(t, g.dir)
	list, err := r.List(t.Context(), g.next)
	must(t, err)
	for _, e := range list {
		if e.Path == "f" {
			must(t, os.Remove(filepath.Join(g.dir, ".git/objects", e.ID[:2], e.ID[2:])))
		}
	}
	_, conflicts, err := r.Rebase(t.Context(), Replay{Commit: g.next, Onto: g.nextTo, When: when})
	if err == nil || conflicts != nil {
		t.Errorf("Rebase = %q, %v, want an error", conflicts, err)
	}
}

// A list of candidates that is too short lets work go that a run still needs, and
// one that was not let go of stays for ever.
func TestCandidatesThatCannotBeListedAreNotTakenForNone(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"packed refs that cannot be read": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "packed-refs")), os.Mkdir(filepath.Join(dir, "packed-refs"), 0o700))
		},
		"packed refs that lead outside": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "packed-refs")), os.Symlink("/dev/null", filepath.Join(dir, "packed-refs")))
		},
		"a git directory that is gone": func(dir string) error { return os.Rename(dir, dir+".away") },
	} {
		g := newGiven(t)
		r := open(t, g.dir)
		must(t, spoil(filepath.Join(g.dir, ".git")))
		if runs, err := r.CandidateRuns(t.Context()); err == nil {
			t.Errorf("%s: the runs are %q", name, runs)
		}
		if err := r.DropCandidates(t.Context(), "run_1"); err == nil {
			t.Errorf("%s: the candidates of a run were let go of", name)
		}
	}
}

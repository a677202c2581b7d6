//go:build unix

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/gittest"
)

// hookNames are all 28 hooks of git.
var hookNames = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
	"commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
	"proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc",
	"post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist",
	"p4-post-changelist", "p4-pre-submit", "post-index-change",
}

// hostileRepo makes a repository in which every program that configuration,
// attributes or hooks can name writes the marker.
func hostileRepo(t *testing.T) (dir, marker string) {
	t.Helper()
	dir = gittest.Repo(t, map[string]string{
		"f": "one\n", "crlf": "a\r\nb\r\n", "sub/x.bin": "\x00\x01",
		".gitattributes": "* filter=evil diff=evil merge=evil text\n",
	})
	marker = filepath.Join(t.TempDir(), "marker")
	evil := filepath.Join(t.TempDir(), "evil")
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>%s\nexit 1\n", marker)
	if err := os.WriteFile(evil, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range hookNames {
		if err := os.Symlink(evil, filepath.Join(dir, ".git", "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	config := strings.ReplaceAll(`
[core]
	fsmonitor = EVIL
	hooksPath = DIR/.git/hooks
	pager = EVIL
	editor = EVIL
	sshCommand = EVIL
	gitProxy = EVIL
	askPass = EVIL
	alternateRefsCommand = EVIL
	repositoryformatversion = 1
	logAllRefUpdates = always
[extensions]
	partialClone = origin
	worktreeConfig = true
[remote "origin"]
	url = ext::EVIL
	promisor = true
	uploadpack = EVIL
	partialclonefilter = blob:none
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[filter "evil"]
	clean = EVIL
	smudge = EVIL
	process = EVIL
	required = true
[diff]
	external = EVIL
[diff "evil"]
	textconv = EVIL
	command = EVIL
[merge "evil"]
	driver = EVIL
[gpg]
	program = EVIL
[commit]
	gpgsign = true
[log]
	showSignature = true
[pager]
	diff-tree = EVIL
	ls-tree = EVIL
	rev-parse = EVIL
[credential]
	helper = !EVIL
[alias]
	ls-tree = !EVIL
	cat-file = !EVIL
[include]
	path = more
[gc]
	auto = 1
	recentObjectsHook = EVIL
[sequence]
	editor = EVIL
[uploadpack]
	packObjectsHook = EVIL
[trailer "x"]
	cmd = EVIL
	command = EVIL
[tar "tar"]
	command = EVIL
[hook "x"]
	command = EVIL
	event = reference-transaction
[gpg "ssh"]
	program = EVIL
	defaultKeyCommand = EVIL
[push]
	gpgSign = true
[interactive]
	diffFilter = EVIL
[submodule "s"]
	update = !EVIL
`, "EVIL", evil)
	config = strings.ReplaceAll(config, "DIR", dir)
	gittest.Write(t, dir, map[string]string{
		".git/config":          config,
		".git/config.worktree": "[core]\n\tfsmonitor = " + evil + "\n",
		".git/more":            "[trace2]\n\teventTarget = " + marker + "\n[core]\n\tattributesFile = " + dir + "/.gitattributes\n",
		".git/info/attributes": "* filter=evil diff=evil merge=evil\n",
	})
	return dir, marker
}

func TestNothingThatConfigurationNamesIsEverStarted(t *testing.T) {
	dir, marker := hostileRepo(t)
	for _, args := range [][]string{{"status"}, {"-c", "protocol.allow=never", "cat-file", "-e", strings.Repeat("7", 40)}} {
		_, _ = gittest.Try(t.Context(), dir, args...)
		if err := os.Remove(marker); err != nil {
			t.Fatalf("plain git %v started nothing, so this test proves nothing: %v", args, err)
		}
	}
	index := readFile(t, filepath.Join(dir, ".git", "index"))
	gittest.Write(t, dir, map[string]string{"f": "changed\n"})

	callEveryVerb(t, dir)
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
	if readFile(t, filepath.Join(dir, ".git", "index")) != index {
		t.Error("the index of the checkout was written")
	}
	if readFile(t, filepath.Join(dir, "f")) != "changed\n" {
		t.Error("the checkout was written")
	}
}

func callEveryVerb(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	r := open(t, dir)
	b := base(t, r)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	_, err := r.Dirty(ctx, "")
	must(err)
	_, err = r.List(ctx, b.Tree)
	must(err)
	c, err := r.Candidate(ctx, Draft{Base: b.Commit, Message: "m", When: when, Changes: []FileChange{
		{Path: "f", Mode: ModeFile, From: filepath.Join(dir, "f")}, {Path: "crlf", Delete: true},
	}})
	must(err)
	d, err := r.Commit(ctx, c.Tree, []string{b.Commit}, "m", when)
	must(err)
	must(r.UpdateRef(ctx, "refs/heads/other", c.Commit, ""))
	must(r.UpdateRef(ctx, "refs/heads/other", d, c.Commit))
	must(r.DeleteRef(ctx, "refs/heads/other", d))
	_, _, err = r.Ref(ctx, "refs/heads/main")
	must(err)
	_, err = r.Diff(ctx, b.Tree, c.Tree)
	must(err)
	_, _, _, err = r.DiffStat(ctx, b.Tree, c.Tree)
	must(err)
	_, err = r.Show(ctx, c.Commit, "f")
	must(err)
	callNewVerbs(t, r, b, c)
	_, err = r.Base(ctx, "nope")
	wantFault(t, err, 3, "main")
	missing := strings.Repeat("7", 40)
	if _, err := r.List(ctx, missing); err == nil {
		t.Error("a missing tree was listed")
	}
	if _, err := r.Show(ctx, missing, "f"); err == nil {
		t.Error("a file of a missing commit was shown")
	}
	readEverything(t, r, b, missing)
}

// callNewVerbs lands, replays, pushes and scans. It leaves the checkout and the
// index alone: main only moves while it is not checked out.
func callNewVerbs(t *testing.T, r *Repo, b Base, c Candidate) {
	t.Helper()
	ctx := t.Context()
	must(t, r.UpdateRef(ctx, "refs/heads/landing", b.Commit, ""))
	must(t, r.Advance(ctx, Advance{Branch: "landing", Onto: b.Commit, Commit: c.Commit}))
	_, _, err := r.Unfinished(ctx)
	must(t, err)
	_, _, err = r.Rebase(ctx, Replay{Commit: c.Commit, Onto: b.Commit, When: when})
	must(t, err)
	to := bareRemote(t)
	must(t, r.Push(ctx, Push{To: to, Commit: c.Commit, Ref: pushed}))
	_, _, err = r.RemoteRef(ctx, to, pushed)
	must(t, err)
	if _, err = r.RemoteURL("no-such"); err == nil {
		t.Error("a remote that is not there has an address")
	}
	_, err = r.Hazards(ctx)
	must(t, err)
	_, err = r.Parent(ctx, c.Commit)
	must(t, err)
	_, err = r.Changed(ctx, b.Commit, c.Commit)
	must(t, err)
	rules := r.Ignores(ctx, filepath.Join(t.TempDir(), "rules"), func(string) error { return nil })
	rules.Ignored("f", false)
	must(t, rules.Close())
}

func readEverything(t *testing.T, r *Repo, b Base, missing string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	_, entries, err := blobs.Tree(b.Commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := blobs.Read(e.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := blobs.Read(missing); err == nil {
		t.Error("a missing blob was read")
	}
}

func TestAttributesOfTheCheckoutCannotHideADiff(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "one\n", ".gitattributes": "* -diff\n"})
	r := open(t, dir)
	b := base(t, r)
	gittest.Write(t, dir, map[string]string{"f": "two\n"})
	c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, Message: "m", When: when, Changes: []FileChange{
		{Path: "f", Mode: ModeFile, From: filepath.Join(dir, "f")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Diff(t.Context(), b.Tree, c.Tree)
	if err != nil || !strings.Contains(string(out), "-one\n+two\n") {
		t.Errorf("diff = %v\n%s\nwant both lines", err, out)
	}
}

package gittest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Hooks are all 28 hooks of git.
var Hooks = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
	"commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
	"proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc",
	"post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist",
	"p4-post-changelist", "p4-pre-submit", "post-index-change",
}

// Hostile makes a repository in which every program that configuration, attributes or
// hooks can name writes the marker. Its configuration also makes it a partial clone.
func Hostile(tb testing.TB) (dir, marker string) {
	tb.Helper()
	dir = Repo(tb, map[string]string{
		"f": "one\n", "crlf": "a\r\nb\r\n", "sub/x.bin": "\x00\x01",
		".gitattributes": "* filter=evil diff=evil merge=evil text\n",
	})
	marker = Arm(tb, dir, tb.TempDir())
	config := filepath.Join(dir, ".git", "config")
	text, err := os.ReadFile(config)
	if err != nil {
		tb.Fatal(err)
	}
	Write(tb, dir, map[string]string{
		".git/config": string(text) + `[extensions]
	partialClone = origin
[remote "origin"]
	promisor = true
	partialclonefilter = blob:none
[include]
	path = more
`,
		".git/more": "[trace2]\n\teventTarget = " + marker + "\n[core]\n\tattributesFile = " + dir + "/.gitattributes\n",
	})
	return dir, marker
}

// Arm makes the repository in dir hostile: every program that its configuration,
// attributes or hooks can name writes the marker. The program and the marker are in
// the folder outside. Afterwards plain git must not be used in dir.
func Arm(tb testing.TB, dir, outside string) (marker string) {
	tb.Helper()
	marker = filepath.Join(outside, "marker")
	evil := filepath.Join(outside, "evil")
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>%s\nexit 1\n", marker)
	if err := os.WriteFile(evil, []byte(script), 0o755); err != nil {
		tb.Fatal(err)
	}
	for _, hook := range Hooks {
		if err := os.Symlink(evil, filepath.Join(dir, ".git", "hooks", hook)); err != nil {
			tb.Fatal(err)
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
	worktreeConfig = true
[remote "origin"]
	url = ext::EVIL
	uploadpack = EVIL
	receivepack = EVIL
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
	fast-import = !EVIL
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
	Write(tb, dir, map[string]string{
		".git/config":          config,
		".git/config.worktree": "[core]\n\tfsmonitor = " + evil + "\n",
		".git/info/attributes": "* filter=evil diff=evil merge=evil\n",
	})
	return marker
}

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

// Hostile makes a repository in which every program that configuration,
// attributes or hooks can name writes the marker.
func Hostile(tb testing.TB) (dir, marker string) {
	tb.Helper()
	dir = Repo(tb, map[string]string{
		"f": "one\n", "crlf": "a\r\nb\r\n", "sub/x.bin": "\x00\x01",
		".gitattributes": "* filter=evil diff=evil merge=evil text\n",
	})
	marker = filepath.Join(tb.TempDir(), "marker")
	evil := filepath.Join(tb.TempDir(), "evil")
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
	Write(tb, dir, map[string]string{
		".git/config":          config,
		".git/config.worktree": "[core]\n\tfsmonitor = " + evil + "\n",
		".git/more":            "[trace2]\n\teventTarget = " + marker + "\n[core]\n\tattributesFile = " + dir + "/.gitattributes\n",
		".git/info/attributes": "* filter=evil diff=evil merge=evil\n",
	})
	return dir, marker
}

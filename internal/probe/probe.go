// Package probe finds out what a repository and a machine offer: the commands
// that test a project, with the file that says so, the programs and agents that
// are installed, whether an agent has a login, and how much disk is free.
//
// It never writes, never asks a network, and never runs code of the project:
// what it starts are toolchains, agents and the managers of their versions, and
// these only to ask which version answers. It never returns what a credential
// contains. It decides nothing: it returns findings and proposals.
package probe

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Repo is what a repository says about itself. The zero Repo says nothing.
type Repo struct {
	Stacks     []Stack   // those of the root first, then by depth and directory
	AgentsFile string    // what agents are told at the root: AGENTS.md, CLAUDE.md …; or empty
	Sources    []string  // globs of what looks like source, never the whole tree
	Problems   []Problem // what could not be read, and was left out
}

// Stack is one way to build and test what lies in one directory. A nil command
// means that the repository names none.
type Stack struct {
	Name     string // go npm pnpm yarn bun deno python-uv poetry pdm pipenv pip cargo gradle maven make just task …
	Dir      string // relative to the root, with slashes; "." is the root
	Manifest string // relative to the root
	Lockfile string // relative to the root, or empty

	Setup, Test, Lint, Typecheck, Build *Command
}

// Command is a shell command that runs at the root of the repository. The zero
// Command is none.
type Command struct {
	Line  string // as it is to be written into a definition
	From  string // why: "package.json scripts.test"
	Needs []Need // the programs without which it cannot run
}

// Need is a program that a command starts, and the directory in which it does:
// shims answer differently in different directories.
type Need struct {
	Dir  string // relative to the root
	Word string // a name to look up in PATH, or a path relative to Dir
}

// Problem is a file that could not be used.
type Problem struct {
	File string // relative to the root
	Why  string
}

// Limits of one survey. What lies beyond is not seen; a Problem says so.
const (
	maxDepth   = 2 // directories below the root
	maxFolders = 300
	maxEntries = 5000 // of one directory
	maxStacks  = 16
	maxBytes   = 1 << 20 // of one manifest
)

// detectors find the stacks of a directory, at most one each.
var detectors = []func(*place) *found{
	goStack, nodeStack, denoStack, pythonStack, cargoStack, gradleStack, mavenStack, dotnetStack,
	phpStack, rubyStack, elixirStack, swiftStack, cmakeStack, makeStack, justStack, taskStack,
}

// found is a stack with what the survey has to know about it.
type found struct {
	Stack
	family string   // stacks of one family exclude each other
	covers bool     // its commands include what lies below
	all    *Command // tests what it covers, where Test alone does not
}

// Repository looks at the root and two levels below it, and at nothing hidden,
// vendored, generated or meant as an example. It follows no link to a
// directory; a caller that wants no link to a file to lead out of the
// repository passes the FS of an os.Root.
func Repository(root fs.FS) Repo {
	s := survey{root: root}
	folders := s.folders()
	var all []*found
	for _, f := range folders {
		if all = s.detect(&place{survey: &s, folder: f}, all); len(all) == maxStacks {
			s.problem(f.path(""), "what follows was not looked at: there are more stacks than can be proposed")
			break
		}
	}
	repo := Repo{Sources: sources(folders), Problems: s.problems}
	for _, f := range all {
		repo.Stacks = append(repo.Stacks, f.Stack)
	}
	if len(folders) > 0 {
		repo.AgentsFile = agentsFile(root, folders[0])
	}
	return repo
}

// detect adds the stacks of a directory, without those that a stack above it
// covers.
func (s *survey) detect(p *place, all []*found) []*found {
	for _, detector := range detectors {
		f := detector(p)
		if f == nil {
			continue
		}
		above := slices.IndexFunc(all, func(above *found) bool {
			return above.family == f.family && above.covers && contains(above.Dir, f.Dir)
		})
		if above >= 0 {
			if all[above].Test == nil && f.Test != nil {
				all[above].Test = all[above].all
			}
			continue
		}
		if all = append(all, f); len(all) == maxStacks {
			break
		}
	}
	return all
}

func contains(dir, other string) bool {
	return dir != other && (dir == "." || strings.HasPrefix(other, dir+"/"))
}

// agentsFile finds the file that tells agents about the project, the common
// name before those of one agent.
func agentsFile(root fs.FS, top folder) string {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".goosehints", ".cursorrules"} {
		if top.has(name) {
			return name
		}
	}
	name := path.Join(".github", "copilot-instructions.md")
	if info, err := fs.Stat(root, name); err == nil && info.Mode().IsRegular() {
		return name
	}
	return ""
}

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
	AgentsFile string    // the instructions for agents at the root: AGENTS.md, CLAUDE.md …; or empty
	Sources    []string  // globs of source files, never the whole tree
	Problems   []Problem // files that could not be read and were left out
}

// Stack is one way to build and test the code in one directory. A command is nil if
// the repository does not name it.
type Stack struct {
	Name     string // go npm pnpm yarn bun deno python-uv poetry pdm pipenv pip cargo gradle maven make just task …
	Dir      string // relative to the root, with slashes; "." is the root
	Manifest string // relative to the root
	Lockfile string // relative to the root, or empty

	Setup, Test, Lint, Typecheck, Build *Command
}

// Command is a shell command that runs at the root of the repository. The zero
// Command does nothing.
type Command struct {
	Line  string // as written into a definition
	From  string // why: "package.json scripts.test"
	Needs []Need // the programs without which it cannot run
}

// Need is a program that a command starts, and the directory it starts it in, on
// which the answer of a shim depends.
type Need struct {
	Dir  string // relative to the root
	Word string // a name to look up in PATH, or a path relative to Dir
}

// Problem is a file that could not be used.
type Problem struct {
	File string // relative to the root
	Why  string
}

// Limits of one survey. A Problem says what was left out because of them.
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

// found is a stack, with its relation to other stacks.
type found struct {
	Stack
	family string   // stacks of one family exclude each other
	covers bool     // its commands include what lies below
	all    *Command // tests what lies below too, if Test does not
}

// Repository surveys the root and two levels of directories below it. It leaves out
// directories that are hidden, vendored, generated or examples. It follows no link
// to a directory. To keep links to files inside the repository, pass the FS of an
// os.Root.
func Repository(root fs.FS) Repo {
	s := survey{root: root}
	folders := s.listFolders()
	var all []*found
	for _, f := range folders {
		if all = s.addStacks(&place{survey: &s, folder: f}, all); len(all) == maxStacks {
			s.addProblem(f.pathOf(""), "what follows was not looked at: there are more stacks than can be proposed")
			break
		}
	}
	repo := Repo{Sources: sourceGlobs(folders), Problems: s.problems}
	for _, f := range all {
		repo.Stacks = append(repo.Stacks, f.Stack)
	}
	if len(folders) > 0 {
		repo.AgentsFile = findAgentsFile(root, folders[0])
	}
	return repo
}

// addStacks adds the stacks of a directory to all, without those that a stack above
// the directory covers.
func (s *survey) addStacks(p *place, all []*found) []*found {
	for _, detector := range detectors {
		f := detector(p)
		if f == nil {
			continue
		}
		above := slices.IndexFunc(all, func(above *found) bool {
			return above.family == f.family && above.covers && isAbove(above.Dir, f.Dir)
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

func isAbove(dir, other string) bool {
	return dir != other && (dir == "." || strings.HasPrefix(other, dir+"/"))
}

// findAgentsFile finds the file with instructions for agents. The name that all
// agents share comes first.
func findAgentsFile(root fs.FS, top folder) string {
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

package judging

import (
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// followProgram follows programs that take their commands from files of the tree. It
// reports false of a program that is not one.
func (f *follower) followProgram(sh *shellState, program string, args []string, in feed) bool {
	switch program {
	case "make", "gmake", "bmake":
		f.followMake(sh, args)
	case "npm", "pnpm", "yarn", "bun", "npx", "pnpx", "bunx", "corepack", "run-s", "run-p", "npm-run-all", "npm-run-all2", "concurrently", "turbo", "nx", "lerna", "rushx", "wireit":
		return node{f}.followPackageManager(sh, program, args, in)
	case "go":
		return golang{f}.followGo(sh, args)
	case "cargo":
		f.followCargo(sh, args)
	case "just":
		f.followJust(sh, args)
	case "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "coverage", "uvx", "pipx", "conda", "mamba", "pixi":
		python{f}.followEnvironment(sh, program, args, in)
	case "tox":
		python{f}.followTox(sh)
	case "nox":
		python{f}.followNox(sh, args)
	case "poe":
		python{f}.followProjectScript(sh, args)
	case "pre-commit", "prek":
		f.followPreCommit(sh)
	case "bundle":
		if len(args) > 1 && args[0] == "exec" {
			f.followCommand(sh, args[1:], in)
		}
	case "dotnet", "mix", "gradle", "mvn", "bazel", "rake", "composer":
		return program == "composer" && node{f}.followComposer(sh, args)
	case "tsc", "prettier", "eslint":
		f.protectArguments(sh, program, args)
	case "deno":
		return node{f}.followDeno(sh, args)
	default:
		return false
	}
	return true
}

// argsOnly returns the arguments without options. Valued are options that take the
// next word.
func argsOnly(args []string, valued string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--":
			return append(rest, args[i+1:]...)
		case strings.HasPrefix(w, "-"):
			if slices.Contains(strings.Fields(valued), w) {
				i++
			}
		default:
			rest = append(rest, w)
		}
	}
	return rest
}

// followCargo follows cargo run of a package that is named, and the usual xtask.
func (f *follower) followCargo(sh *shellState, args []string) {
	for i, w := range args {
		switch {
		case w == "xtask" && i == 0:
			f.protectFolder(sh, "xtask")
		case args[0] == "run" && (w == "-p" || w == "--package") && i+1 < len(args):
			f.protectFolder(sh, args[i+1])
		case args[0] == "run" && (w == "--bin" || w == "--example") && i+1 < len(args):
			for _, file := range append(sh.globs("src/bin/"+args[i+1]+".rs"), sh.globs("examples/"+args[i+1]+".rs")...) {
				if _, there := f.readText(sh.where, file); there {
					f.protectFiles([]string{file})
				}
			}
		}
	}
}

// linesOf returns the command lines in a value: a string, a list, or a table with a
// key for commands.
func linesOf(value any) []string {
	var lines []string
	switch v := value.(type) {
	case string:
		lines = append(lines, v)
	case []any:
		for _, one := range v {
			lines = append(lines, linesOf(one)...)
		}
	case map[string]any:
		for _, key := range []string{"cmd", "shell", "script", "call", "composite", "sequence", "command"} {
			lines = append(lines, linesOf(v[key])...)
		}
	}
	return lines
}

var hookEntry = lazyregexp.New(`(?m)^\s*(?:-\s+)?entry:\s*(.+?)\s*$`)

// followPreCommit follows the hooks that a repository has of its own.
func (f *follower) followPreCommit(sh *shellState) {
	for _, file := range append(sh.globs(".pre-commit-config.yaml"), sh.globs(".pre-commit-config.yml")...) {
		text, there := f.readText(sh.where, file)
		if !there || !f.firstTime("hooks", file) {
			continue
		}
		f.protectFiles([]string{file})
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, m := range hookEntry.FindAllStringSubmatch(text, 100) {
			f.followLine(inner, strings.Trim(m[1], `"'`))
		}
	}
}

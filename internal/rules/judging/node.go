package judging

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// manifest is what package.json, composer.json and deno.json say of scripts.
type manifest struct {
	Name    string         `json:"name"`
	Bin     any            `json:"bin"`
	Scripts map[string]any `json:"scripts"`
	Tasks   map[string]any `json:"tasks"` // of deno.json
}

// node follows what Node and its relatives run.
type node struct{ *follower }

// followPackageManager follows the package managers of Node and what runs scripts for
// them.
func (n node) followPackageManager(sh *shellState, program string, args []string, in feed) bool {
	args, sh, everywhere := packageOptions(sh, args)
	if len(args) == 0 {
		if slices.Contains([]string{"yarn", "npm", "pnpm"}, program) {
			n.followScripts(sh, everywhere, installing, nil)
		}
		return true
	}
	verb, rest := args[0], args[1:]
	switch program {
	case "npx", "pnpx", "bunx":
		n.followCommand(sh, args, in)
		return true
	case "corepack":
		n.followCommand(sh, args, in)
		return true
	case "run-s", "run-p", "npm-run-all", "npm-run-all2":
		for _, name := range args {
			n.followScripts(sh, everywhere, []string{strings.Fields(name + " ")[0]}, nil)
		}
		return true
	case "concurrently", "wireit":
		for _, line := range args {
			if name, ok := strings.CutPrefix(line, "npm:"); ok {
				n.followScripts(sh, everywhere, []string{name}, nil)
			} else if strings.Contains(line, " ") {
				n.followLine(sh, line)
			}
		}
		return true
	case "turbo", "nx", "lerna":
		for _, name := range args {
			n.followScripts(sh, true, []string{name[strings.LastIndexByte(name, ':')+1:], name}, nil)
		}
		return true
	case "rushx":
		n.followScripts(sh, everywhere, []string{verb}, rest)
		return true
	}
	switch verb {
	case "run", "run-script", "rum", "urn":
		if len(rest) == 0 {
			return true
		}
		if program == "bun" && strings.Contains(rest[0], ".") {
			return false // A file.
		}
		n.followScripts(sh, everywhere, rest[:1], rest[1:])
		if program != "npm" {
			n.followCommand(sh, rest, in)
		}
	case "exec", "x", "dlx", "node":
		if verb == "node" {
			rest = args
		}
		if len(rest) > 0 {
			n.followCommand(sh, rest, in)
		}
	case "t", "tst":
		n.followScripts(sh, everywhere, []string{"test"}, rest)
	case "it", "install-test", "cit", "install-ci-test":
		n.followScripts(sh, everywhere, append([]string{"test"}, installing...), rest)
	case "i", "install", "ci", "clean-install", "rebuild", "add":
		n.followScripts(sh, everywhere, installing, nil)
	case "pack", "publish":
		n.followScripts(sh, everywhere, []string{"prepack", "prepare", "prepublishOnly", "postpack"}, nil)
	case "workspace":
		if len(rest) > 1 {
			n.followPackageManager(sh, program, append([]string{"--recursive"}, rest[1:]...), in)
		}
	case "workspaces":
		for i, w := range rest {
			if w == "run" {
				n.followPackageManager(sh, program, append([]string{"--recursive"}, rest[i:]...), in)
				break
			}
		}
	default:
		if program == "bun" {
			if verb == "test" {
				n.protectTestFiles(sh, rest)
				return true
			}
			if strings.Contains(verb, ".") {
				return false
			}
		}
		n.followScripts(sh, everywhere, []string{verb}, rest)
		if program == "yarn" || program == "pnpm" || program == "bun" {
			if verb != program {
				n.followCommand(sh, args, in) // A program of an installed package.
			}
		}
	}
	return true
}

// installing are the scripts that an installation runs.
var installing = []string{"preinstall", "install", "postinstall", "prepare", "prepublish"}

// packageOptions takes the options off that stand before a verb or around it.
// Everywhere means that the scripts of other packages of the tree run too.
func packageOptions(sh *shellState, args []string) (rest []string, in *shellState, everywhere bool) {
	in = sh
	for i := 0; i < len(args); i++ {
		option, value, long := strings.Cut(args[i], "=")
		switch w := args[i]; {
		case w == "--":
			return append(rest, args[i+1:]...), in, everywhere
		case (w == "--prefix" || w == "-C" || w == "--dir" || w == "--cwd") && i+1 < len(args):
			in = sh.movedTo(args[i+1])
			i++
		case long && slices.Contains([]string{"--prefix", "--dir", "--cwd"}, option):
			in = sh.movedTo(value)
		case slices.Contains([]string{"-w", "--workspace", "--filter", "-F", "-p", "--package", "--scope", "-t", "--target", "--projects"}, w) && i+1 < len(args):
			everywhere = everywhere || w != "-p" && w != "--package"
			if w == "-t" || w == "--target" {
				continue // The next word is a script.
			}
			i++
		case w == "-ws" || w == "--workspaces" || w == "-r" || w == "--recursive" || long && slices.Contains([]string{"--workspace", "--filter", "--scope"}, option):
			everywhere = true
		case long && (option == "--target" || option == "--targets"):
			rest = append(rest, strings.Split(value, ",")...)
		case strings.HasPrefix(w, "-") && len(rest) == 0:
		case strings.HasPrefix(w, "-") && len(rest) == 1 && (rest[0] == "run" || rest[0] == "exec" || rest[0] == "run-script"):
		default:
			rest = append(rest, w)
		}
	}
	return rest, in, everywhere
}

// followScripts follows scripts by their names, with those that run before and
// after each. A star in a name stands for anything.
func (n node) followScripts(sh *shellState, everywhere bool, names, args []string) {
	globs := sh.globs("package.json")
	if everywhere {
		globs = append(globs, n.matchingFiles("**/package.json")...)
	}
	var files []string
	for _, glob := range globs {
		files = append(files, n.matchingFiles(glob)...)
	}
	for _, file := range files {
		m, ok := n.readManifest(sh, file)
		if !ok {
			continue
		}
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, name := range names {
			for _, script := range slices.Sorted(maps.Keys(m.Scripts)) {
				bare := strings.TrimPrefix(strings.TrimPrefix(script, "pre"), "post")
				same, _ := path.Match(strings.ReplaceAll(name, ":", "/"), strings.ReplaceAll(script, ":", "/"))
				if script != name && bare != name && (!same || !strings.Contains(name, "*")) {
					continue
				}
				n.programs[file] = true
				for _, line := range linesOf(m.Scripts[script]) {
					if len(args) > 0 && script == name {
						line += " " + strings.Join(args, " ")
					}
					n.followLine(inner, line)
				}
			}
		}
	}
}

func (n node) readManifest(sh *shellState, file string) (manifest, bool) {
	var m manifest
	text, there := n.readText(sh.where, file)
	return m, there && json.Unmarshal([]byte(text), &m) == nil
}

// followBin follows a program that the package itself offers, as its own
// scripts and npx find it.
func (n node) followBin(sh *shellState, program string, args []string) {
	for _, file := range sh.globs("package.json") {
		if _, asked := n.texts[file]; !asked {
			continue // Nothing of Node is about.
		}
		m, ok := n.readManifest(sh, file)
		if !ok {
			continue
		}
		bins := map[string]any{}
		switch bin := m.Bin.(type) {
		case string:
			bins[path.Base(m.Name)] = bin
		case map[string]any:
			bins = bin
		}
		if target, ok := bins[program].(string); ok {
			n.followFile(sh.inFolder(path.Dir(file)), path.Clean(target), args, "node")
		}
	}
}

// followComposer follows a script of composer.json.
func (n node) followComposer(sh *shellState, args []string) bool {
	names := argsOnly(args, "-d --working-dir")
	if len(names) > 1 && (names[0] == "run" || names[0] == "run-script") {
		names = names[1:]
	}
	if len(names) == 0 {
		return true
	}
	for _, file := range sh.globs("composer.json") {
		m, ok := n.readManifest(sh, file)
		if !ok || !n.firstTime("composer", file, names[0]) {
			continue
		}
		inner := sh.inFolder(path.Dir(file))
		inner.where = file
		for _, line := range linesOf(m.Scripts[names[0]]) {
			n.programs[file] = true
			line = strings.TrimPrefix(line, "@putenv ")
			if name, ok := strings.CutPrefix(line, "@"); ok && !strings.HasPrefix(name, "php ") {
				n.followComposer(inner, strings.Fields(name))
				continue
			}
			n.followLine(inner, strings.TrimPrefix(line, "@"))
		}
	}
	return true
}

// followDeno follows a task of deno.json. It reports false if a file is run instead.
func (n node) followDeno(sh *shellState, args []string) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0] {
	case "task":
		names := argsOnly(args[1:], "-c --config --cwd")
		for _, file := range append(sh.globs("deno.json"), append(sh.globs("deno.jsonc"), sh.globs("package.json")...)...) {
			m, ok := n.readManifest(sh, file)
			if !ok || len(names) == 0 || !n.firstTime("deno", file, names[0]) {
				continue
			}
			inner := sh.inFolder(path.Dir(file))
			inner.where = file
			for _, line := range append(linesOf(m.Tasks[names[0]]), linesOf(m.Scripts[names[0]])...) {
				n.programs[file] = true
				n.followLine(inner, line)
			}
		}
		return true
	case "test":
		n.protectTestFiles(sh, args[1:])
		return true
	case "fmt", "lint", "check", "install", "cache":
		return true
	}
	return false
}

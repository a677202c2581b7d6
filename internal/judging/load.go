package judging

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// imports is how the text of a program says which files it loads.
type imports struct {
	form *regexp.Regexp // its first group that matches is the name
	ends []string       // what may follow a name that has no ending
	dots bool           // a dot stands between folders
}

var (
	scriptImports = imports{
		form: regexp.MustCompile(`(?:require\(|\bfrom|\bimport\(?)\s*["'](\.{1,2}/[^"'\s]+)["']`),
		ends: []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", "/index.js", "/index.ts", "/index.mjs"},
	}
	pythonImports = imports{form: regexp.MustCompile(`(?m)^\s*(?:from|import)\s+([A-Za-z_][\w.]*)`), ends: []string{".py", "/__init__.py"}, dots: true}
	rubyImports   = imports{form: regexp.MustCompile(`require_relative\s*\(?\s*["']([^"']+)["']`), ends: []string{".rb", ""}}
)

// imported notes which files a program loads from its own folder or from below
// it. What lies elsewhere is as a rule the code under test, and so is what lies
// beside a program at the top of the tree.
func (f *follower) imported(file, content string, i imports) {
	folder := path.Dir(file)
	if i.form == nil || folder == "." || !f.once("imports", file) {
		return
	}
	for _, m := range i.form.FindAllStringSubmatch(content, 200) {
		name := m[1]
		if i.dots {
			name = strings.ReplaceAll(name, ".", "/")
		}
		joined := path.Join(folder, name)
		if !strings.HasPrefix(joined, folder+"/") {
			continue
		}
		for _, end := range i.ends {
			loaded := joined + end
			text, there := f.read(file, loaded)
			if !there {
				continue
			}
			f.imports[loaded] = true
			f.deeper(loaded, func() { f.imported(loaded, text, i) })
			break
		}
	}
}

// pythonModule follows python -m. The folder in which it works comes first when
// modules are looked up, so whoever adds a file of that name there is asked
// too.
func (f *follower) pythonModule(sh *shellState, module string, args []string) {
	if unknown(module) {
		if strings.Contains(module, computed) {
			f.lose(sh.where, "the module that python runs is computed")
		}
		return
	}
	first, _, _ := strings.Cut(module, ".")
	name := strings.ReplaceAll(module, ".", "/")
	known := false
	for _, prefix := range []string{"", "src/", "lib/", "python/"} {
		for _, end := range []string{".py", "/__main__.py"} {
			for _, file := range sh.globs(prefix + name + end) {
				text, there := f.read(sh.where, file)
				if !there {
					continue
				}
				known = true
				f.protect([]string{file})
				// A package, and a compiled module, come before a file of that name.
				f.protect([]string{strings.TrimSuffix(file, ".py") + ".*", strings.TrimSuffix(strings.TrimSuffix(file, ".py"), "/__main__") + "/**"})
				if strings.Contains(file, "/") {
					f.protect([]string{path.Join(path.Dir(file), "__init__.py")})
				}
				if strings.Contains(name, "/") && end == ".py" {
					f.imported(file, text, pythonImports)
				}
			}
		}
	}
	if !known { // An installed one: nothing of the tree is to take its name.
		f.protect(append(sh.globs(first+".*"), sh.globs(first+"/**")...))
	}
	f.tool(sh, first, args, feed{})
	if module == "unittest" {
		f.unittest(sh, args)
	}
}

// unittest protects the modules that are named to it.
func (f *follower) unittest(sh *shellState, args []string) {
	for _, w := range args {
		if strings.HasPrefix(w, "-") || w == "discover" {
			continue
		}
		for _, file := range sh.globs(strings.ReplaceAll(strings.TrimSuffix(w, ".py"), ".", "/") + ".py") {
			if _, there := f.read(sh.where, file); there {
				f.protect([]string{file})
			}
		}
	}
}

// runners are programs whose arguments are the tests that they run.
var runners = []string{"pytest", "py.test", "mocha", "_mocha", "ava", "tap", "tape", "bats", "prove", "rspec", "phpunit", "pest", "busted", "jasmine", "uvu", "zora"}

// configs are options that name a file by which a program judges.
var configs = []string{
	"--config", "--config-file", "--configfile", "--configuration", "--conf", "--rcfile", "--require", "--import", "--loader", "--setup-file", "--setupFilesAfterEnv",
	"--globalSetup", "--reporter", "--runner", "--testRunner", "--transform", "--resolver", "--confcutdir", "--ignore-path", "--rulesdir", "--plugin", "--bootstrap",
	"-exec", "-vettool", "--file", "--overlay", "-overlay",
}

// configured protects the files of the tree that options of a program name, and
// the tests that are named to it one by one.
func (f *follower) configured(sh *shellState, program string, args []string) {
	for i, w := range args {
		option, value, long := strings.Cut(w, "=")
		short := (w == "-c" || w == "-r" || w == "-p") && (slices.Contains(runners, program) || slices.Contains([]string{"jest", "vitest", "eslint", "tsc", "tox", "ruff", "mypy", "flake8", "pylint", "ctest", "golangci-lint"}, program))
		switch {
		case long && slices.Contains(configs, option):
		case (slices.Contains(configs, w) || short) && i+1 < len(args):
			value = args[i+1]
		default:
			continue
		}
		if f.isFile(sh, value) {
			f.protect(sh.globs(value))
		}
	}
	if slices.Contains(runners, program) {
		f.testFiles(sh, args)
	}
}

// testFiles protects files that are named as tests. Folders of them are known
// by the names in them.
func (f *follower) testFiles(sh *shellState, args []string) {
	for _, w := range args {
		w, _, _ = strings.Cut(w, "::")
		if strings.HasPrefix(w, "-") || w == "" {
			continue
		}
		for _, glob := range sh.globs(w) {
			_, there := f.read(sh.where, glob)
			if there || strings.Contains(path.Base(glob), "*") && path.Ext(glob) != "" && strings.Trim(strings.TrimSuffix(glob, path.Ext(glob)), "*/.") != "" {
				f.protect([]string{glob})
			}
		}
	}
}

package judging

import (
	"path"
	"slices"
	"strings"
)

// withinDepth calls follow for a file that another one runs, unless there are too
// many of them.
func (c *collector) withinDepth(file string, follow func()) {
	if c.depth += 4; c.depth > 4*maxDepth {
		c.reportLost(file, "too many files run one another")
	} else {
		follow()
	}
	c.depth -= 4
}

// outOfSteps counts one more step, and reports whether there were too many.
func (c *collector) outOfSteps(where string) bool {
	c.steps++
	if c.steps == maxSteps {
		c.reportLost(where, "too many commands run one another")
	}
	return c.steps >= maxSteps
}

// isFile reports whether a word names a file of the tree, or several.
func (c *collector) isFile(sh *shellState, word string) bool {
	return !strings.HasPrefix(word, "-") && slices.ContainsFunc(sh.globs(word), func(glob string) bool {
		return slices.ContainsFunc(c.matchingFiles(glob), func(name string) bool {
			_, there := c.readText(sh.where, name)
			return there
		})
	})
}

// listedNames are the names that a command lists, as globs.
func (c *collector) listedNames(sh *shellState, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	args := words[1:]
	switch path.Base(words[0]) {
	case "find":
		return filesFound(args)
	case "ls", "echo", "printf":
		return slices.DeleteFunc(slices.Clone(args), func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "%") || w == "" })
	case "git":
		if i := slices.Index(args, "ls-files"); i >= 0 {
			var globs []string
			for _, w := range args[i+1:] {
				if !strings.HasPrefix(w, "-") {
					globs = append(globs, anyFolder(w))
				}
			}
			return globs
		}
	case "cat":
		var lines []string
		for _, w := range args {
			for _, file := range c.protectFiles(sh.globs(w)) {
				if content, ok := c.readText(sh.where, file); ok {
					lines = append(lines, strings.Fields(content)...)
				}
			}
		}
		return lines[:min(len(lines), maxValues)]
	}
	return nil
}

// noteImports notes which files a program loads from its own folder or from below
// it. What lies elsewhere is as a rule the code under test, and so is what lies
// beside a program at the top of the tree.
func (c *collector) noteImports(file, content string, i imports) {
	folder := path.Dir(file)
	if i.form == nil || folder == "." || !c.firstTime("imports", file) {
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
			text, there := c.readText(file, loaded)
			if !there {
				continue
			}
			c.imports[loaded] = true
			c.withinDepth(loaded, func() { c.noteImports(loaded, text, i) })
			break
		}
	}
}

// protectTestFiles protects files that are named as tests. Folders of them are known
// by the names in them.
func (c *collector) protectTestFiles(sh *shellState, args []string) {
	for _, w := range args {
		w, _, _ = strings.Cut(w, "::")
		if strings.HasPrefix(w, "-") || w == "" {
			continue
		}
		for _, glob := range sh.globs(w) {
			_, there := c.readText(sh.where, glob)
			if there || strings.Contains(path.Base(glob), "*") && path.Ext(glob) != "" && strings.Trim(strings.TrimSuffix(glob, path.Ext(glob)), "*/.") != "" {
				c.protectFiles([]string{glob})
			}
		}
	}
}

// protectArguments protects the files of the tree that options of a program name, and
// the tests that are named to it one by one.
func (c *collector) protectArguments(sh *shellState, program string, args []string) {
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
		if c.isFile(sh, value) {
			c.protectFiles(sh.globs(value))
		}
	}
	if slices.Contains(runners, program) {
		c.protectTestFiles(sh, args)
	}
}

// protectFolder protects a folder whose files are one program. The top of the
// tree is left out: that would be everything.
func (c *collector) protectFolder(sh *shellState, name string) {
	for _, glob := range sh.globs(name) {
		c.programs[glob+"/**"] = true
	}
}

// protectLoaded protects a file that a program loads because an option names it.
// What has no folder is the name of a package.
func (c *collector) protectLoaded(sh *shellState, name string) {
	for _, file := range sh.globs(name) {
		if _, there := c.readText(sh.where, file); there || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasPrefix(name, top) {
			c.protectFiles([]string{file})
		}
	}
}

// protectProgram protects a program that is named by its path.
func (c *collector) protectProgram(sh *shellState, program string) {
	if strings.Contains(program, "/") {
		c.protectFiles(sh.globs(program))
	}
}

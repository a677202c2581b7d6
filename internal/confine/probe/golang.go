package probe

import "strings"

// goStack finds a module, or a workspace of modules.
func goStack(p *place) *found {
	if p.has("go.work") {
		return goWorkspace(p)
	}
	// A module below the root that only lists tools has no packages, for which go
	// test fails.
	idle := p.dir != "." && len(p.filesEndingIn(".go")) == 0 && len(p.subfolders()) == 0
	if _, ok := p.read("go.mod"); !ok || idle {
		return nil
	}
	f := p.newStack("go", "go", "go.mod")
	f.Lockfile = p.findLockfile("go.sum")
	goCommands(p, f, "./...", "go.mod")
	return f
}

// goWorkspace names each module, because ./... matches packages of one module only.
func goWorkspace(p *place) *found {
	data, ok := p.read("go.work")
	if !ok {
		return nil
	}
	var patterns []string
	for _, dir := range usedModules(string(data)) {
		patterns = append(patterns, Quoted(strings.TrimSuffix(dir, "/")+"/..."))
	}
	if len(patterns) == 0 {
		p.addProblem(p.pathOf("go.work"), "it uses no module")
		return nil
	}
	f := p.newStack("go", "go", "go.work")
	f.covers = true
	f.Lockfile = p.findLockfile("go.work.sum", "go.sum")
	goCommands(p, f, strings.Join(patterns, " "), "go.work")
	return f
}

func goCommands(p *place, f *found, patterns, from string) {
	f.Test = p.command("go test "+patterns, from)
	f.Typecheck = p.command("go vet "+patterns, from)
	f.Build = p.command("go build "+patterns, from)
	f.Setup = p.commandIf(f.Lockfile != "" && !p.hasDir("vendor"), "go mod download", from)
	if config := p.firstOf(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"); config != "" {
		f.Lint = p.command("golangci-lint run "+patterns, config)
		if patterns == "./..." {
			f.Lint = p.command("golangci-lint run", config)
		}
	}
}

// usedModules lists the directories that a go.work uses, without those outside of
// its own directory.
func usedModules(text string) []string {
	var dirs []string
	block := false
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == ")":
			block = false
		case words[0] == "use" && len(words) == 2 && words[1] == "(":
			block = true
		case words[0] == "use" && len(words) == 2:
			dirs = append(dirs, words[1])
		case block && len(words) == 1:
			dirs = append(dirs, words[0])
		}
	}
	var kept []string
	for _, dir := range dirs {
		dir = strings.Trim(dir, "\"`")
		// The go command wants a dot in front of a directory.
		local := dir == "." || strings.HasPrefix(dir, "./")
		if local && isPlain(dir) && !strings.Contains(dir, "..") {
			kept = append(kept, dir)
		}
	}
	return kept
}

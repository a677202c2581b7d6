package judging

import (
	"path"
	"regexp"
	"strings"
)

// golang follows what the go program runs.
type golang struct{ *follower }

// goTool follows go run, go tool and the options of go test that name programs.
func (g golang) goTool(sh *shellState, args []string) bool {
	if len(args) > 1 && args[0] == "-C" {
		return g.goTool(sh.moved(args[1]), args[2:])
	}
	if len(args) == 0 {
		return true
	}
	g.configured(sh, "go", args)
	switch args[0] {
	case "run", "tool":
	default:
		return true
	}
	for _, w := range argsOnly(args[1:], "-C -mod -modfile -tags -ldflags -gcflags -exec -p -overlay -toolexec -buildmode -o") {
		if strings.Contains(w, computed) && len(sh.globs(w)) == 0 {
			g.lose(sh.where, "what go runs is computed")
		}
		if strings.HasSuffix(w, ".go") {
			g.protect(sh.globs(w))
			continue // There may be several.
		}
		g.goPackage(sh, w)
		break
	}
	return true
}

func (g golang) goPackage(sh *shellState, name string) {
	name, _, _ = strings.Cut(name, "@")
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, top) || unknown(name) {
		g.protectFolder(sh, name)
		return
	}
	for _, mod := range sh.globs("go.mod") {
		text, _ := g.read(sh.where, mod)
		m := moduleLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(name, m[1]+"/"); ok {
			g.protectFolder(sh.in(path.Dir(mod)), rest)
		}
	}
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

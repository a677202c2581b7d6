package judging

import (
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// golang follows what the go program runs.
type golang struct{ *follower }

// followGo follows go run, go tool and the options of go test that name programs.
func (g golang) followGo(sh *shellState, args []string) bool {
	if len(args) > 1 && args[0] == "-C" {
		return g.followGo(sh.movedTo(args[1]), args[2:])
	}
	if len(args) == 0 {
		return true
	}
	g.protectArguments(sh, "go", args)
	switch args[0] {
	case "run", "tool":
	default:
		return true
	}
	for _, w := range argsOnly(args[1:], "-C -mod -modfile -tags -ldflags -gcflags -exec -p -overlay -toolexec -buildmode -o") {
		if strings.Contains(w, computed) && len(sh.globs(w)) == 0 {
			g.reportLost(sh.where, "what go runs is computed")
		}
		if strings.HasSuffix(w, ".go") {
			g.protectFiles(sh.globs(w))
			continue // There may be several.
		}
		g.protectPackage(sh, w)
		break
	}
	return true
}

func (g golang) protectPackage(sh *shellState, name string) {
	name, _, _ = strings.Cut(name, "@")
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, top) || partlyUnknown(name) {
		g.protectFolder(sh, name)
		return
	}
	for _, mod := range sh.globs("go.mod") {
		text, _ := g.readText(sh.where, mod)
		m := moduleLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(name, m[1]+"/"); ok {
			g.protectFolder(sh.inFolder(path.Dir(mod)), rest)
		}
	}
}

var moduleLine = lazyregexp.New(`(?m)^module\s+"?([^\s"]+)`)

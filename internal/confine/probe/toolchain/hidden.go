package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// interpreterName runs the file that its first argument names.
var interpreterName = lazyregexp.New(`^(sh|bash|dash|ksh|zsh|ash|node|bun|ruby|perl|php|python[0-9.]*)$`)

// HiddenFile is a file of the host that a line for the shell runs and that is not
// visible beside the toolchains: below ~, which is another folder there, or a
// script outside of the project in dir. It is empty if no script is hidden.
func HiddenFile(line, home, dir string, shown []Toolchain) string {
	a := newArea(home, dir)
	for _, words := range shell.Commands(line) {
		for behind, ok := shell.Behind(words); ok; behind, ok = shell.Behind(words) {
			words = behind
		}
		if len(words) > 1 && interpreterName.MatchString(filepath.Base(words[0])) {
			words = words[1:]
		} else if len(words) == 0 || !strings.HasPrefix(words[0], "~/") {
			continue // A program that is named by its path is a toolchain.
		}
		file := words[0]
		below, ofHome := strings.CutPrefix(file, "~/")
		if ofHome {
			file = filepath.Join(home, below)
		}
		info, err := os.Stat(file)
		bound := slices.ContainsFunc(shown, func(t Toolchain) bool {
			return slices.ContainsFunc(t.Bind, func(b string) bool { return isBelow(b, file) })
		})
		if err == nil && info.Mode().IsRegular() && filepath.IsAbs(file) && (ofHome || !a.isVisible(file) && !bound) {
			return words[0]
		}
	}
	return ""
}

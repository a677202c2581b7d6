package toolchain

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

const goArch = runtime.GOARCH

// TestTheToolchainsOfThisMachineRunInANewRoot looks at what happens to be
// installed.
func TestTheToolchainsOfThisMachineRunInANewRoot(t *testing.T) {
	confined := canEnter(t)
	for word, line := range map[string]string{
		"python3": `python3 -c "import ssl, json, ctypes; print(json.dumps(1))"`,
		"cargo":   "cargo --version && rustc --version",
		"node":    `node -e "console.log(require('zlib').gzipSync('x').length > 0)"`,
		"npm":     "npm --version",
		"go":      "go version && go env GOROOT",
		"gcc":     "gcc --version",
		"make":    "make --version",
		"git":     "git --version",
	} {
		t.Run(word, func(t *testing.T) {
			home, err := os.UserHomeDir()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			begin := time.Now()
			got, err := Resolve(t.Context(), proc.Plain{}, os.Environ(), dir, word)
			if err != nil {
				t.Logf("not installed: %v", err)
				return
			}
			t.Logf("%v %+v", time.Since(begin), got)
			for _, path := range got.Bind {
				if newArea(home, dir).tooWide(path) || isSecret(path) {
					t.Errorf("%s is bound", path)
				}
			}
			if confined {
				m := &machine{t: t, home: home, dir: dir}
				t.Log(m.mustEnter(got, "/bin/sh", "-c", line))
			}
		})
	}
}

func BenchmarkAProgramOfTheSystem(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		got, err := Resolve(b.Context(), startsNothing{b}, []string{"PATH=/usr/bin:/bin", "HOME=/home/nobody"}, dir, "ls")
		if err != nil || len(got.Bind) > 0 || !strings.HasPrefix(got.Path, "/") {
			b.Fatal(got, err)
		}
	}
}

package redact

import (
	"fmt"
	"go/build"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceOfProgramsHoldsNextToNoSecrets counts what the shapes find in the
// standard library and in the modules that are in the cache. Published code has
// no secrets outside of tests and examples, so what is found elsewhere is wrong.
func TestSourceOfProgramsHoldsNextToNoSecrets(t *testing.T) {
	const enough = 20 << 20 // bytes to be read at least
	const most = 0.05       // found per MB
	r := New()
	read := 0
	byName := map[string]int{}
	var elsewhere []string
	for _, root := range []string{filepath.Join(goroot(t), "src"), moduleCache()} {
		for name, text := range files(root, 64<<20) {
			read += len(text)
			for _, f := range r.Find(text) {
				byName[f.Name]++
				if !example(name) {
					elsewhere = append(elsewhere, fmt.Sprintf("%s:%d: %s", name, f.Line, f.Name))
				}
			}
		}
	}
	if read < enough {
		t.Fatalf("only %d bytes of source were found", read)
	}
	perMB := float64(len(elsewhere)) / (float64(read) / (1 << 20))
	list := strings.Join(elsewhere, "\n")
	t.Logf("%d MB; all that was found: %v; %d outside of tests and examples, %.3f per MB\n%s", read>>20, byName, len(elsewhere), perMB, list)
	if perMB > most {
		t.Errorf("%.3f per MB, at most %.2f is next to none:\n%s", perMB, most, list)
	}
}

// files are those below root that can be read, until most bytes are.
func files(root string, most int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				text, _ := os.ReadFile(name)
				if most -= len(text); !yield(name, text) || most < 0 {
					return filepath.SkipAll
				}
			}
			return nil
		})
	}
}

func example(name string) bool {
	for _, part := range []string{"test", "example", "fixture", "mock"} {
		if strings.Contains(strings.ToLower(name), part) {
			return true
		}
	}
	return false
}

func moduleCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	return filepath.Join(filepath.SplitList(build.Default.GOPATH)[0], "pkg", "mod")
}

package bootdef_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const text = "\ufeff| Fêld | Value |\r\n|---|---|\r\n| Boot Repository | `acme/boot` |\r\n| Boot Reference | v1.0.0 |\r\n| Boot Version | `1.0.0` |\r\n| `data/` | `v1.0.0` |\r\n"

func read(t *testing.T, root, text string) bootdef.Link {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, bootdef.LinkFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := bootdef.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAValueIsPlacedWhereItsTableHasIt(t *testing.T) {
	l := read(t, t.TempDir(), text)
	if err := l.Fault(); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string][2]int{"acme/boot": {3, 22}, "v1.0.0": {4, 20}, "1.0.0": {5, 19}, "data/": {6, 4}, "nowhere": {1, 1}} {
		if line, column := l.Place(value); [2]int{line, column} != want {
			t.Errorf("%s is at %d:%d, want %v", value, line, column, want)
		}
	}
}

func TestALinkThatIsTooLongIsRefusedAndNotReadWhole(t *testing.T) {
	l := read(t, t.TempDir(), text+strings.Repeat("x", 3*bootlink.MaxBytes))
	if len(l.Source) > bootlink.MaxBytes+1 || len(l.Findings) != 1 || l.Findings[0].Reason != loop.ReasonLinkMalformed {
		t.Errorf("read %d bytes, findings %v", len(l.Source), l.Findings)
	}
}

// A link within the workspace is a way that people have laid; one that leads out of it, or
// nowhere, is not followed.
func TestOnlySymbolicLinksThatStayInTheWorkspaceAreAllowed(t *testing.T) {
	for to, want := range map[string]int{"real": 0, "../elsewhere": 1, "/": 1, "nowhere": 1, ".": 0} {
		root := filepath.Join(t.TempDir(), "repo")
		if err := os.MkdirAll(filepath.Join(root, "real"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, "data")); err != nil {
			t.Fatal(err)
		}
		if l := read(t, root, text); len(l.Findings) != want || want > 0 && (l.Findings[0].Line != 6 || l.Findings[0].Reason != loop.ReasonLinkMalformed) {
			t.Errorf("data → %s: %v", to, l.Findings)
		}
	}
}

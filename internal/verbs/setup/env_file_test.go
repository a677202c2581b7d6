package setup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func writeEnvFile(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pawl.env")
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVariablesOfAFileAreReadAsSystemdReadsThem(t *testing.T) {
	path := writeEnvFile(t, "# keys\r\n; of agents\n\nKEY=sk-1 \r\n SPACED = a  b # c\nQUOTED='a\\b \"c\" $D '\nTWICE=\"it's $1\"\nJSON={\"a\": 1}\nEMPTY=\nKEY=sk-2=", 0o600)
	got, shared, err := setup.ReadEnvFile(path)
	want := []string{"KEY=sk-1", "SPACED=a  b # c", `QUOTED=a\b "c" $D `, "TWICE=it's $1", `JSON={"a": 1}`, "EMPTY=", "KEY=sk-2="}
	if diff := cmp.Diff(want, got); err != nil || shared || diff != "" {
		t.Errorf("shared %v, %v; variables (-want +got):\n%s", shared, err, diff)
	}
}

func TestALineThatIsNotAVariableIsRefusedByItsPlaceAndNotShown(t *testing.T) {
	for name, c := range map[string]struct{ line, says string }{
		"no equals sign":             {"sk-secret", "this is not NAME=VALUE"},
		"a line of a shell":          {"export KEY=sk-secret", "this is not NAME=VALUE"},
		"no name":                    {"=sk-secret", "this is not NAME=VALUE"},
		"a name with a dash":         {"MY-KEY=sk-secret", "this is not NAME=VALUE"},
		"an open quote":              {"KEY='sk-secret", "the value of KEY does not end with its quote"},
		"text behind the quote":      {`KEY="sk-secret" # mine`, "the value of KEY does not end with its quote"},
		"a backslash":                {`KEY=sk-secret\n`, "the value of KEY has a backslash and no quotes"},
		"a backslash, double quotes": {`KEY="sk-secret\n"`, "the value of KEY has a backslash in double quotes"},
		"a NUL":                      {"KEY=sk-secret\x00", "the value of KEY has a NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeEnvFile(t, "# one\nA=b\n"+c.line+"\nC=d\n", 0o600)
			set, _, err := setup.ReadEnvFile(path)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitUnreadable || f.What != path+":3: "+c.says || f.Fix == "" || set != nil {
				t.Errorf("%q, %#v; want %s:3: %s", set, err, path, c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the line is shown: %v", err)
			}
		})
	}
}

func TestEveryValueOfOneLineCanBeWrittenWithoutQuotesOrInThem(t *testing.T) {
	path := writeEnvFile(t, "", 0o600)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^\x00\n]{0,30}`).Draw(t, "value")
		quote := rapid.SampledFrom([]string{"'", `"`, ""}).Draw(t, "quote")
		var fits bool
		switch quote {
		case "'":
			fits = !strings.Contains(value, quote)
		case `"`:
			fits = !strings.ContainsAny(value, `"\`)
		default:
			fits = strings.Trim(value, " \t\r") == value && !strings.Contains(value, `\`) && !strings.HasPrefix(value, "'") && !strings.HasPrefix(value, `"`)
		}
		if !fits {
			t.Skip("it cannot be written so")
		}
		line := "NAME=" + quote + value + quote
		if err := os.WriteFile(path, []byte("A=1\n"+line+"\nB=2"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := setup.ReadEnvFile(path)
		if diff := cmp.Diff([]string{"A=1", "NAME=" + value, "B=2"}, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", line, err, diff)
		}
	})
}

func TestAFileOfVariablesThatOthersCanReadIsTold(t *testing.T) {
	for mode, want := range map[fs.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o620: true, 0o711: false} {
		if _, shared, err := setup.ReadEnvFile(writeEnvFile(t, "A=b", mode)); err != nil || shared != want {
			t.Errorf("mode %o: shared is %v, %v", mode, shared, err)
		}
	}
	if _, _, err := setup.ReadEnvFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

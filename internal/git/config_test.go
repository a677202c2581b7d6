//go:build unix

package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/proc"
)

// gitSettings is what git itself reads from a file, and whether it can.
func gitSettings(t *testing.T, file string) ([]setting, bool) {
	t.Helper()
	var out bytes.Buffer
	res, err := proc.Plain{}.Run(t.Context(), proc.Spec{
		Argv: []string{"git", "config", "--file", file, "--no-includes", "-z", "--list"},
		Dir:  filepath.Dir(file), Env: environ(filepath.Join(filepath.Dir(file), "none"), "", ""),
		Stdout: &out, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	var settings []setting
	for record := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		if record == "" {
			continue
		}
		key, value, _ := strings.Cut(record, "\n")
		settings = append(settings, setting{key, value})
	}
	return settings, res.Exit == 0
}

// blank makes white space inside values equal: before git 2.45 every byte of
// it became a space.
func blank(settings []setting) []setting {
	var out []setting
	for _, s := range settings {
		out = append(out, setting{s.key, strings.Map(func(r rune) rune {
			if r == '\t' || r == '\r' {
				return ' '
			}
			return r
		}, s.value)})
	}
	return out
}

var configSeeds = []string{
	"", "[a]\nb = c\n", "[a \"B.c\"]\n\tD = e # f\n", "[A.B]\nc\n", "\xef\xbb\xbf[a]\nb=c", "[a] b = c\n",
	"[a]\r\nb = \"c ; d\" e\r\n", "[a]\nb = c \\\n  d\n", "[a]\nb = \\\"\\t\\n\\\\\n", "[a]\nb = \\x\n", "[a]\nb = \"c\n",
	"[a \"\\\"b\\\\\"]\nc = d\n", "k = v\n", "[a]\nb_c = d\n", "[a\n]", "[a \"b\"", "; c\n# d\n[a]b", "[a]\nb = c\rd\n",
	"[]\nb=c\n", "[a \"x\ny\"]\nb = c\n", "[a]\nb =   c   d   \n", "[a]\nb = c\\", "[a]\nb = \"c\\", "[a]\n-b = c\n",
	"[include]\n\tpath = ../x\n[includeIf \"gitdir:~/x/\"]\npath = y\n", "[a]\nb = \xff\xfe\n", "[-.]\nb\n", "\xef\xbb[a]\n",
	"[a\t \"b\"]\nc\n", "[a \"b\" ]\nc\n", "[a]\nb = c;d\n", "[a]\nb = \"\" \n", "[a]\nb=\"x\" # \"\n",
}

func FuzzConfigIsReadAsGitReadsIt(f *testing.F) {
	for _, seed := range configSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseConfig(data)
		if bytes.IndexByte(data, 0) >= 0 {
			if err == nil {
				t.Error("a NUL was accepted")
			}
			return
		}
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		want, ok := gitSettings(t, file)
		if ok != (err == nil) {
			t.Fatalf("parseConfig(%q) = %v, git accepts it: %v", data, err, ok)
		}
		if ok && cmp.Diff(blank(want), blank(got), cmp.AllowUnexported(setting{})) != "" {
			t.Errorf("%q:\n got %q\nwant %q", data, got, want)
		}
	})
}

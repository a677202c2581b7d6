//go:build unix

package gitconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

// gitSettings is what git itself reads from a file, and whether it can.
func gitSettings(t *testing.T, file string) ([]Setting, bool) {
	t.Helper()
	dir := filepath.Dir(file)
	out, err := gittest.Try(t.Context(), dir, "--git-dir", filepath.Join(dir, "none"), "config", "--file", file, "--no-includes", "-z", "--list")
	var settings []Setting
	for record := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if record == "" {
			continue
		}
		key, value, _ := strings.Cut(record, "\n")
		settings = append(settings, Setting{key, value})
	}
	return settings, err == nil
}

// blank makes white space inside values equal: before git 2.45 every byte of
// it became a space.
func blank(settings []Setting) []Setting {
	var out []Setting
	for _, s := range settings {
		out = append(out, Setting{s.Key, strings.Map(func(r rune) rune {
			if r == '\t' || r == '\r' {
				return ' '
			}
			return r
		}, s.Value)})
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
		got, err := Parse(data)
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
			t.Fatalf("Parse(%q) = %v, git accepts it: %v", data, err, ok)
		}
		if ok && cmp.Diff(blank(want), blank(got)) != "" {
			t.Errorf("%q:\n got %q\nwant %q", data, got, want)
		}
	})
}

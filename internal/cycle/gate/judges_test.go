package gate

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// oneFile is a tree that has a single file.
type oneFile struct{ name, text string }

func (f oneFile) Read(name string) ([]byte, error) {
	if name == f.name {
		return []byte(f.text), nil
	}
	return nil, fs.ErrNotExist
}

func (f oneFile) Names() ([]string, error) { return []string{f.name}, nil }

func TestAGateIsRewritableByWhatItsScopeNamesOrNobodyCanFollow(t *testing.T) {
	tree := oneFile{"Makefile", "test:\n\tsh ci/check.sh\n"}
	for name, c := range map[string]struct {
		d    loop.Definition
		want []string
	}{
		"a scope that covers it":          {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"ci/**", "*"}, Verify: "make test"}, nil},
		"a scope that names it":           {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"ci/check.sh"}, Verify: "make test", Guard: "true"}, []string{"verify: ci/check.sh"}},
		"a scope that names two":          {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"ci/check.sh", "Makefile"}, Guard: "make test"}, []string{"guard: Makefile, ci/check.sh"}},
		"what cannot be followed":         {loop.Definition{Tier: loop.TierUnattended, Scope: []string{"src/**"}, Verify: `eval "$(cat src/x)"`}, []string{"verify: it cannot be followed to its end: a text that it runs is computed (verify)"}},
		"a loop that changes nothing":     {loop.Definition{Tier: loop.TierReport, Scope: []string{"ci/check.sh"}, Verify: "make test"}, nil},
		"the sense command is not a gate": {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"ci/check.sh"}, Sense: "make test"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := JudgesOf(c.d, tree)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range j.Rewritable {
				got = append(got, r.Gate+": "+strings.TrimPrefix(r.String(), "this gate can be rewritten by files in its scope: "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("rewritable (-want +got):\n%s", diff)
			}
		})
	}
	j, err := JudgesOf(loop.Definition{Sense: "make test"}, tree)
	if diff := cmp.Diff([]string{"Makefile", "ci/check.sh"}, j.Programs); diff != "" || err != nil {
		t.Errorf("what senses (-want +got), %v:\n%s", err, diff)
	}
	if !j.IsProgram("ci/check.sh") || j.IsProgram("ci/other.sh") {
		t.Error("it does not know what runs")
	}
	if j, err := JudgesOf(loop.Definition{Tier: loop.TierAssisted, Scope: []string{"[", "ci/check.sh"}, Verify: "make test"}, tree); err == nil {
		t.Errorf("an invalid scope gives %+v", j)
	}
	few := Rewritable{By: slices.Repeat([]string{"x"}, 5)}
	if got := few.String(); !strings.HasSuffix(got, "files in its scope: x, x, x, x, x") {
		t.Errorf("a short list is %q", got)
	}
	many := Rewritable{By: slices.Repeat([]string{"x"}, 8)}
	if got := many.String(); !strings.HasSuffix(got, "and 3 more") {
		t.Errorf("a long list is %q", got)
	}
}

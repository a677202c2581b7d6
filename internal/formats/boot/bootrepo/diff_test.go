//go:build unix

package bootrepo

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAChangeSaysWhichPartsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       Change
		yes        bool
		lines      []string
	}{
		"rules":                {bootlink.RulesFile, "# Agent rules\nObey.\n", Change{Rules: true}, true, []string{"--- old/contract/AGENT_RULES.md", "+++ new/contract/AGENT_RULES.md", "+Obey."}},
		"stop lines":           {StopLineName, "", Change{StopLines: true}, true, []string{"--- old/STOP_LINES.md", "-| Errors | 3 | 5 |"}},
		"a schema":             {bootlink.StateSchemaFile, "{}\n", Change{Schemas: true}, false, []string{"+++ new/schemas/state-schema.json", "+{}"}},
		"one more schema":      {"schemas/a b.json", "{}\n", Change{Schemas: true}, false, []string{"+++ new/schemas/a b.json"}},
		"the version":          {"VERSION.json", version("1.0.1", "1.0.x")["VERSION.json"], Change{Version: true}, false, []string{`-  "bootVersion": "1.0.0",`}},
		"nothing that matters": {"README.md", "x", Change{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			dir := gittest.Repo(t, standard(nil))
			older := head(t, dir)
			var newer string
			if c.text == "" {
				gittest.Run(t, dir, "rm", "-q", c.file)
				gittest.Run(t, dir, "commit", "-qm", "gone")
				newer = head(t, dir)
			} else {
				newer = commit(t, dir, c.file, c.text)
			}
			got, err := r.cache.Diff(t.Context(), linkTo(dir, "main"), r.root, older, newer)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Old, c.want.New = older, newer
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Change{}, "Text")); diff != "" || got.NeedsYes() != c.yes {
				t.Errorf("needs a yes: %v\n%s", got.NeedsYes(), diff)
			}
			for _, line := range c.lines {
				if !strings.Contains(got.Text, line) {
					t.Errorf("the diff has no line %q:\n%s", line, got.Text)
				}
			}
			if (got.Text == "") != (c.lines == nil) {
				t.Errorf("the diff is %q", got.Text)
			}
		})
	}
}

func TestTheOlderCommitIsFetchedIfItIsNotKept(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	older := head(t, dir)
	newer := commit(t, dir, bootlink.RulesFile, "# New\n")
	address := r.serve(dir, plain) + "/.git"
	link := linkTo(address, "main")
	if c := r.load(link); c.Commit != newer {
		t.Fatalf("the commit is %s", c.Commit)
	}
	d, err := r.cache.Diff(t.Context(), link, r.root, older, newer)
	if err != nil || !d.Rules {
		t.Errorf("Diff = %+v, %v", d, err)
	}
	_, err = r.cache.Diff(t.Context(), link, r.root, strings.Repeat("b", 40), newer)
	wantError(t, err, loop.ReasonBootAway, loop.ExitMissing, `has no "`+strings.Repeat("b", 40)+`": it has no such commit`)
	if _, err = r.cache.Diff(t.Context(), link, r.root, "main", newer); err == nil || !strings.Contains(err.Error(), "is not the name of a commit") {
		t.Errorf("Diff of a branch = %v", err)
	}
}

func TestALongDiffIsCutAtALine(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	older := head(t, dir)
	var long strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&long, "rule %d\n", i)
	}
	newer := commit(t, dir, bootlink.RulesFile, long.String())
	d, err := r.cache.Diff(t.Context(), linkTo(dir, "main"), r.root, older, newer)
	last := d.Text[strings.LastIndexByte(strings.TrimSuffix(d.Text, "\n"), '\n')+1:]
	if err != nil || len(d.Text) > MaxDiff+100 || !strings.HasPrefix(last, "[pawl: the diff is cut after ") {
		t.Errorf("%d bytes, the last line is %q, %v", len(d.Text), last, err)
	}
}

// A folder of temporary files that is in a repository is compared as elsewhere.
func TestADiffTakesNothingFromARepositoryAroundIt(t *testing.T) {
	r := newRig(t)
	dir := gittest.Repo(t, standard(nil))
	older := head(t, dir)
	newer := commit(t, dir, bootlink.RulesFile, "# New\n")
	around := gittest.Repo(t, map[string]string{".gitattributes": "* -diff\n"})
	gittest.Run(t, around, "config", "diff.external", "false")
	t.Setenv("TMPDIR", around)
	d, err := r.cache.Diff(t.Context(), linkTo(dir, "main"), r.root, older, newer)
	if err != nil || !strings.Contains(d.Text, "+# New") {
		t.Errorf("Diff = %q, %v", d.Text, err)
	}
	if left, err := os.ReadDir(around); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

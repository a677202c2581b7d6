package readiness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindingsPointAtTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		finding Finding
		source  string
		want    string
	}{
		"a caret under the value": {
			Finding{Message: "tier: must be L1, L2 or L3", Line: 2, Column: 7},
			"name: x\ntier: L9\n",
			"p/loop.config.yaml:2:7: tier: must be L1, L2 or L3\ntier: L9\n      ^",
		},
		"tabs stay tabs": {
			Finding{Message: "scope: x", Line: 1, Column: 4},
			"\t- *",
			"p/loop.config.yaml:1:4: scope: x\n\t- *\n\t  ^",
		},
		"characters are not bytes": {
			Finding{Message: "scope: x", Line: 1, Column: 8},
			"é: [ö, *]",
			"p/loop.config.yaml:1:8: scope: x\né: [ö, *]\n       ^",
		},
		"other systems' files": {
			Finding{Message: "b: x", Line: 2, Column: 4},
			"\ufeffa: 1\r\nb: 2\r\n",
			"p/loop.config.yaml:2:4: b: x\nb: 2\n   ^",
		},
		"no such line": {
			Finding{Message: "goal: missing", Line: 9, Column: 1},
			"a: 1",
			"p/loop.config.yaml:9:1: goal: missing",
		},
		"a column past the end": {
			Finding{Message: "a: x", Line: 1, Column: 99},
			"a:",
			"p/loop.config.yaml:1:99: a: x\na:\n  ^",
		},
		"terminal control": {
			Finding{Message: "a: x", Line: 1, Column: 4},
			"a: \x1b[2J\u202e",
			"p/loop.config.yaml:1:4: a: x\na: \ufffd[2J\ufffd\n   ^",
		},
		"a long line": {
			Finding{Message: "a: x", Line: 1, Column: 501},
			strings.Repeat("a", 500) + "b" + strings.Repeat("c", 500),
			"p/loop.config.yaml:1:501: a: x\n…" + strings.Repeat("a", 60) + "b" + strings.Repeat("c", 58) + "…\n" +
				strings.Repeat(" ", 61) + "^",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.finding.Render("p/loop.config.yaml", []byte(c.source))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

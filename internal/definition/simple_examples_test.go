package definition

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/pawl-run/pawl/internal/pattern"
)

// The definitions that people begin with must not need the YAML parser. Each of
// these tests fails if one of them does, and if it is read differently.

func TestTheExamplesOfTheDocumentsAreSimple(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		n := 0
		for _, part := range strings.Split(readText(t, page), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(part, "```\n")
			if n++; !checkSimple(t, text) {
				t.Errorf("%s: not simple:\n%s", page, text)
			}
		}
		if least := map[string]int{"README.md": 1, "config.md": len(knownKeys)}[filepath.Base(page)]; n < least {
			t.Errorf("%s has %d examples, want %d", page, n, least)
		}
	}
}

func TestTheDefinitionsOfBenchmarksAndDemoAreSimple(t *testing.T) {
	for name, text := range map[string]string{
		"benchmark": realistic, "demo": readText(t, "../demo/assets/repo/loops/loop.config.yaml"),
	} {
		if !checkSimple(t, text) {
			t.Errorf("%s: not simple:\n%s", name, text)
		}
	}
}

func TestTheTemplateOfNewLoopsIsSimpleForEveryPatternAndTier(t *testing.T) {
	const file = "../protocol/spine/templates/loop.config.yaml.tmpl"
	page := template.Must(template.New("config").Funcs(template.FuncMap{
		"entry": func(key, value string) string { return key + ": " + inLine(value) },
		"bare":  func(key string, value any) string { return fmt.Sprintf("%s: %v", key, value) },
		"later": func(key, value string) string { return "# " + key + ": " + inLine(value) },
		"list": func(key string, items []string) string {
			for i, item := range items {
				items[i] = inLine(item)
			}
			return key + ":\n  - " + strings.Join(items, "\n  - ")
		},
	}).Parse(readText(t, file)))
	n := 0
	for _, p := range pattern.All() {
		for _, tier := range []string{"L1", "L2", "L3"} {
			var b strings.Builder
			if err := page.Execute(&b, newLoop(p, tier)); err != nil {
				t.Fatal(err)
			}
			if n++; !checkSimple(t, b.String()) {
				t.Errorf("%s at %s: not simple:\n%s", p.Name, tier, b.String())
			}
		}
	}
	if want := 3 * len(pattern.Names()); n != want || n == 0 {
		t.Errorf("%d definitions, want %d", n, want)
	}
}

// newLoop is what the template is filled from for a pattern.
func newLoop(p pattern.Pattern, tier string) map[string]any {
	if tier == "L3" && p.Escalation != "" {
		p.Escalation += ", anything that cannot be done inside its isolated sandbox"
	}
	return map[string]any{
		"Name": "x-1", "Pattern": p.Name, "Tier": tier, "Cadence": "0 9 * * 1-5", "Gated": tier != "L1", "Alone": tier == "L3",
		"Goal":       cmp.Or(p.Goal, "<one sentence: what the loop does and what it must not do>"),
		"Scope":      []string{cmp.Or(p.Scope, "<fill: globs that the loop may touch, like src/**>")},
		"Verify":     cmp.Or(p.Verify, "<fill: the command that judges the work, like go test ./...>"),
		"Guard":      cmp.Or(p.Guard, "<fill: the command that must always pass, like go vet ./...>"),
		"Escalation": cmp.Or(p.Escalation, "<fill: what is handed to a human instead of done>"),
		"Mode":       map[string]string{"L1": "dontAsk", "L2": "dontAsk", "L3": "bypassPermissions"}[tier],
		"Budget":     p.Budget, "LandVia": "fleet-ops", "Sense": `gh pr list --search "is: #1"`, "Setup": "npm ci",
		"KillSwitch": ".loops/x-1/PAUSED exists, OR the loop-pause label is set",
		"Agent":      "command", "AgentCommand": "my-agent --yes", "Env": []string{"HOME", "TERM"},
	}
}

var bareWord = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./*-]*$`)

// inLine writes a value as new loops do, with quotes unless it is one word.
func inLine(value string) string {
	switch {
	case bareWord.MatchString(value):
		return value
	case strings.Contains(value, `"`):
		return "'" + value + "'"
	}
	return `"` + value + `"`
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package definition

import (
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// What a document is completed with counts only where the file says nothing, and no finding
// about it has a place of another key.
func TestADocumentIsCompletedByWhatItDoesNotSay(t *testing.T) {
	complete := func(d *Document) loop.Definition {
		for key, text := range map[string]string{
			"name": "boot", "pattern": "custom", "tier": "L2", "goal": "one task", "permission_mode": "dontAsk", "worktree": "true", "escalation": "doubts", "kill_switch": ".loops/PAUSED",
		} {
			d.Default(key, text)
		}
		d.Include("scope", "agent/**", "CHANGELOG.md")
		d.MakeOptional("cadence", "budget_tokens", "verify", "guard", "land_via")
		def, findings := d.Definition("boot")
		if len(findings) > 0 {
			t.Errorf("findings: %v", findings)
		}
		return def
	}
	empty := complete(&Document{})
	if empty.Goal != "one task" || empty.Tier != loop.TierAssisted || !slices.Equal(empty.Scope, []string{"agent/**", "CHANGELOG.md"}) {
		t.Errorf("of nothing: %+v", empty)
	}
	doc, err := Parse("f", []byte("goal: mine\nscope:\n  - src/**\nverify: make test\n"))
	if err != nil {
		t.Fatal(err)
	}
	said := complete(doc)
	if said.Goal != "mine" || said.Verify != "make test" || !slices.Equal(said.Scope, []string{"agent/**", "CHANGELOG.md", "src/**"}) {
		t.Errorf("of some keys: %+v", said)
	}
	if doc, err = Parse("f", []byte("guard: <TODO>\n")); err != nil {
		t.Fatal(err)
	}
	doc.MakeOptional("guard")
	doc.Default("tier", "L2")
	_, findings := doc.Definition("")
	if !slices.ContainsFunc(findings, func(f readiness.Finding) bool { return f.Key == "guard" && f.Line == 1 }) {
		t.Errorf("a placeholder of an optional key is passed: %v", findings)
	}
}

package pattern

import (
	"regexp"
	"testing"
)

func TestEveryPatternHasAllThatANewDefinitionNeeds(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, p := range All() {
		if !kebab.MatchString(p.Name) || p.Does == "" || p.Budget <= 0 {
			t.Errorf("%s: name, description or budget is missing: %+v", p.Name, p)
		}
		if p.Budget < p.Tokens.PerRun() || p.Tokens.Subagents < 1 {
			t.Errorf("%s: a budget of %d does not pay for one usual run of %d tokens", p.Name, p.Budget, p.Tokens.PerRun())
		}
		words := p.Goal != "" && p.Escalation != "" && p.Scope != "" && p.Locus != "" && len(p.Triggers) > 0 && len(p.Tiers) > 0
		if words == (p.Name == Custom) {
			t.Errorf("%s: words = %v", p.Name, words)
		}
		if (p.Verify == "") != (p.Guard == "") {
			t.Errorf("%s has a gate without a guard, or a guard without a gate", p.Name)
		}
	}
}

func TestEveryNameIsFoundAndNoOther(t *testing.T) {
	names := Names()
	if len(names) != 14 || names[13] != Custom {
		t.Errorf("names = %q, want 13 patterns and custom", names)
	}
	for _, name := range names {
		if p, ok := Find(name); !ok || p.Name != name {
			t.Errorf("Find(%s) = %v, %v", name, p.Name, ok)
		}
	}
	if p, ok := Find("ci-wach"); ok {
		t.Errorf("found %v", p)
	}
}

package proc

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheFirstEntryOfAVariableIsItsValue(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"none":                              {},
		"one":                               {env: []string{"A=1"}, want: "1"},
		"two":                               {env: []string{"A=1", "A=2"}, want: "1"},
		"a value with an equals sign":       {env: []string{"A=b=c"}, want: "b=c"},
		"an empty one hides a later one":    {env: []string{"A=", "A=2"}},
		"a longer name, another case, junk": {env: []string{"AB=1", "a=2", "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LookupVariable(c.env, "A"); got != c.want {
				t.Errorf("LookupVariable(%q) = %q, want %q", c.env, got, c.want)
			}
		})
	}
}

func TestVariablesThatAreSetAreThereOnce(t *testing.T) {
	entries := rapid.SliceOf(rapid.StringMatching(`[AB]{1,2}=[xy=]{0,2}`))
	rapid.Check(t, func(t *rapid.T) {
		env, set := entries.Draw(t, "env"), entries.Draw(t, "set")
		before := slices.Clone(env)
		got := WithVariables(env, set...)
		if !slices.Equal(env, before) {
			t.Fatalf("the environment became %q", env)
		}
		last := map[string]string{}
		for _, entry := range set {
			name, _, _ := strings.Cut(entry, "=")
			last[name] = entry
		}
		var kept, want []string
		for _, entry := range got {
			if name, _, _ := strings.Cut(entry, "="); last[name] == "" {
				kept = append(kept, entry)
			} else if entry != last[name] {
				t.Fatalf("%q over %q is %q, with %q", set, env, got, entry)
			}
		}
		for _, entry := range env {
			if name, _, _ := strings.Cut(entry, "="); last[name] == "" {
				want = append(want, entry)
			}
		}
		if !slices.Equal(kept, want) || len(got) != len(want)+len(last) {
			t.Fatalf("%q over %q is %q", set, env, got)
		}
	})
}

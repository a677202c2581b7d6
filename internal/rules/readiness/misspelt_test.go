package readiness_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

func TestAMisspeltKeyIsNearToOneThatTheFileLacks(t *testing.T) {
	keys := []string{"cadence", "tier", "goal", "verify", "budget_usd_day", "budget_tokens_day", "max_items"}
	for key, want := range map[string]string{
		"cadense": "cadence", "cadences": "cadence", "cdaence": "cadence", "cadens": "", "teir": "tier", "tie": "tier", "ties": "tier", "tears": "",
		"budget_usd_dy": "budget_usd_day", "budget_us_dya": "budget_usd_day", "budgetUsdDay": "budget_usd_day", "budget_usd": "", "budget": "", "max-items": "max_items", "Goal": "goal",
		"x-cadense": "", "x_cadense": "", "colour": "", "": "",
	} {
		if got := readiness.Misspelt(key, keys); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
	if got := readiness.Misspelt("cadense", []string{"tier"}); got != "" {
		t.Errorf("cadense was meant to be %q, where the file has a cadence", got)
	}
}

func TestOneTypingErrorIsFoundInAnyKey(t *testing.T) {
	keys := []string{"cadence", "goal", "budget_usd_day", "permission_mode", "kill_switch"}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		at := rapid.IntRange(0, len(key)-2).Draw(t, "at")
		letter := rapid.StringMatching(`[a-z]`).Draw(t, "letter")
		wrong := map[string]string{
			"left out": key[:at] + key[at+1:], "added": key[:at] + letter + key[at:], "another": key[:at] + letter + key[at+1:],
			"swapped": key[:at] + key[at+1:at+2] + key[at:at+1] + key[at+2:],
		}[rapid.SampledFrom([]string{"left out", "added", "another", "swapped"}).Draw(t, "error")]
		if got := readiness.Misspelt(wrong, keys); got != key {
			t.Fatalf("%q was meant to be %q, want %q", wrong, got, key)
		}
		if got := readiness.Misspelt("x-"+wrong, keys); got != "" {
			t.Fatalf("x-%s was meant to be %q", wrong, got)
		}
		lacking := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
		if got := readiness.Misspelt(wrong, lacking); got != "" {
			t.Fatalf("%q was meant to be %q, and the file has %s", wrong, got, key)
		}
	})
}

package cli

import "testing"

// A gate whose result was known of the tree has passed like any other.
func TestTheMarkOfAGateIsThatOfItsVerdict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"verify: pass": "✓", "verify: pass (3 tests reported)": "✓", "verify: pass, known of this tree": "✓",
		"guard: pass (1 test reported), known of this tree": "✓", "verify: fail (exit 1)": "✗", "verify: fail (exit 1), known of this tree": "✗", "verify: passing by": "✗",
		"reviewer: pending (nobody reviews)": "!",
	} {
		if got := gateMark(text); got != want {
			t.Errorf("%q has %s, want %s", text, got, want)
		}
	}
}

package setup

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

// What a set-up printed once came down to "ended with exit status 1:".
func TestARowOfTheDoctorHoldsWhatWasPrinted(t *testing.T) {
	if got, want := agent.OneLine("setup \"npm ci\" ended with exit status 1:\r\nnpm error\n\nE403\n", mostSaid), `setup "npm ci" ended with exit status 1: npm error E403`; got != want {
		t.Errorf("one line = %q, want %q", got, want)
	}
	if got := agent.OneLine(strings.Repeat("é\n", 5000), mostSaid); utf8.RuneCountInString(got) > 401 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text is not cut: %d runes", utf8.RuneCountInString(got))
	}
}

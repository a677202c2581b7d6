package setup

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a set-up printed once came down to "ended with exit status 1:".
func TestARowOfTheDoctorHoldsWhatWasPrinted(t *testing.T) {
	if got, want := oneLine("setup \"npm ci\" ended with exit status 1:\r\nnpm error\n\nE403\n"), `setup "npm ci" ended with exit status 1: npm error E403`; got != want {
		t.Errorf("one line = %q, want %q", got, want)
	}
	if got := oneLine(strings.Repeat("é\n", 5000)); utf8.RuneCountInString(got) > 401 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text is not cut: %d runes", utf8.RuneCountInString(got))
	}
}

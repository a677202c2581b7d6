package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheCommandsOfALine(t *testing.T) {
	for line, want := range map[string][][]string{
		`CI=1 a -p "b c"`:       {{"a", "-p", "b c"}},
		`cd x && a "$B" | b; c`: {{"cd", "x"}, {"a", ""}, {"b"}, {"c"}},
		`A=1`:                   nil,
		`a 'b`:                  nil,
	} {
		if diff := cmp.Diff(want, Commands(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

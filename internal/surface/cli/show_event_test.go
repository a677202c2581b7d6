package cli

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestOfWhatFiredARunTheBeginningIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want string }{
		"short":      {`{"ref":"v1.2"}`, `webhook:deploy: {"ref":"v1.2"}`},
		"more lines": {"one\ntwo\nthree", "webhook:deploy: one … and 2 more lines"},
		"a long line": {
			strings.Repeat("x", 5000), "webhook:deploy: " + strings.Repeat("x", 99) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describeFiringEvent(loop.FiringEvent{Source: "webhook:deploy", Times: 1, Payload: c.payload}); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

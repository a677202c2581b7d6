package cli

import (
	"testing"

	"github.com/pawl-run/pawl/internal/test/ratchet"
)

func TestCommandsDoNotBecomeMore(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&app{})
	shown := 0
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			shown++
		}
	}
	ratchet.Hold(t, ratchet.Shown, shown)
	ratchet.Hold(t, ratchet.Commands, len(root.Commands()))
}

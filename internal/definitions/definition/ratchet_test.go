package definition

import (
	"testing"

	"github.com/pawl-run/pawl/internal/test/ratchet"
)

func TestKeysDoNotBecomeMore(t *testing.T) {
	ratchet.Hold(t, ratchet.Keys, len(Fields()))
}

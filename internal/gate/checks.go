package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
)

// Check is one gate of a definition.
type Check struct {
	Name, Line string
	Fail       loop.Reason // of a tree that does not pass it
}

// ID is the same for the same command under the same conditions, whatever the gate
// is called.
func (c Check) ID(conditions ...string) string {
	h := sha256.New()
	for _, text := range append([]string{c.Line}, conditions...) {
		fmt.Fprintf(h, "%d\x00%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Checks lists the gates that a definition has, in the order in which they
// run.
func Checks(d loop.Definition) []Check {
	all := []Check{{"verify", d.Verify, loop.ReasonGateFailed}, {"guard", d.Guard, loop.ReasonGuardFailed}}
	return slices.DeleteFunc(all, func(c Check) bool { return c.Line == "" })
}

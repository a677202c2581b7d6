package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
)

// Check is one gate of a definition.
type Check struct {
	Name, Line string
	Fail       loop.Reason // of a tree that does not pass it
}

// ID is the same for the same command, whatever the gate is called.
func (c Check) ID() string {
	sum := sha256.Sum256([]byte(c.Line))
	return hex.EncodeToString(sum[:])
}

// Checks lists the gates that a definition has, in the order in which they
// run.
func Checks(d loop.Definition) []Check {
	all := []Check{{"verify", d.Verify, loop.ReasonGateFailed}, {"guard", d.Guard, loop.ReasonGuardFailed}}
	return slices.DeleteFunc(all, func(c Check) bool { return c.Line == "" })
}

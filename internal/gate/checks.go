package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
)

// KindCommand is the kind of the gates that are commands.
const KindCommand = "command"

// Check identifies a gate's check.
type Check struct {
	Name string      // unique in its definition
	Kind string      // KindCommand, invariant, reviewer
	Line string      // what it checks; for a command its command line
	Fail loop.Reason // for a tree that does not pass
}

// ID returns an ID that is equal for gates that check the same under the same
// conditions, whatever their names.
func (c Check) ID(conditions ...string) string {
	texts := append([]string{c.Line}, conditions...)
	if c.Kind != KindCommand {
		texts = append(texts, c.Kind)
	}
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d\x00%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Commands lists the command gates of a definition, in the order in which they
// run.
func Commands(d loop.Definition) []Command {
	all := []Command{{"verify", d.Verify, loop.ReasonGateFailed}, {"guard", d.Guard, loop.ReasonGuardFailed}}
	return slices.DeleteFunc(all, func(c Command) bool { return c.Line == "" })
}

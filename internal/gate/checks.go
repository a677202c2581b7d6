package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

// Check identifies a gate's check.
type Check struct {
	Name string // unique in its definition
	Kind loop.GateKind
	Line string      // what it checks; for a command its command line
	Fail loop.Reason // for a tree that does not pass
}

// ID returns an ID that is equal for gates that check the same under the same
// conditions, whatever their names.
func (c Check) ID(conditions ...string) string {
	texts := append([]string{c.Line}, conditions...)
	if c.Kind != loop.GateCommand {
		texts = append(texts, string(c.Kind))
	}
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d\x00%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Commands lists the command gates of a definition, in the order in which they
// run.
func Commands(d loop.Definition) (all []Command) {
	for _, g := range d.AllGates() {
		if g.Kind != loop.GateCommand {
			continue
		}
		c := Command{g.Name, g.Check, loop.ReasonGateFailed}
		if g.Name == loop.GateGuard {
			c.Fail = loop.ReasonGuardFailed
		}
		all = append(all, c)
	}
	return all
}

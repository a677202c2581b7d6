package listen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// failed is how a command looks that does not exit 0.
const failed = "-"

// askCommands asks each command, one after the other. It is an event if one exits 0 that did
// not before, or that had another output.
func (n *Listener) askCommands(ctx context.Context) {
	for _, s := range n.listens(loop.OnCommand) {
		if ctx.Err() != nil {
			return
		}
		a, err := n.Ask(ctx, s.Loop, s.on.What)
		switch {
		case errors.Is(err, ErrPaused):
			continue
		case err == nil && (a.Exit == 126 || a.Exit == 127):
			err = fmt.Errorf("the command cannot be started: %s", strings.TrimSpace(a.Text))
		case err == nil:
			err = n.record(ctx, s, func(before string, known bool) seen { return answered(before, known, a) })
		}
		if ctx.Err() == nil {
			n.Tell(s.Loop, s.subject(), err)
		}
	}
}

func answered(before string, known bool, a Answer) seen {
	s := seen{before: before, known: known, now: failed, quiet: a.Exit != 0}
	if a.Exit == 0 {
		sum := sha256.Sum256([]byte(a.Text))
		s.now, s.payload = hex.EncodeToString(sum[:]), a.Text
	}
	return s
}

package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/loops"
)

// AcceptRequest names definitions as a person has seen them. Those that have changed since are
// left as they are.
type AcceptRequest struct {
	Loops []loops.Seen `json:"loops"`
}

// The verb with which a person lets agents run definitions.
var (
	AcceptLoops = write("loops.accept", "accept definitions as they are, so that agents may run them", func(ctx context.Context, ws *Workspace, c Call, r AcceptRequest) (loops.Accepted, error) {
		by, err := c.answer("")
		if err != nil {
			return loops.Accepted{}, err
		}
		return ws.Loops.Accept(ctx, by.Actor(), r.Loops)
	})
)

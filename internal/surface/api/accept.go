package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
)

// AcceptRequest names definitions as a person has seen them. Those that have changed since are
// left as they are.
type AcceptRequest struct {
	Loops []loops.Seen `json:"loops"`
}

// AcceptLoops lets agents run definitions that a person has seen.
var AcceptLoops = write("loops.accept", "accept definitions as they are, so that agents may run them", func(ctx context.Context, ws *Workspace, c Call, r AcceptRequest) (loops.Accepted, error) {
	by, err := c.answer("")
	if err != nil {
		return loops.Accepted{}, err
	}
	return ws.Loops.Accept(ctx, by.Actor(), r.Loops)
})

// AskedRefs names what rows ask a machine to do, by the ids of ListAsked.
type AskedRefs struct {
	IDs []string `json:"ids"`
}

// The verbs for what rows of a shared store ask this machine to do.
var (
	ListAsked = readStore("nodes.asked", "list what rows of the store ask this machine to do", func(ctx context.Context, c Call, _ None) ([]nodes.Asked, error) {
		return c.Store.Nodes.Asks(ctx)
	})
	AcceptAsked = writeStore("nodes.accept", "accept on this machine what rows of the store ask it to do", func(ctx context.Context, c Call, r AskedRefs) ([]nodes.Asked, error) {
		return c.Store.Nodes.Accept(ctx, c.By, r.IDs)
	})
)

// Package agent is the contract between the engine and the programs that act:
// what one turn is given and what it gives back.
//
// A driver starts its program through the Exec that it is handed, never by
// itself, and decides nothing: whether a turn succeeded is for gates to say.
package agent

import (
	"context"
	"io"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

// Exec starts a program so that its whole tree of processes is gone when Run
// returns.
type Exec interface {
	Run(ctx context.Context, s proc.Spec) (proc.Result, error)
}

// Request is one turn.
type Request struct {
	Purpose string // act reply review plan generate
	Prompt  string
	Command string // of the definition, run by the shell; drivers with a program of their own may ignore it
	Model   string
	Dir     string        // the tree that the agent may change
	Env     []string      // complete environment, PAWL_* included
	Tag     string        // NAME=VALUE in Env by which survivors are recognised
	Timeout time.Duration // wall-clock cap of the turn
	Output  io.Writer     // gets what the program prints, as it prints it
}

// Ask is an action that the agent wants and may not do by itself.
type Ask struct {
	Argv []string
	Why  string
}

// Result is what a turn came to.
type Result struct {
	Exit  int
	Ended proc.Ended
	Took  time.Duration // lifetime of the process
	Usage loop.Usage
	Asks  []Ask
}

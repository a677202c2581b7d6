//go:build !linux

package proc

import (
	"context"
	"errors"
	"fmt"
)

// Method returns Group: no other method exists on this platform.
func (Tree) Method() Method { return Group }

// EnforcedLimits names the limits of Spec that Run enforces here.
func (Tree) EnforcedLimits() []string { return []string{string(TimeLimit), string(OutputLimit)} }

// Run is Plain.Run here: a descendant that leaves the process group (on Windows any
// descendant) survives, and nothing dies with pawl.
func (t Tree) Run(ctx context.Context, s Spec) (Result, error) {
	if t.Want != "" && t.Want != Group {
		return Result{Exit: -1, Ended: NotStarted},
			fmt.Errorf("start a process tree by %s: %w on this platform", t.Want, errors.ErrUnsupported)
	}
	return Plain{}.Run(ctx, s)
}

// PrepareSpawner does nothing here.
func PrepareSpawner() {}

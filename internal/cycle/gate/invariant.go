package gate

import (
	"context"
	"errors"

	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Invariant is a gate that is an expression: it passes if the expression is true. One
// that cannot be evaluated has failed.
type Invariant struct {
	Name    string
	Program *invariant.Program
	Fail    loop.Reason
}

// Check identifies the gate's check.
func (g Invariant) Check() Check {
	return Check{Name: g.Name, Kind: loop.GateInvariant, Line: g.Program.String(), Fail: g.Fail}
}

// Run evaluates the expression. It runs nothing.
func (g Invariant) Run(ctx context.Context, in Input) (loop.GateResult, error) {
	holds, why, err := g.Program.Eval(ctx, invariant.Inputs{
		Tree: in.Tree, Base: in.Base, Diff: in.Diff, Outputs: in.Outputs, BaseOutputs: in.BaseOutputs, Iteration: in.Iteration, Tokens: in.Tokens,
	})
	res := loop.GateResult{Name: g.Name, Kind: loop.GateInvariant, Pass: holds, Note: why, Evidence: g.Program.String()}
	if wrong, ok := errors.AsType[*invariant.Error](err); ok {
		res.Note = wrong.Error()
		if pointer := wrong.Pointer(); pointer != "" {
			res.Evidence = pointer
		}
		return res, nil
	}
	return res, err
}

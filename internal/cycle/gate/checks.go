package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Gate is one check by which the runtime decides about a tree.
type Gate interface {
	// Check says which check it is. It does no I/O.
	Check() Check
	// Run judges the tree in the place that the input names. A tree that does not pass
	// is a result, with the reason in its Note unless the gate is a command; an error
	// means that nothing was found out about the tree.
	Run(ctx context.Context, in Input) (loop.GateResult, error)
}

// Of makes the gate of a definition. The error says what is wrong in its check: it is
// an *invariant.Error, or a kind that does not exist.
func Of(g loop.Gate) (Gate, error) {
	switch g.Kind {
	case loop.GateCommand:
		return commandOf(g), nil
	case loop.GateInvariant:
		p, err := invariant.Compile(g.Check)
		if err != nil {
			return nil, fmt.Errorf("gate %s: %w", g.Name, err)
		}
		return Invariant{Name: g.Name, Program: p, Fail: loop.ReasonGateFailed}, nil
	case loop.GateReviewer:
		return Reviewer{Name: g.Name, Criterion: g.Check, By: g.Reviewer, Fail: loop.ReasonGateFailed}, nil
	}
	return nil, fmt.Errorf("gate %s: there is no kind %q", g.Name, g.Kind)
}

// List returns the gates of a definition, in the order in which they run. One whose
// check cannot be read fails every tree.
func List(d loop.Definition) []Gate {
	var all []Gate
	for _, g := range d.AllGates() {
		made, err := Of(g)
		if err != nil {
			made = unreadable{g, err}
		}
		all = append(all, made)
	}
	return all
}

// unreadable is a gate whose check cannot be read.
type unreadable struct {
	gate loop.Gate
	why  error
}

// Check identifies the gate's check.
func (g unreadable) Check() Check {
	return Check{Name: g.gate.Name, Kind: g.gate.Kind, Line: g.gate.Check, Fail: loop.ReasonGateFailed}
}

// Run lets no tree pass.
func (g unreadable) Run(context.Context, Input) (loop.GateResult, error) {
	return loop.GateResult{Name: g.gate.Name, Kind: g.gate.Kind, Note: g.why.Error()}, nil
}

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
func Commands(d loop.Definition) []Command {
	all := []Command{}
	for _, g := range d.AllGates() {
		if g.Kind != loop.GateCommand {
			continue
		}
		all = append(all, commandOf(g))
	}
	return all
}

func commandOf(g loop.Gate) Command {
	c := Command{g.Name, g.Check, loop.ReasonGateFailed}
	if g.Name == loop.GateGuard {
		c.Fail = loop.ReasonGuardFailed
	}
	return c
}

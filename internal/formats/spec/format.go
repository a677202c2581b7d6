package spec

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var _ engine.GivenUpStep = (*session)(nil)

// Format is that of specs.
func Format() format.Format {
	return format.Format{
		Name: loop.ProtocolSpec, Protocol: Protocol{}, Goals: &format.Goals{Until: Until, IsUntil: isUntil, Review: Review}, NoRepeat: noRepeat,
	}
}

// noRepeat refuses to repeat a run that wrote a spec: another is asked for as the first was.
func noRepeat(name string, run loop.Run) *loop.Fault {
	if name != GenerateLoop {
		return nil
	}
	again := loop.PawlCommand("spec generate").WithFlag("task", run.Request).WithFlag("by", run.Agent)
	f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("rerun %s#%d", name, run.N), Why: "it wrote a spec for a task"}
	return f.WithAdvice(loop.Advise("{1} asks for another", again))
}

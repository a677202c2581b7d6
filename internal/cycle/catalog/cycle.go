package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// cycleWhat begins the problem of a loop that would fire itself.
const cycleWhat = "its loops fire each other in a cycle: "

// CycleError means that the end of a loop would fire the loop itself, by way of others.
type CycleError struct {
	Cycle []string // names of loops; the first is the last
}

// Error names the loops of the cycle, in the order in which they fire.
func (e *CycleError) Error() string { return cycleWhat + strings.Join(e.Cycle, " → ") }

// Cycle returns a *CycleError if the end of the loop with that name would fire it again.
// The events of the others are those that their files in the workspace at root name.
func Cycle(formats format.List, root, name string, on []string) *CycleError {
	return cycleOf(name, on, func(other string) []string {
		d, _, _ := formats.Load(root, other) // Of one that is broken it has what could be read.
		return d.On
	})
}

// firedBy lists the loops whose ends fire a loop.
func firedBy(on []string) []string {
	var names []string
	for _, text := range on {
		if s, err := loop.ParseEventSource(text); err == nil && s.Kind == loop.OnLoop {
			names = append(names, s.What)
		}
	}
	return names
}

// cycleOf looks for the shortest cycle of a loop.
func cycleOf(name string, on []string, read func(name string) []string) *CycleError {
	type path struct {
		names []string // each is fired by the next
		on    []string // of the last one
	}
	seen := map[string]bool{}
	for ways := []path{{[]string{name}, on}}; len(ways) > 0; {
		way := ways[0]
		ways = ways[1:]
		for _, by := range firedBy(way.on) {
			names := append(slices.Clone(way.names), by)
			if by == name {
				slices.Reverse(names)
				return &CycleError{names}
			}
			if !seen[by] {
				seen[by] = true
				ways = append(ways, path{names, read(by)})
			}
		}
	}
	return nil
}

// findCycle returns the *loop.Fault of a loop whose end would fire it again; nil if it would
// not.
func (c *Catalog) findCycle(name string, on []string) error {
	cycle := cycleOf(name, on, func(other string) []string {
		files, _ := c.formats.FindNamed(c.ws.Root, other) // One that cannot be found fires nothing.
		var on []string
		for _, f := range files {
			on = append(on, c.files.read(c.ws.Root, f, unknown).parsed.def.On...)
		}
		return on
	})
	if cycle == nil {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitNotReady, What: name + " is not ready to run", Why: cycle.Error(), Err: cycle,
		Fix: fmt.Sprintf("take one of the loop: events of the key on away, for example in %s", definition.Path(name)),
	}
}

// cycleMoved reports whether a loop whose file is as it was registered has become a part of
// a cycle, or is one no more, because another file has changed.
func (c *Catalog) cycleMoved(name string, reg loop.Registration) bool {
	if len(firedBy(strings.Split(reg.Listens, "\n"))) == 0 {
		return false
	}
	was := strings.Contains(reg.Broken, cycleWhat)
	return (was || reg.Broken == "") && was != (c.findCycle(name, strings.Split(reg.Listens, "\n")) != nil)
}

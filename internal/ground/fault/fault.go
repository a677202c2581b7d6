// Package fault holds the named places at which a test can make the world
// fail: a process that is killed, a full disk, a stall, a panic.
//
// A package declares its points as variables and hits them on both sides of
// every external effect:
//
//	var beforeRename = fault.New("project.rename.before")
//
//	if err := beforeRename.Hit(ctx); err != nil {
//		return err
//	}
//
// There is one mechanism, a Plan, with two ways to put it in force. A test
// inside the process carries it in a context (With), so that tests run in
// parallel. A test of a real process sets the variables below, and that
// process needs to know nothing about it:
//
//	PAWL_FAULTS=1           read the other three; without it they are ignored
//	PAWL_CRASH_AT=name:3    kill this process with SIGKILL at the third hit
//	PAWL_FAIL_AT=name=EIO   any plan that Parse understands
//	PAWL_FAULT_TRACE=file   append the name of every hit to the file
//
// Points are compiled into every build. With a build tag, the tested binary would
// not be the shipped one, and the gain would be about 5 ns a hit: a Hit without a
// plan is two atomic loads. An invalid plan (an undeclared point, a misspelled
// errno) is a panic and not an error: a sweep that tests nothing must not pass.
//
// The package never fails anything by itself, and knows nothing about the code
// around a point.
package fault

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Point is a named place in the code. Make it with New; the zero Point is not
// usable.
type Point struct{ name string }

// registry lists every point of the process, in order of declaration.
var registry struct {
	sync.Mutex
	names []string
}

// New declares a point. It is called from package variables, so that Names is
// complete before main starts. A second point of the same name is a panic: a
// plan could not tell the two apart.
func New(name string) *Point {
	registry.Lock()
	defer registry.Unlock()
	if !validName(name) {
		panic("fault: point name " + name + " is not lower-case words joined by dots")
	}
	if slices.Contains(registry.names, name) {
		panic("fault: two points are named " + name)
	}
	registry.names = append(registry.names, name)
	return &Point{name}
}

// validName reports whether name has no character that the grammar of plans uses.
func validName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			return false
		}
	}
	return name != ""
}

// Names lists all points of the process, sorted.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	names := slices.Clone(registry.names)
	slices.Sort(names)
	return names
}

// Name returns the name that the point was declared with.
func (p *Point) Name() string { return p.name }

// carried is set by the first With and never reset. Until then Hit searches no context.
var carried atomic.Bool

// Hit records that the point was reached, and does what the plan says for this hit.
// The plan is that of ctx, or else that of the environment; without one Hit returns
// nil. An error from a plan names the point and wraps the errno.
func (p *Point) Hit(ctx context.Context) error {
	process := environment()
	if process == nil && !carried.Load() {
		return nil
	}
	if plan, ok := ctx.Value(planKey{}).(*Plan); ok {
		return plan.hit(ctx, p.name)
	}
	if process == nil {
		return nil
	}
	return process.hit(ctx, p.name)
}

type planKey struct{}

// With returns a context whose points follow plan and no other.
func With(ctx context.Context, plan *Plan) context.Context {
	carried.Store(true)
	return context.WithValue(ctx, planKey{}, plan)
}

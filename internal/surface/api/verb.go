// Package api is what can be asked of pawl from outside of its process: one table of
// verbs with their requests and results as data, carried out here or served as
// HTTP+JSON, with the store's feed as a stream of events.
//
// It decides nothing: each verb is one call of the package that has it. It knows nothing
// about sockets, terminals and who may connect.
package api

import (
	"context"
	"reflect"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// Workspace is what can be done in one workspace.
type Workspace struct {
	Root     string // top of the checkout
	Replaced string // id of another workspace that lay there until now; empty: none

	Runs      *runs.Service
	Snapshots *runs.Snapshots
	Loops     *loops.Service
	Approvals *approvals.Service
	Audit     *audit.Service
	Budgets   *budgets.Service
	Memories  *memories.Service
	Setup     *setup.Service
	Lookup    *lookup.Workspace // finds what grants are about
	Specs     *specs.Service
	Boots     *boots.Service
	Orgs      *orgs.Service
	Boards    *boards.Service
	Doctor    setup.Doctor
}

// Store is what can be done with a whole store, for which no repository is needed.
type Store struct {
	Roster     roster.Roster
	Logins     roster.Logins
	Nodes      *nodes.Service
	Notices    *notices.Service
	Everywhere loops.Everywhere
	Gone       func(context.Context) ([]runs.GoneRepository, error)
	Rows       *store.Store

	// Self is this process, which claims calls that have a key, and HolderState looks at another
	// one that has.
	Self        loop.Holder
	HolderState func(loop.Holder) loop.HolderState
}

// Progress is what is told while a verb is carried out. Exactly one field is set.
type Progress struct {
	Replaced  string            `json:"replaced,omitempty"`  // id of another workspace whose clone lay there until now
	Recovered *engine.Recovered `json:"recovered,omitempty"` // a run that was concluded, because its process was gone
	Warning   *Problem          `json:"warning,omitempty"`   // something that failed beside the verb
	Plan      *runs.Plan        `json:"plan,omitempty"`      // what is about to run
	Event     *loop.Event       `json:"event,omitempty"`     // of the run
}

// Call is one request to carry out a verb.
type Call struct {
	// Open opens the workspace that the request is about. With register the store learns, if
	// need be, that it lies here.
	Open func(ctx context.Context, register bool) (*Workspace, error)
	// Workspace is Open as the caller may use it. Do sets it.
	Workspace func(context.Context) (*Workspace, error)

	Store *Store
	By    loop.Actor
	Say   func(Progress) // may be called by several goroutines
	// Key makes a verb that changes something be carried out once: the same key and request
	// have the same answer again, and another request is refused. Empty: each call counts.
	Key string

	claim store.Claim // of a call with a key; zero: it has none
}

// Caller carries out verbs: in this process, or by asking another one. In is a request
// and out a pointer to a result, of the types of the verb.
type Caller interface {
	Call(ctx context.Context, v Info, in, out any) error
}

// Info describes a verb, without its types.
type Info struct {
	Name   string // noun.verb
	Does   string // a sentence for whoever uses it
	Writes bool   // it changes something; the others only read

	InWorkspace bool   // it needs a repository
	Stops       bool   // it sets a kill switch, before everything else
	Needs       string // why only a daemon carries it out; empty: any process does

	in, out reflect.Type
	do      func(ctx context.Context, c Call, in any) (any, error)
}

// brief reports whether a daemon that waits for its runs to end carries the verb out: it
// only reads, or ends what is waited for.
func (i Info) brief() bool { return !i.Writes || i.Stops || i.Name == StopRun.Name }

// Request is the empty request of the verb.
func (i Info) Request() any { return reflect.Zero(i.in).Interface() }

// Verb is something that can be asked of pawl.
type Verb[In, Out any] struct{ Info }

// Call carries the verb out. Beside an error there may be a result.
func (v Verb[In, Out]) Call(ctx context.Context, c Caller, in In) (out Out, err error) {
	err = c.Call(ctx, v.Info, in, &out)
	return out, err
}

// None is the request or the result of a verb that has none.
type None struct{}

// Do carries the verb out in this process, if the role of the caller allows it. In has the
// type of its request.
func (i Info) Do(ctx context.Context, c Call, in any) (any, error) {
	c.Workspace = i.reachable(c)
	if err := i.checkRole(c.By, in); err != nil {
		return nil, err
	}
	if err := i.checkGrant(ctx, &c, in); err != nil {
		return nil, err
	}
	if c.Key != "" && i.Writes {
		return i.doOnce(ctx, c, in)
	}
	wide, most := c.widen(in)
	out, err := i.do(ctx, c, wide)
	if err != nil {
		return out, err
	}
	return c.cutToGrant(ctx, i, in, out, most)
}

// verbIn makes a verb of one workspace.
func verbIn[In, Out any](
	i Info, before, after func(context.Context, *Workspace, Call), do func(context.Context, *Workspace, Call, In) (Out, error),
) Verb[In, Out] {
	i.InWorkspace = true
	return verbOf(i, func(ctx context.Context, c Call, in In) (out Out, err error) {
		ws, err := c.Workspace(ctx)
		if err != nil {
			return out, err
		}
		before(ctx, ws, c)
		out, err = do(ctx, ws, c, in)
		after(ctx, ws, c)
		return out, err
	})
}

func verbOf[In, Out any](i Info, do func(context.Context, Call, In) (Out, error)) Verb[In, Out] {
	i.in, i.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	i.do = func(ctx context.Context, c Call, in any) (any, error) { return do(ctx, c, in.(In)) }
	return Verb[In, Out]{i}
}

func nothing(context.Context, *Workspace, Call) {}

// read makes a verb that changes nothing.
func read[In, Out any](name, does string, do func(context.Context, *Workspace, Call, In) (Out, error)) Verb[In, Out] {
	return verbIn(Info{Name: name, Does: does}, nothing, nothing, do)
}

// write makes a verb that changes something, and that begins by concluding what dead
// processes left.
func write[In, Out any](name, does string, do func(context.Context, *Workspace, Call, In) (Out, error)) Verb[In, Out] {
	return verbIn(Info{Name: name, Does: does, Writes: true}, begin, nothing, do)
}

// switchOff is write for a verb before which nothing comes.
func switchOff[In, Out any](name, does string, do func(context.Context, *Workspace, Call, In) (Out, error)) Verb[In, Out] {
	return verbIn(Info{Name: name, Does: does, Writes: true, Stops: true}, nothing, begin, do)
}

// readStore is read for a verb that needs no repository.
func readStore[In, Out any](name, does string, do func(context.Context, Call, In) (Out, error)) Verb[In, Out] {
	return verbOf(Info{Name: name, Does: does}, do)
}

// writeStore is write for a verb that needs no repository.
func writeStore[In, Out any](name, does string, do func(context.Context, Call, In) (Out, error)) Verb[In, Out] {
	return verbOf(Info{Name: name, Does: does, Writes: true}, do)
}

// stopStore is writeStore for a kill switch.
func stopStore[In, Out any](name, does string, do func(context.Context, Call, In) (Out, error)) Verb[In, Out] {
	return verbOf(Info{Name: name, Does: does, Writes: true, Stops: true}, do)
}

// onDaemon makes a verb one that only a daemon carries out.
func onDaemon[In, Out any](why string, v Verb[In, Out]) Verb[In, Out] {
	v.Needs = why
	return v
}

// Local carries verbs out in this process.
type Local struct{ Request Call }

// Call carries a verb out.
func (l Local) Call(ctx context.Context, v Info, in, out any) error {
	result, err := v.Do(ctx, l.Request, in)
	if result != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(result))
	}
	return err
}

// begin concludes what dead processes left in a workspace before something is changed in
// it, and tells what it found. What cannot be concluded is told, too, and left to a later
// command: it must not keep other loops from running.
func begin(ctx context.Context, w *Workspace, c Call) {
	if w.Replaced != "" {
		c.Say(Progress{Replaced: w.Replaced})
		w.Replaced = "" // It is told once.
	}
	found, err := w.Runs.Recover(ctx)
	for _, r := range found {
		c.Say(Progress{Recovered: &r})
	}
	if err != nil && ctx.Err() == nil {
		c.Say(Progress{Warning: ProblemOf(err)})
	}
}

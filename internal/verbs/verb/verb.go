// Package verb says what a verb is: something that can be asked of pawl, with its request and its result as
// data, and with all that is true of it whoever asks and over whichever surface: who may, what of a workspace
// it is about, how it is carried out once, with which command a person does it, and as which tool an agent.
//
// It lists no verb but one, and calls no service: a verb brings the function that carries it out. What a
// surface needs of each verb is here too: its path over HTTP, the status of an error, its tool.
package verb

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// ErrNoDaemon means that only a daemon carries a verb out, and that none is at work.
var ErrNoDaemon = errors.New("no daemon is at work")

// Workspace is a workspace in which verbs are carried out. It embeds Place; what else of it a verb needs, the
// verb's own type says.
type Workspace interface{ place() *Place }

// Place is the part of a workspace that every verb needs.
type Place struct {
	Root     string            // top of the checkout
	Replaced string            // id of another workspace that lay there until now; empty: none
	Lookup   *lookup.Workspace // finds what grants are about
	// Recover concludes what dead processes left.
	Recover func(context.Context) ([]engine.Recovered, error)
}

func (p *Place) place() *Place { return p }

// Store is a store for which verbs are carried out. It embeds Claims, as Workspace embeds Place.
type Store interface{ claims() *Claims }

// Claims is where calls that have a key are claimed: Self is this process, which does so, and HolderState
// looks at another one that has.
type Claims struct {
	Rows        *store.Store
	Self        loop.Holder
	HolderState func(loop.Holder) loop.HolderState
}

func (c *Claims) claims() *Claims { return c }

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
	Open func(ctx context.Context, register bool) (Workspace, error)
	// Workspace is Open as the caller may use it. Do sets it.
	Workspace func(context.Context) (Workspace, error)

	Store Store
	By    loop.Actor
	Say   func(Progress) // may be called by several goroutines
	// Key makes a verb that changes something be carried out once: the same key and request
	// have the same answer again, and another request is refused. Empty: each call counts.
	Key string
	// Claim is that of a call with a key. Do sets it; zero: it has none.
	Claim store.Claim
}

// Caller carries out verbs: in this process, or by asking another one. In is a request
// and out a pointer to a result, of the types of the verb.
type Caller interface {
	Call(ctx context.Context, v Info, in, out any) error
}

// Info is a verb with all its facts, and without its types. Agents and viewers may ask for each verb that only
// reads and is not hidden. Anything else is refused unless a rule allows it. There is one exception: without
// Cut, a grant of loops gets the whole result.
type Info struct {
	Name   string // noun.verb
	Does   string // a sentence for whoever uses it
	Writes bool   // it changes something; the others only read

	InWorkspace bool   // it needs a repository
	Stops       bool   // it sets a kill switch, before everything else
	Brief       bool   // a daemon that is shutting down still carries it out
	Needs       string // why only a daemon carries it out; empty: any process does

	// In and Out are the types of its request and of its result, and On of what it needs: a workspace, or a store.
	In, Out, On reflect.Type

	Command string // with which a person does it, if it writes or is hidden; for other reads see the Command of their tool
	Once    Once   // of a verb that writes
	Twin    string // name of the verb that carries out in a process what this one queues for a daemon

	// Hidden is why agents and viewers may not ask for a verb that only reads; empty: they may. AgentRefusal,
	// of a verb that writes, returns why an agent may not send this request; nil: no agent may ask for the verb.
	Hidden       string
	AgentRefusal func(in any) (why string)
	// ReadRefusal, of a verb that reads, and PostRefusal, of one that writes, return why the agent inside a run
	// may not send this request; nil: it may not ask for the verb. PostLimit says in words what PostRefusal allows.
	ReadRefusal func(in any) (why string)
	PostRefusal func(ctx context.Context, i Info, w Workspace, of *loop.Inside, in any) (why string, err error)
	PostLimit   string
	// SubjectOf is what a request is about; nil: no grant of loops reaches the verb.
	SubjectOf func(in any) Subject
	WhyNoTool string // why no tool offers it to agents; empty: one does, or only a person may ask for it

	widen func(in any) (wide any, most int)                    // asks for all of the list that cut cuts
	cut   func(out any, reached Reached, most int) (any, bool) // nil: the result is not cut to a grant
	tool  func(i Info) Tool                                    // nil: it has none

	do func(ctx context.Context, c Call, in any) (any, error)
}

// IsCut reports whether a grant of loops gets only its part of the result.
func (i Info) IsCut() bool { return i.cut != nil }

// Request is the empty request of the verb.
func (i Info) Request() any { return reflect.Zero(i.In).Interface() }

// Path is where the verb is served over HTTP.
func (i Info) Path() string { return "/v1/" + strings.ReplaceAll(i.Name, ".", "/") }

// Verb is something that can be asked of pawl: with a W, which is what it needs of a workspace or of a store.
type Verb[W, In, Out any] struct{ Info }

// Call carries the verb out. Beside an error there may be a result.
func (v Verb[W, In, Out]) Call(ctx context.Context, c Caller, in In) (out Out, err error) {
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
	g := c.By.Grant
	if i.cut == nil || g == nil || g.Inside != nil {
		return i.do(ctx, c, in)
	}
	wide, most := i.widen(in)
	out, err := i.do(ctx, c, wide)
	if err != nil {
		return out, err
	}
	return i.cutToGrant(ctx, c, in, out, most)
}

// of makes a verb of a request and what carries it out.
func of[W, In, Out any](i Info, do func(context.Context, Call, In) (Out, error)) Verb[W, In, Out] {
	i.In, i.Out, i.On = reflect.TypeFor[In](), reflect.TypeFor[Out](), reflect.TypeFor[W]()
	i.Brief = !i.Writes || i.Stops
	i.do = func(ctx context.Context, c Call, in any) (any, error) { return do(ctx, c, in.(In)) }
	return Verb[W, In, Out]{i}
}

// inWorkspace makes a verb of one workspace.
func inWorkspace[W Workspace, In, Out any](
	i Info, before, after func(context.Context, *Place, Call), do func(context.Context, W, Call, In) (Out, error),
) Verb[W, In, Out] {
	i.InWorkspace = true
	return of[W](i, func(ctx context.Context, c Call, in In) (out Out, err error) {
		ws, err := c.Workspace(ctx)
		if err != nil {
			return out, err
		}
		before(ctx, ws.place(), c)
		out, err = do(ctx, ws.(W), c, in)
		after(ctx, ws.place(), c)
		return out, err
	})
}

// inStore makes a verb that needs no repository.
func inStore[S Store, In, Out any](i Info, do func(context.Context, S, Call, In) (Out, error)) Verb[S, In, Out] {
	return of[S](i, func(ctx context.Context, c Call, in In) (Out, error) { return do(ctx, c.Store.(S), c, in) })
}

func nothing(context.Context, *Place, Call) {}

// Read makes a verb that changes nothing.
func Read[W Workspace, In, Out any](name, does string, do func(context.Context, W, Call, In) (Out, error)) Verb[W, In, Out] {
	return inWorkspace(Info{Name: name, Does: does}, nothing, nothing, do)
}

// Write makes a verb that changes something, and that begins by concluding what dead
// processes left. A person does the same with a command.
func Write[W Workspace, In, Out any](name, does, command string, once Once, do func(context.Context, W, Call, In) (Out, error)) Verb[W, In, Out] {
	return inWorkspace(Info{Name: name, Does: does, Writes: true, Command: command, Once: once}, begin, nothing, do)
}

// SwitchOff is Write for a verb before which nothing comes.
func SwitchOff[W Workspace, In, Out any](name, does, command string, do func(context.Context, W, Call, In) (Out, error)) Verb[W, In, Out] {
	return inWorkspace(Info{Name: name, Does: does, Writes: true, Stops: true, Command: command, Once: Repeatable}, nothing, begin, do)
}

// ReadStore is Read for a verb that needs no repository.
func ReadStore[S Store, In, Out any](name, does string, do func(context.Context, S, Call, In) (Out, error)) Verb[S, In, Out] {
	return inStore(Info{Name: name, Does: does}, do)
}

// WriteStore is Write for a verb that needs no repository.
func WriteStore[S Store, In, Out any](name, does, command string, once Once, do func(context.Context, S, Call, In) (Out, error)) Verb[S, In, Out] {
	return inStore(Info{Name: name, Does: does, Writes: true, Command: command, Once: once}, do)
}

// StopStore is SwitchOff for a verb that needs no repository.
func StopStore[S Store, In, Out any](name, does, command string, do func(context.Context, S, Call, In) (Out, error)) Verb[S, In, Out] {
	return inStore(Info{Name: name, Does: does, Writes: true, Stops: true, Command: command, Once: Repeatable}, do)
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

// RecoverRuns does what every verb that writes begins with. Whoever waits for a run whose process has died
// concludes it so.
var RecoverRuns = Write("runs.recover", "conclude runs whose process is gone", "recover", Repeatable, func(context.Context, Workspace, Call, None) (None, error) {
	return None{}, nil
}).ForAgents().AboutAll().PostAny("")

// begin concludes what dead processes left in a workspace before something is changed in
// it, and tells what it found. What cannot be concluded is told, too, and left to a later
// command: it must not keep other loops from running.
func begin(ctx context.Context, p *Place, c Call) {
	if p.Replaced != "" {
		c.Say(Progress{Replaced: p.Replaced})
		p.Replaced = "" // It is told once.
	}
	found, err := p.Recover(ctx)
	for _, r := range found {
		c.Say(Progress{Recovered: &r})
	}
	if err != nil && ctx.Err() == nil {
		c.Say(Progress{Warning: ProblemOf(err)})
	}
}

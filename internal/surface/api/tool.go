package api

import (
	"context"
	"reflect"

	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// ToolGroup says with which tools a tool is offered: each group has those of the groups
// before it, too.
type ToolGroup string

// The groups.
const (
	ToolsSeed ToolGroup = "seed" // the five of the loop lifecycle
	ToolsCore ToolGroup = "core" // what an agent needs from day to day
	ToolsAll  ToolGroup = "all"
)

// ToolGroups lists the groups, the smallest first.
func ToolGroups() []ToolGroup { return []ToolGroup{ToolsSeed, ToolsCore, ToolsAll} }

// Tool is how verbs are offered to an agent.
type Tool struct {
	Name  string
	Does  string // for the model that reads it: no text of a repository
	Group ToolGroup
	// Verbs are those that a call asks for, the one that it is named after first.
	Verbs []Info
	// Command is the command of pawl that does the same: errors that advise it name the tool.
	// One with arguments is never advised like that. Also has more commands that it does.
	Command string
	Also    []string

	Long        *LongCall // it may last until a run has ended; nil: it does not
	Idempotent  bool      // a second call with the same arguments changes nothing more
	Destructive bool      // it ends or takes back something
	OpenWorld   bool      // a model or a program of the workspace acts in it

	// In is the type of its arguments, a struct, and Out that of its result, or of one
	// entry of its list.
	In, Out reflect.Type

	call func(ctx context.Context, c Caller, in any) (any, error)
	list func(ctx context.Context, c Caller, in any, page Page) (Listing, error)
}

// LongCall is how a tool is carried out that lasts until a run has ended. In is the
// arguments of the tool.
type LongCall struct {
	// Fire queues the run for a daemon. The error is ErrNoDaemon if none is at work.
	Fire func(ctx context.Context, c Caller, in any) (Fired, error)
	// Run carries the run out in this process.
	Run func(ctx context.Context, c Caller, in any) (runs.View, error)
	// Ended is the result of the tool once the run has ended.
	Ended func(ctx context.Context, c Caller, in any, run runs.View) (any, error)
}

// Page says which part of a list is wanted.
type Page struct {
	Cursor string // of the page before; empty: the beginning
	Limit  int    // at most as many entries
}

// Listing is a page of a list.
type Listing struct {
	Schema string
	Data   []any
	// Cursors are where the list goes on after each entry; that of the last one is empty if
	// nothing follows.
	Cursors []string
}

// Writes reports whether a call may change something.
func (t Tool) Writes() bool {
	for _, v := range t.Verbs {
		if v.Writes {
			return true
		}
	}
	return false
}

// Lists reports whether the result is a list, which comes in pages.
func (t Tool) Lists() bool { return t.list != nil }

// Call carries the tool out. In has the type In, and the result the type Out. A tool that
// lists has List instead.
func (t Tool) Call(ctx context.Context, c Caller, in any) (any, error) { return t.call(ctx, c, in) }

// List returns a page of a list. In has the type In.
func (t Tool) List(ctx context.Context, c Caller, in any, page Page) (Listing, error) {
	return t.list(ctx, c, in, page)
}

// long makes a tool whose call lasts until a run has ended. Its first verb queues the run.
func long[In, Out any](t Tool, fire, run Info, l LongCall) Tool {
	t.Verbs = append([]Info{fire, run}, t.Verbs...)
	t.In, t.Out, t.Long = reflect.TypeFor[In](), reflect.TypeFor[Out](), &l
	return t
}

// as makes a tool of a verb, with the arguments and the result of the verb.
func as[In, Out any](v Verb[In, Out], t Tool) Tool {
	return with(v.Info, t, func(ctx context.Context, c Caller, in In) (Out, error) { return v.Call(ctx, c, in) })
}

// with makes a tool that is named after a verb, and has arguments or a result of its own.
func with[In, Out any](v Info, t Tool, call func(context.Context, Caller, In) (Out, error)) Tool {
	t.Verbs = append([]Info{v}, t.Verbs...)
	t.In, t.Out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	t.call = func(ctx context.Context, c Caller, in any) (any, error) { return call(ctx, c, in.(In)) }
	return t
}

// asList makes a tool of a verb that returns all of a list at once.
func asList[In, Entry any](v Verb[In, []Entry], schema string, t Tool) Tool {
	return withList(v.Info, schema, t, v.Call)
}

// withList is asList for a verb whose list is a part of its result.
func withList[In, Entry any](v Info, schema string, t Tool, all func(context.Context, Caller, In) ([]Entry, error)) Tool {
	t.Verbs = append([]Info{v}, t.Verbs...)
	t.In, t.Out = reflect.TypeFor[In](), reflect.TypeFor[Entry]()
	t.list = func(ctx context.Context, c Caller, in any, page Page) (Listing, error) {
		from, err := parsePlace(page.Cursor)
		if err != nil {
			return Listing{}, err
		}
		list, err := all(ctx, c, in.(In))
		if err != nil {
			return Listing{}, err
		}
		return pageOf(schema, list, from, page.Limit), nil
	}
	return t
}

// withPages makes a tool of a verb that finds a page of its list by itself. Next asks for at
// most limit entries after a place, which is empty at the beginning, and after says the place
// of an entry.
func withPages[In, Entry any](
	v Info, schema string, t Tool, next func(ctx context.Context, c Caller, in In, after string, limit int) ([]Entry, error), after func(Entry) string,
) Tool {
	t.Verbs = append([]Info{v}, t.Verbs...)
	t.In, t.Out = reflect.TypeFor[In](), reflect.TypeFor[Entry]()
	t.list = func(ctx context.Context, c Caller, in any, page Page) (Listing, error) {
		list, err := next(ctx, c, in.(In), page.Cursor, page.Limit+1) // One more tells whether there is one.
		l := Listing{Schema: schema, Data: []any{}}
		for i, entry := range list[:min(len(list), page.Limit)] {
			l.Data = append(l.Data, entry)
			place := after(entry)
			if i+1 == len(list) {
				place = ""
			}
			l.Cursors = append(l.Cursors, place)
		}
		return l, err
	}
	return t
}

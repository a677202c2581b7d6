package verb

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
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

// Tool is how a verb is offered to an agent.
type Tool struct {
	Name  string
	Does  string // for the model that reads it: no text of a repository
	Group ToolGroup
	// Verbs are those that a call asks for. AsTool puts the tool's own verb in front.
	Verbs []Info
	// Command is the command of pawl that does the same: errors that advise it name the tool.
	// One with arguments is never advised like that. Empty: that of the verb. Also lists further commands
	// that the tool stands in for.
	Command string
	Also    []string
	Schema  string // of a list, whose pages say it

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
	// Waits reports whether the caller wants to know how the run ends.
	Waits func(in any) bool
	// Ended is the result of the tool once the run has ended.
	Ended func(ctx context.Context, c Caller, in any, run runs.View) (any, error)
}

// Fired is a run that was queued.
type Fired struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	Loop   string `json:"loop"`
	N      int64  `json:"n"`
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

// AsTool is how the verb is offered to agents; nil: it is not.
func (i Info) AsTool() *Tool {
	if i.tool == nil {
		return nil
	}
	t := i.tool(i)
	t.Verbs, t.Command = append([]Info{i}, t.Verbs...), cmp.Or(t.Command, i.Command)
	return &t
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

// Ask asks for the verb that a tool is of.
type Ask[In, Out any] func(ctx context.Context, c Caller, in In) (Out, error)

// ToolFor makes the tool of a verb.
type ToolFor[In, Out any] func(ask Ask[In, Out]) Tool

// Arguments are those of a tool that are made into the request of its verb.
type Arguments[In any] struct {
	of      reflect.Type
	request func(arguments any) In
}

// From takes arguments of another type than that of the request.
func From[ToolIn, In any](request func(ToolIn) In) Arguments[In] {
	return Arguments[In]{reflect.TypeFor[ToolIn](), func(in any) In { return request(in.(ToolIn)) }}
}

// With makes a tool that has arguments or a result of its own. A result that is a list comes in pages.
func With[ToolIn, ToolOut, In, Out any](t Tool, call func(context.Context, Caller, Ask[In, Out], ToolIn) (ToolOut, error)) ToolFor[In, Out] {
	return func(ask Ask[In, Out]) Tool {
		return t.calling(reflect.TypeFor[ToolIn](), reflect.TypeFor[ToolOut](), func(ctx context.Context, c Caller, in any) (any, error) {
			return call(ctx, c, ask, in.(ToolIn))
		})
	}
}

// calling is the tool with what it does.
func (t Tool) calling(in, out reflect.Type, call func(context.Context, Caller, any) (any, error)) Tool {
	t.In, t.Out, t.call = in, out, call
	if out.Kind() != reflect.Slice {
		return t
	}
	t.Out, t.call, t.list = out.Elem(), nil, func(ctx context.Context, c Caller, in any, page Page) (Listing, error) {
		from, err := ParsePlace(page.Cursor)
		if err != nil {
			return Listing{}, err
		}
		list, err := call(ctx, c, in)
		if err != nil {
			return Listing{}, err
		}
		return pageOf(t.Schema, reflect.ValueOf(list), from, page.Limit), nil
	}
	return t
}

// WithPages makes a tool of a verb that finds a page of its list by itself. Next asks for at
// most limit entries after a place, which is empty at the beginning, and after says the place
// of an entry.
func WithPages[ToolIn, Entry, In, Out any](
	t Tool, next func(ctx context.Context, c Caller, ask Ask[In, Out], in ToolIn, after string, limit int) ([]Entry, error), after func(Entry) string,
) ToolFor[In, Out] {
	return func(ask Ask[In, Out]) Tool {
		made := t
		made.In, made.Out = reflect.TypeFor[ToolIn](), reflect.TypeFor[Entry]()
		made.list = func(ctx context.Context, c Caller, in any, page Page) (Listing, error) {
			list, err := next(ctx, c, ask, in.(ToolIn), page.Cursor, page.Limit+1) // One more tells whether there is one.
			l := Listing{Schema: t.Schema, Data: []any{}}
			for i, entry := range list[:min(len(list), page.Limit)] {
				l.Data = append(l.Data, entry)
				place := ""
				if i+1 < len(list) {
					place = after(entry)
				}
				l.Cursors = append(l.Cursors, place)
			}
			return l, err
		}
		return made
	}
}

// Long makes a tool whose call lasts until a run has ended, if the caller waits for that. Its verb queues the
// run, and run is the twin.
func Long[W, ToolIn, ToolOut, In any](
	t Tool, run Verb[W, In, runs.View], start func(ToolIn) In, waits func(ToolIn) bool, ended func(context.Context, Caller, ToolIn, runs.View) (ToolOut, error),
) ToolFor[In, Fired] {
	return func(fire Ask[In, Fired]) Tool {
		made := t
		made.Verbs = slices.Concat([]Info{run.Info}, t.Verbs, []Info{RecoverRuns.Info})
		made.In, made.Out = reflect.TypeFor[ToolIn](), reflect.TypeFor[ToolOut]()
		made.Long = &LongCall{
			Fire: func(ctx context.Context, c Caller, in any) (Fired, error) { return fire(ctx, c, start(in.(ToolIn))) },
			Run: func(ctx context.Context, c Caller, in any) (runs.View, error) {
				return run.Call(ctx, c, start(in.(ToolIn)))
			},
			Waits: func(in any) bool { return waits(in.(ToolIn)) },
			Ended: func(ctx context.Context, c Caller, in any, v runs.View) (any, error) {
				return ended(ctx, c, in.(ToolIn), v)
			},
		}
		return made
	}
}

// pageOf is the page of a list that begins at an index.
func pageOf(schema string, list reflect.Value, from, limit int) Listing {
	l := Listing{Schema: schema, Data: []any{}}
	for i := min(from, list.Len()); i < list.Len() && len(l.Data) < limit; i++ {
		l.Data = append(l.Data, list.Index(i).Interface())
		place := ""
		if i+1 < list.Len() {
			place = strconv.Itoa(i + 1)
		}
		l.Cursors = append(l.Cursors, place)
	}
	return l
}

// ParsePlace reads a cursor that is a number. An empty one is the beginning.
func ParsePlace(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, CursorFault(cursor)
	}
	return n, nil
}

// TextPlace is a cursor that has a text.
func TextPlace(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// ParseTextPlace returns the two words of a cursor that TextPlace has made.
func ParseTextPlace(cursor string) (first, second string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	first, second, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return "", "", CursorFault(cursor)
	}
	return first, second, nil
}

// CursorFault refuses a cursor with which no page ends.
func CursorFault(cursor string) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: fmt.Sprintf("invalid cursor %q", cursor), Why: "no page ends with it", Fix: "pass next_cursor of a page of the same list, or none for the beginning",
	}
}

package api

import (
	"cmp"
	"context"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// LoopRef names a loop.
type LoopRef struct {
	Loop string `json:"loop" jsonschema:"name of a loop, or id of one of loop_list"`
}

func (r LoopRef) subject() verb.Subject { return verb.Subject{Loop: r.Loop} }

// LoopQuery selects a part of the loops, which are in the order of their names and protocols. The
// zero LoopQuery selects all.
type LoopQuery struct {
	AfterName     string `json:"after_name,omitempty"` // of the last loop of the part before
	AfterProtocol string `json:"after_protocol,omitempty"`
	Limit         int    `json:"limit,omitempty"` // 0: all
}

// NextLoop is whose firings loop_next tells.
type NextLoop struct {
	Loop  string `json:"loop" jsonschema:"name of a loop"`
	Count int    `json:"count,omitempty" jsonschema:"how many firings, 5 if left out"`
}

const mostFirings = 5

// NextQuery selects the coming firings of a loop.
type NextQuery struct {
	Loop  string `json:"loop"`
	Count int    `json:"count"`
}

// LoopList is the loops of a workspace.
type LoopList struct {
	Root  string      `json:"root"` // top of the checkout
	Loops []loops.Row `json:"loops"`
}

// RegisterRequest says how to register a workspace.
type RegisterRequest struct {
	Accept bool `json:"accept,omitempty"` // what git would execute now, if that has changed
}

// SwitchRequest says what to pause or resume.
type SwitchRequest struct {
	Loop string `json:"loop,omitempty"` // empty: every loop
	Why  string `json:"why,omitempty"`
}

// The verbs for loops.
var (
	ListLoops = verb.Read("loops.list", "list the loops of the workspace", func(ctx context.Context, ws *Workspace, _ verb.Call, q LoopQuery) (l LoopList, err error) {
		l.Root = ws.Root
		l.Loops, err = ws.Loops.ListPage(ctx, catalog.Page{After: catalog.Key{Name: q.AfterName, Protocol: q.AfterProtocol}, Limit: q.Limit})
		return l, err
	}).AboutAll().Cut(func(q *LoopQuery) *int { return &q.Limit }, cutLoops).Seen().ToolBy(verb.WithPages(verb.Tool{
		Name: "loop_overview", Schema: "pawl.loops/v1", Group: verb.ToolsCore, Command: "ls",
		Does: "List every loop of the workspace, those of files too: its state, its newest run, what it waits for.",
	}, overviewLoops, func(r loops.Row) string { return verb.TextPlace(r.Protocol + " " + r.Name) }))
	ShowLoop = verb.Read("loops.show", "show a loop", func(ctx context.Context, ws *Workspace, _ verb.Call, r LoopRef) (loops.Row, error) {
		return ws.Loops.Show(ctx, r.Loop)
	}).About(LoopRef.subject).Seen().Tool(verb.Tool{Name: "loop_show", Group: verb.ToolsAll, Command: "show", Does: "Show a loop with its steps and its budgets."})
	PlanLoop = verb.Read("loops.next", "say when a loop fires next", func(ctx context.Context, ws *Workspace, _ verb.Call, q NextQuery) (loops.Plan, error) {
		return ws.Loops.Next(ctx, q.Loop, q.Count)
	}).About(func(q NextQuery) verb.Subject { return verb.Subject{Loop: q.Loop} }).Seen().
		ToolFrom(verb.Tool{Name: "loop_next", Group: verb.ToolsCore, Command: "next", Does: "Say when a loop fires next, or why it does not."}, verb.From(func(r NextLoop) NextQuery { return NextQuery{r.Loop, cmp.Or(r.Count, mostFirings)} }))
	PlanLoops = verb.Read("loops.plans", "say when each loop fires next", func(ctx context.Context, ws *Workspace, _ verb.Call, _ verb.None) ([]loops.Plan, error) {
		return ws.Loops.Plans(ctx)
	}).AboutAll().Cut(nil, verb.CutEntries(func(p loops.Plan) string { return p.Loop })).Seen().
		Tool(verb.Tool{Name: "loop_plans", Schema: "pawl.plans/v1", Group: verb.ToolsAll, Command: "next", Does: "Say when each loop fires next, the soonest first."})
	RegisterLoops = verb.Write("loops.register", "read all definitions of the workspace again", "reload", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, _ verb.None) (catalog.Synced, error) {
		synced, err := ws.Loops.Register(ctx)
		if err == nil && c.By.IsPerson() {
			err = ws.Loops.AcceptRegistered(ctx, c.By)
		}
		return synced, err
	}).NoTool("a daemon reads definitions again by itself")
	RegisterWorkspace = verb.Write("workspaces.register", "record the workspace, and what git would execute in it", "init", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r RegisterRequest) (verb.None, error) {
		return verb.None{}, ws.Setup.Register(ctx, c.By, r.Accept)
	})
	PauseLoops = verb.SwitchOff("loops.pause", "set the kill switch of a loop, or of all", "pause", func(ctx context.Context, ws *Workspace, c verb.Call, r SwitchRequest) (loops.Switched, error) {
		return ws.Loops.Pause(ctx, c.By, r.Loop, r.Why)
	}).ForAgentsUnless(func(r SwitchRequest) string { return ofAllLoops(r.Loop, "an agent pauses one loop at a time") }).
		About(func(r SwitchRequest) verb.Subject { return verb.Subject{Loop: r.Loop} }).PostBelow("loops below its own").
		Tool(verb.Tool{Name: "loop_pause", Group: verb.ToolsCore, Idempotent: true, Destructive: true, Does: "Set the kill switch of a loop: its run ends, and it does not fire."})
	ResumeLoops = verb.Write("loops.resume", "clear the kill switch of a loop, or of all", "resume", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r LoopRef) (loops.Switched, error) {
		return ws.Loops.Resume(ctx, c.By, r.Loop)
	}).ForAgentsUnless(func(r LoopRef) string { return ofAllLoops(r.Loop, "an agent resumes one loop at a time") }). // Which ones, package loops decides: those that an agent paused.
																About(LoopRef.subject).Tool(verb.Tool{Name: "loop_resume", Group: verb.ToolsCore, Idempotent: true, Does: "Clear the kill switch of a loop that an agent has paused. What a person has stopped, only a person resumes."})
	KillLoops = verb.SwitchOff("loops.kill", "set the kill switch and wait until nothing runs any more", "kill", func(ctx context.Context, ws *Workspace, c verb.Call, r SwitchRequest) (loops.Switched, error) {
		return ws.Loops.Kill(ctx, c.By, r.Loop, r.Why)
	}).NoTool("loop_pause stops a loop, and waits for nothing")
	ForgetLoop = verb.Write("loops.forget", "list a loop no more, and close its open approvals", "rm", verb.Unknown, func(ctx context.Context, ws *Workspace, c verb.Call, r LoopRef) (loops.Forgotten, error) {
		return ws.Loops.Forget(ctx, c.By, r.Loop)
	})
	PauseEverywhere = verb.StopStore("everywhere.pause", "set the kill switch of every loop of every workspace", "pause", func(ctx context.Context, s *Store, c verb.Call, r SwitchRequest) (loops.Switched, error) {
		return s.Everywhere.Pause(ctx, c.By, r.Why)
	}).NoTool("an agent pauses one loop at a time")
	ResumeEverywhere = verb.WriteStore("everywhere.resume", "clear what everywhere.pause has set", "resume", verb.Repeatable, func(ctx context.Context, s *Store, c verb.Call, _ verb.None) (loops.Switched, error) {
		return s.Everywhere.Resume(ctx, c.By)
	})
)

// AcceptRequest names definitions as a person has seen them. Those that have changed since are
// left as they are.
type AcceptRequest struct {
	Loops []loops.Seen `json:"loops"`
}

// AcceptLoops lets agents run definitions that a person has seen.
var AcceptLoops = verb.Write("loops.accept", "accept definitions as they are, so that agents may run them", "check", verb.Repeatable, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r AcceptRequest) (loops.Accepted, error) {
	return ws.Loops.Accept(ctx, by.Actor(), r.Loops)
})).NoTool("a person accepts definitions, with the check of a loop")

// ofAllLoops refuses an agent to switch all loops at once.
func ofAllLoops(loop, why string) string {
	if loop == "" {
		return why
	}
	return ""
}

// cutLoops leaves the loops that are reached, and of those the first so many; 0: all.
func cutLoops(l LoopList, reached verb.Reached, most int) (LoopList, bool) {
	l.Loops, _ = verb.CutEntries(func(r loops.Row) string { return r.Name })(l.Loops, reached, most)
	return l, true
}

// overviewLoops lists a page of all loops, from the one after a place.
func overviewLoops(ctx context.Context, c verb.Caller, list verb.Ask[LoopQuery, LoopList], _ verb.None, after string, limit int) ([]loops.Row, error) {
	q := LoopQuery{Limit: limit}
	if after != "" {
		var err error
		if q.AfterProtocol, q.AfterName, err = verb.ParseTextPlace(after); err != nil {
			return nil, err
		}
	}
	l, err := list(ctx, c, q)
	return l.Loops, err
}

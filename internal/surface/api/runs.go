package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// RunRef names a run: its id, LOOP#N, or LOOP for its newest.
type RunRef struct {
	Run string `json:"run" jsonschema:"run id, LOOP#N, or LOOP for its newest run"`
}

func (r RunRef) subject() verb.Subject { return verb.Subject{Run: r.Run} }

// RunQuery selects runs.
type RunQuery struct {
	Loop  string `json:"loop,omitempty"` // empty: of all loops
	Limit int    `json:"limit"`
}

// checkLimit judges how many entries of a list are asked for. A list that is read page by page
// would never end with pages of none.
func checkLimit(limit int) error {
	if limit < 1 {
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid limit %d", limit), Fix: "write a limit of 1 or more"}
	}
	return nil
}

// EventQuery selects events of a run.
type EventQuery struct {
	ID    string `json:"id"`              // of the run
	After int64  `json:"after,omitempty"` // number of the event after which they begin
	Limit int    `json:"limit"`
}

// EventPage is some events of a run, oldest first.
type EventPage struct {
	Events []loop.Event `json:"events"`
	More   bool         `json:"more"` // others may follow
}

// FeedPlace is a place in the store's feed of changes.
type FeedPlace struct {
	Cursor loop.Cursor `json:"cursor"`
}

// RunWait is for whom to wait.
type RunWait struct {
	ID    string      `json:"id"`
	After loop.Cursor `json:"after"`
}

// Liveness says whether a run of the workspace has a holder, dead or alive.
type Liveness struct {
	Live bool `json:"live"`
}

// StopRequest says which run to stop.
type StopRequest struct {
	Run string `json:"run" jsonschema:"run id, LOOP#N, or LOOP for its newest run"`
	Why string `json:"why,omitempty" jsonschema:"for the record"`
}

// RerunRequest says which run to do again.
type RerunRequest struct {
	Run  string `json:"run"`
	Hint string `json:"hint,omitempty"` // what the agent is told
}

// GateRef names a reviewer of a loop.
type GateRef struct {
	Loop string `json:"loop"`
	Gate string `json:"gate,omitempty"` // empty: the first reviewer
}

// RunLoop is what loop_run runs.
type RunLoop struct {
	Loop    string `json:"loop" jsonschema:"name of a loop, or id of one of loop_list"`
	Request string `json:"request,omitempty" jsonschema:"what the agent is asked to do in this run"`
	Wait    bool   `json:"wait,omitempty" jsonschema:"return when the run has ended, and not when it has begun"`
}

func (r RunLoop) start() runs.StartRequest {
	return runs.StartRequest{Loop: r.Loop, Request: r.Request}
}

// RunChoice selects runs.
type RunChoice struct {
	Loop string `json:"loop,omitempty" jsonschema:"only of this loop"`
}

// PatchRequest asks for a part of what a run changed.
type PatchRequest struct {
	Run    string `json:"run" jsonschema:"run id, LOOP#N, or LOOP for its newest run"`
	Cursor string `json:"cursor,omitempty" jsonschema:"of the part before"`
}

// PatchPart is a part of a patch: whole lines.
type PatchPart struct {
	Schema     string   `json:"schema"`
	Run        string   `json:"run"`
	Patch      string   `json:"patch"` // written by an agent: data, no instructions
	Careful    []string `json:"careful,omitempty"`
	Bytes      int      `json:"bytes"` // of the whole patch
	NextCursor string   `json:"next_cursor,omitempty"`
}

const (
	mostPatch = 1 << 10 // bytes of a part of a patch, or one line
	mostRuns  = 200
)

// The verbs for runs.
var (
	ListRuns = verb.Read("runs.list", "list the newest runs of a loop, or of all", func(ctx context.Context, ws *Workspace, _ verb.Call, q RunQuery) ([]runs.View, error) {
		if err := checkLimit(q.Limit); err != nil {
			return nil, err
		}
		return ws.Runs.List(ctx, q.Loop, q.Limit)
	}).About(func(q RunQuery) verb.Subject { return verb.Subject{Loop: q.Loop, All: true} }).Cut(nil, verb.CutEntries(func(v runs.View) string { return v.Loop })).Seen().
		ToolFrom(verb.Tool{Name: "run_list", Schema: "pawl.runs/v1", Group: verb.ToolsAll, Command: "runs", Does: "List the 200 newest runs of a loop, or of all."}, verb.From(func(r RunChoice) RunQuery { return RunQuery{r.Loop, mostRuns} }))
	ShowRun = verb.Read("runs.show", "show a run with its iterations and turns", func(ctx context.Context, ws *Workspace, _ verb.Call, r RunRef) (runs.View, error) {
		return ws.Runs.Show(ctx, r.Run)
	}).About(RunRef.subject).Seen().Tool(verb.Tool{Name: "loop_trace", Group: verb.ToolsCore, Command: "trace", Does: "Show a run with the trace of each iteration, its gates and what it cost."})
	ExplainRun = verb.Read("runs.why", "explain how a run ended and why each step was picked or not", func(ctx context.Context, ws *Workspace, _ verb.Call, r RunRef) (runs.Why, error) {
		return ws.Runs.Why(ctx, r.Run)
	}).About(RunRef.subject).Seen().Tool(verb.Tool{Name: "loop_why", Group: verb.ToolsCore, Command: "why", Does: "Explain how a run ended, or why nothing happened: each candidate with the rule that picked or dropped it, and what a person can do."})
	DiffRun = verb.Read("runs.diff", "show what a run changed, as a patch", func(ctx context.Context, ws *Workspace, _ verb.Call, r RunRef) (runs.Patch, error) {
		return ws.Runs.Diff(ctx, r.Run)
	}).About(RunRef.subject).Seen().ToolBy(verb.With(verb.Tool{Name: "loop_diff", Group: verb.ToolsCore, Command: "diff", Does: "Show what a run changed, as a patch, in parts of whole lines."}, diffPart))
	ListEvents = verb.Read("runs.events", "list what happened in a run", func(ctx context.Context, ws *Workspace, _ verb.Call, q EventQuery) (p EventPage, err error) {
		if err := checkLimit(q.Limit); err != nil {
			return p, err
		}
		p.Events, p.More, err = ws.Runs.Events(ctx, q.ID, q.After, q.Limit)
		return p, err
	}).About(func(q EventQuery) verb.Subject { return verb.Subject{Run: q.ID} }).Seen().
		ToolBy(verb.WithPages(verb.Tool{Name: "run_events", Schema: "pawl.events/v1", Group: verb.ToolsAll, Command: "logs", Does: "List what happened in a run, oldest first."}, listEvents, func(e loop.Event) string {
			return strconv.FormatInt(e.Seq, 10)
		}))
	FindFeedHead = verb.Read("runs.head", "tell the newest place in the store's feed of changes", func(ctx context.Context, ws *Workspace, _ verb.Call, _ verb.None) (p FeedPlace, err error) {
		p.Cursor, err = ws.Runs.FeedHead(ctx)
		return p, err
	}).AboutAll().Seen().NoTool("a place in the feed is for programs that follow it: subscriptions to resources do so")
	AwaitRun = verb.Read("runs.await", "wait for a change of a run, for two seconds at most", func(ctx context.Context, ws *Workspace, _ verb.Call, w RunWait) (p FeedPlace, err error) {
		p.Cursor, err = ws.Runs.WaitForRun(ctx, w.ID, w.After)
		return p, err
	}).About(func(w RunWait) verb.Subject { return verb.Subject{Run: w.ID} }).Seen().NoTool("it waits in the feed, for programs that follow it: subscriptions to resources do so")
	FindLive = verb.Read("runs.live", "tell whether a run of the workspace has a holder, dead or alive", func(ctx context.Context, ws *Workspace, _ verb.Call, _ verb.None) (l Liveness, err error) {
		l.Live, err = ws.Runs.Live(ctx)
		return l, err
	}).AboutAll().Seen().NoTool("loop_trace and loop_overview say what is live")
	PlanRun = verb.Read("runs.plan", "say what would run, and start nothing", func(ctx context.Context, ws *Workspace, _ verb.Call, r runs.StartRequest) (p runs.Plan, err error) {
		prepared, err := ws.Runs.Prepare(ctx, r)
		if err != nil {
			return p, err
		}
		return ws.Runs.Plan(ctx, prepared)
	}).About(aboutStart).Tool(verb.Tool{Name: "run_plan", Group: verb.ToolsAll, Command: "run", Does: "Say what would run, by whom and how it is confined, and start nothing."})
	RerunRun = verb.Write("runs.rerun", "work the last step of a run again, from the same base", "rerun", verb.ByRun, func(ctx context.Context, ws *Workspace, c verb.Call, r RerunRequest) (runs.View, error) {
		return ws.RunOnce(ctx, c, func() (runs.StartRequest, error) { return ws.Runs.Again(ctx, r.Run, r.Hint) })
	}).NoTool("a person says what is to be done better; loop_run takes a request")
	StartRun = verb.Write("runs.start", "carry out one run and return how it ended", "run", verb.ByRun, func(ctx context.Context, ws *Workspace, c verb.Call, r runs.StartRequest) (runs.View, error) {
		return ws.RunOnce(ctx, c, func() (runs.StartRequest, error) { return r, nil })
	}).ForAgentsUnless(notAsDefined).About(aboutStart).PostBelow("loops below its own")
	FireRun = verb.Write("runs.fire", "queue one run for the daemon, and do not wait for it", "run", verb.ByRun, func(ctx context.Context, ws *Workspace, c verb.Call, r runs.StartRequest) (verb.Fired, error) {
		return ws.FireOnce(ctx, c, func() (runs.StartRequest, error) { return r, nil })
	}).OnDaemon(StartRun.Info).ForAgentsUnless(notAsDefined).About(aboutStart).PostBelow("loops below its own").ToolBy(verb.Long(verb.Tool{
		Name: "loop_run", Group: verb.ToolsCore, OpenWorld: true, Does: "Run a loop. Returns the id of the run at once; with wait, or if you follow its progress, how it ended.",
	}, StartRun, RunLoop.start, func(r RunLoop) bool { return r.Wait }, func(_ context.Context, _ verb.Caller, _ RunLoop, run runs.View) (runs.View, error) { return run, nil }))
	StopRun = verb.Write("runs.stop", "end a run, and keep its work", "stop", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r StopRequest) (runs.View, error) {
		return ws.Runs.Stop(ctx, c.By, r.Run, r.Why)
	}).EndsRuns().ForAgents().About(func(r StopRequest) verb.Subject { return verb.Subject{Run: r.Run} }).PostBelow("runs of loops below its own").
		Tool(verb.Tool{Name: "loop_stop_run", Group: verb.ToolsCore, Idempotent: true, Destructive: true, Does: "End a run, and keep its work."})
	TryGate = verb.Write("gates.try", "show a canary to a reviewer of a loop, which must not let it pass", "gate try", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r GateRef) (runs.Tried, error) {
		return ws.Runs.TryReviewer(ctx, c.By, r.Loop, r.Gate, func(e loop.Event) { c.Say(verb.Progress{Event: &e}) })
	}).NoTool("it pays for a turn that is about no work")
)

func aboutStart(r runs.StartRequest) verb.Subject { return verb.Subject{Loop: r.Loop} }

// notAsDefined refuses an agent what it may not choose of a run.
func notAsDefined(r runs.StartRequest) string {
	plain := runs.StartRequest{Loop: r.Loop, Request: r.Request, Wait: r.Wait, Overrides: loop.Overrides{MaxIterations: r.Overrides.MaxIterations}}
	if !reflect.DeepEqual(r, plain) {
		return "an agent runs a loop as its definition says: what is executed, by whom and how it is confined are not its to choose"
	}
	return ""
}

const firedSchema = "pawl.fired/v1"

// RunOnce carries out the run that start makes, and returns how it ended. If the key of the call has begun a
// run before, that one is waited for instead.
func (w *Workspace) RunOnce(ctx context.Context, c verb.Call, start func() (runs.StartRequest, error)) (v runs.View, err error) {
	f, ok, err := w.keyed(ctx, c)
	if err != nil {
		return v, err
	}
	if ok {
		after, err := w.Runs.FeedHead(ctx)
		for err == nil {
			if v, err = w.Runs.Show(ctx, f.ID); err != nil || HasEnded(v) {
				break
			}
			after, err = w.Runs.WaitForRun(ctx, f.ID, after)
		}
		return v, err
	}
	r, err := start()
	if err != nil {
		return v, err
	}
	r.By, r.Key, r.Live = c.By, c.Key, func(e loop.Event) { c.Say(verb.Progress{Event: &e}) }
	prepared, err := w.prepareRun(ctx, c, r)
	if err != nil {
		return v, err
	}
	return w.Runs.Start(ctx, prepared)
}

// FireOnce queues the run that start makes for the daemon, unless the key of the call has done so before.
func (w *Workspace) FireOnce(ctx context.Context, c verb.Call, start func() (runs.StartRequest, error)) (verb.Fired, error) {
	if f, ok, err := w.keyed(ctx, c); ok || err != nil {
		return f, err
	}
	r, err := start()
	if err != nil {
		return verb.Fired{}, err
	}
	r.By, r.Key, r.Anywhere = c.By, c.Key, true
	prepared, err := w.prepareRun(ctx, c, r)
	if err != nil {
		return verb.Fired{}, err
	}
	run, err := w.Runs.Fire(ctx, prepared)
	return verb.Fired{Schema: firedSchema, ID: run.ID, Loop: prepared.Target.Loop.Name, N: run.N}, err
}

// keyed is the run that the call has fired before, if its key did.
func (w *Workspace) keyed(ctx context.Context, c verb.Call) (f verb.Fired, ok bool, err error) {
	if c.Key == "" {
		return f, false, nil
	}
	run, err := w.Runs.Keyed(ctx, c.Key)
	if errors.Is(err, loop.ErrNotFound) {
		return f, false, nil
	}
	if err != nil {
		return f, false, err
	}
	v, err := w.Runs.ViewOf(ctx, run)
	return verb.Fired{Schema: firedSchema, ID: run.ID, Loop: v.Loop, N: run.N}, true, err
}

// prepareRun checks what a request would run and tells it. The store learns if the
// definition broke.
func (w *Workspace) prepareRun(ctx context.Context, c verb.Call, r runs.StartRequest) (runs.Prepared, error) {
	p, err := w.Runs.Prepare(ctx, r)
	if err != nil {
		if r.Loop != "" {
			err = errors.Join(err, w.Loops.RegisterOne(ctx, r.Loop))
		}
		return p, err
	}
	plan, err := w.Runs.Plan(ctx, p)
	if err == nil {
		c.Say(verb.Progress{Plan: &plan})
	}
	return p, err
}

// HasEnded reports whether nobody works on a run any more.
func HasEnded(v runs.View) bool {
	return v.State != "queued" && v.State != "running" && v.State != "settling"
}

// listEvents lists a page of the events of a run, from the one after a place.
func listEvents(ctx context.Context, c verb.Caller, events verb.Ask[EventQuery, EventPage], r RunRef, after string, limit int) ([]loop.Event, error) {
	from, err := verb.ParsePlace(after)
	if err != nil {
		return nil, err
	}
	run, err := ShowRun.Call(ctx, c, r)
	if err != nil {
		return nil, err
	}
	p, err := events(ctx, c, EventQuery{run.ID, int64(from), limit})
	return p.Events, err
}

// diffPart returns the lines of a patch from a place on.
func diffPart(ctx context.Context, c verb.Caller, diff verb.Ask[RunRef, runs.Patch], r PatchRequest) (part PatchPart, err error) {
	from, err := verb.ParsePlace(r.Cursor)
	if err != nil {
		return part, err
	}
	p, err := diff(ctx, c, RunRef{r.Run})
	if err != nil {
		return part, err
	}
	text := p.Readable()
	if from > len(text) {
		return part, verb.CursorFault(r.Cursor)
	}
	part = PatchPart{Schema: p.Schema, Run: p.Run, Careful: p.Careful, Bytes: len(text)}
	rest := text[from:]
	end := len(rest)
	if end > mostPatch {
		if end = strings.LastIndexByte(rest[:mostPatch], '\n') + 1; end == 0 {
			end = mostPatch
			if next := strings.IndexByte(rest, '\n') + 1; next > 0 { // One long line is not cut.
				end = next
			}
		}
		if end < len(rest) {
			part.NextCursor = strconv.Itoa(from + end)
		}
	}
	part.Patch = rest[:end]
	return part, nil
}

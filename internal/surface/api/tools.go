package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// LoopCreation is the loop that loop_create makes.
type LoopCreation struct {
	Goal     string `json:"goal" jsonschema:"the end state that is wanted, in plain language"`
	Agent    string `json:"agentId" jsonschema:"who works on it: an agent of agent_list"`
	Template string `json:"templateId,omitempty" jsonschema:"keep-tests-green, research-monitor, or left out for the skeleton"`
}

// LoopID names a loop of the tools of the seed.
type LoopID struct {
	ID string `json:"loopId" jsonschema:"id of a loop of loop_list, lp_ and 7 characters"`
}

// LoopRun is what became of a loop, as loop_get returns it. The zero LoopRun means that there is no such loop.
type LoopRun struct {
	*specs.View
}

// ListedLoop is a loop in the list of loop_list: a LoopRun without its trace.
type ListedLoop struct {
	Spec           ListedSpec      `json:"spec"`
	Status         loopspec.Status `json:"status"`
	IterationCount int             `json:"iterationCount"`
	TokensUsed     int64           `json:"tokensUsed"`
	Approval       string          `json:"approval,omitempty"` // that it waits for
	UpdatedAt      int64           `json:"updatedAt"`          // Unix milliseconds, as all times of a spec

	place string
}

// ListedSpec is the part of a spec that a list shows.
type ListedSpec struct {
	ID        string `json:"id"`
	Agent     string `json:"agentId"`
	Goal      string `json:"goal"`
	ParentID  string `json:"parentId,omitempty"`
	CreatedAt int64  `json:"createdAt"`
}

// LoopStepped is what one iteration came to.
type LoopStepped struct {
	Run     specs.View      `json:"run"`
	Status  loopspec.Status `json:"status"`
	Verdict loop.Verdict    `json:"verdict"` // pass, fail or pending
}

// LoopFlag is what loop_flag says.
type LoopFlag struct {
	ID   string `json:"loopId" jsonschema:"id of a loop of loop_list"`
	Text string `json:"text" jsonschema:"what was missed; reviewers judge by it from now on"`
}

// RunLoop is what loop_run runs.
type RunLoop struct {
	Loop    string `json:"loop" jsonschema:"name of a loop, or id of one of loop_list"`
	Request string `json:"request,omitempty" jsonschema:"what the agent is asked to do in this run"`
	Wait    bool   `json:"wait,omitempty" jsonschema:"return when the run has ended, and not when it has begun"`
}

// NextLoop is whose firings loop_next tells.
type NextLoop struct {
	Loop  string `json:"loop" jsonschema:"name of a loop"`
	Count int    `json:"count,omitempty" jsonschema:"how many firings, 5 if left out"`
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
	mostPatch   = 1 << 10 // bytes of a part of a patch, or one line
	mostFirings = 5
	mostRuns    = 200
)

// Tools lists the tools, those of the seed first.
func Tools() []Tool { return append(loopTools(), boardTools()...) }

func loopTools() []Tool {
	return []Tool{
		with(CreateSpec.Info, Tool{
			Name: "loop_create", Group: ToolsSeed, Command: "spec create",
			Does: "Create a loop: a goal, who works on it, and the gates of a template. It stays a draft until its first step.",
		}, func(ctx context.Context, c Caller, r LoopCreation) (specs.View, error) {
			return CreateSpec.Call(ctx, c, specs.CreateRequest{Template: r.Template, Fill: specs.Fill{Goal: r.Goal, Agent: r.Agent}})
		}),
		withPages(ListSpecs.Info, "pawl.loop_runs/v1", Tool{
			Name: "loop_list", Group: ToolsSeed, Command: "spec list",
			Does: "List the loops that were created with loop_create, the newest change first. loop_overview has the loops of files, too.",
		}, listLoops, func(l ListedLoop) string { return l.place }),
		with(GetSpec.Info, Tool{
			Name: "loop_get", Group: ToolsSeed, Command: "spec get",
			Does: "Show a loop: its spec, its status, the five-step trace of each iteration, its rubric. Null if the loop does not exist.",
		}, func(ctx context.Context, c Caller, r LoopID) (LoopRun, error) {
			v, err := GetSpec.Call(ctx, c, SpecRef{r.ID})
			if isNotFound(err) {
				return LoopRun{}, nil
			}
			return LoopRun{&v}, err
		}),
		long[LoopID, LoopStepped](Tool{
			Name: "loop_run_step", Group: ToolsSeed, Command: "spec step", OpenWorld: true, Verbs: []Info{GetSpec.Info, RecoverRuns.Info},
			Does: "Carry out one iteration of a loop, and return its verdict when it has ended, which takes minutes. A loop that passes waits for a human: only a person completes it.",
		}, QueueStep.Info, StepSpec.Info, LongCall{
			Fire: func(ctx context.Context, c Caller, in any) (Fired, error) {
				return QueueStep.Call(ctx, c, SpecRef{in.(LoopID).ID})
			},
			Run: func(ctx context.Context, c Caller, in any) (runs.View, error) {
				return StepSpec.Call(ctx, c, SpecRef{in.(LoopID).ID})
			},
			Ended: func(ctx context.Context, c Caller, in any, run runs.View) (any, error) {
				v, err := GetSpec.Call(ctx, c, SpecRef{in.(LoopID).ID})
				return LoopStepped{v, v.Status, verdictOf(run)}, err
			},
		}),
		with(StopSpec.Info, Tool{
			Name: "loop_stop", Group: ToolsSeed, Command: "spec stop", Idempotent: true, Destructive: true,
			Does: "Pause a loop and end its live run, which keeps its work. One that is done or gave up stays as it is; loop_run_step continues the others.",
		}, func(ctx context.Context, c Caller, r LoopID) (specs.View, error) {
			return StopSpec.Call(ctx, c, SpecRef{r.ID})
		}),

		long[RunLoop, runs.View](Tool{
			Name: "loop_run", Group: ToolsCore, Command: "run", OpenWorld: true, Verbs: []Info{RecoverRuns.Info},
			Does: "Run a loop. Returns the id of the run at once; with wait, or if you follow its progress, how it ended.",
		}, FireRun.Info, StartRun.Info, LongCall{
			Fire: func(ctx context.Context, c Caller, in any) (Fired, error) {
				return FireRun.Call(ctx, c, in.(RunLoop).start())
			},
			Run: func(ctx context.Context, c Caller, in any) (runs.View, error) {
				return StartRun.Call(ctx, c, in.(RunLoop).start())
			},
			Ended: func(_ context.Context, _ Caller, _ any, run runs.View) (any, error) { return run, nil },
		}),
		with(FlagSpec.Info, Tool{
			Name: "loop_flag", Group: ToolsCore, Command: "spec flag", Idempotent: true,
			Does: "Say what the reviewers of a loop missed: they are told so, and what a person says becomes a criterion of theirs. A loop that is done is opened again.",
		}, func(ctx context.Context, c Caller, r LoopFlag) (specs.View, error) {
			return FlagSpec.Call(ctx, c, FlagRequest{r.ID, r.Text})
		}),
		as(PauseLoops, Tool{Name: "loop_pause", Group: ToolsCore, Command: "pause", Idempotent: true, Destructive: true, Does: "Set the kill switch of a loop: its run ends, and it does not fire."}),
		as(ResumeLoops, Tool{Name: "loop_resume", Group: ToolsCore, Command: "resume", Idempotent: true, Does: "Clear the kill switch of a loop that an agent has paused. What a person has stopped, only a person resumes."}),
		as(StopRun, Tool{Name: "loop_stop_run", Group: ToolsCore, Command: "stop", Idempotent: true, Destructive: true, Does: "End a run, and keep its work."}),
		as(ExplainRun, Tool{Name: "loop_why", Group: ToolsCore, Command: "why", Does: "Explain how a run ended, or why nothing happened: each candidate with the rule that picked or dropped it, and what a person can do."}),
		as(ShowRun, Tool{Name: "loop_trace", Group: ToolsCore, Command: "trace", Does: "Show a run with the trace of each iteration, its gates and what it cost."}),
		with(DiffRun.Info, Tool{
			Name: "loop_diff", Group: ToolsCore, Command: "diff",
			Does: "Show what a run changed, as a patch, in parts of whole lines.",
		}, diffPart),
		with(PlanLoop.Info, Tool{
			Name: "loop_next", Group: ToolsCore, Command: "next",
			Does: "Say when a loop fires next, or why it does not.",
		}, func(ctx context.Context, c Caller, r NextLoop) (loops.Plan, error) {
			return PlanLoop.Call(ctx, c, NextQuery{r.Loop, cmp.Or(r.Count, mostFirings)})
		}),
		as(EstimateLoop, Tool{Name: "loop_estimate", Group: ToolsAll, Command: "estimate", Does: "Say what a loop of a file will cost, and what its runs have used."}),
		as(CheckLoops, Tool{Name: "loop_check", Group: ToolsCore, Command: "check", Does: "Score the definition of a loop, or of all: 16 checks, each finding with its place."}),
		as(DiagnoseLoops, Tool{Name: "loop_doctor", Group: ToolsAll, Command: "doctor", Does: "Say whether a loop will run, as far as its definition tells, each row with its fix. It starts nothing."}),
		withPages(ListLoops.Info, "pawl.loops/v1", Tool{
			Name: "loop_overview", Group: ToolsCore, Command: "ls",
			Does: "List every loop of the workspace, those of files too: its state, its newest run, what it waits for.",
		}, overviewLoops, func(r loops.Row) string { return textPlace(r.Protocol + " " + r.Name) }),
		asList(ListApprovals, "pawl.approvals/v1", Tool{
			Name: "approval_list", Group: ToolsCore, Command: "approvals",
			Does: "List what waits for a person: exactly what happens on approval, with its gates. Only a person answers.",
		}),
		asList(ShowBudgets, "pawl.budgets/v1", Tool{Name: "budget_show", Group: ToolsCore, Command: "budget show", Does: "Show what is used, reserved and left of each budget."}),
		asList(ListAgents, "pawl.agents/v1", Tool{Name: "agent_list", Group: ToolsCore, Command: "agent list", Does: "List who can act in loops: the agents of the roster."}),

		as(ShowLoop, Tool{Name: "loop_show", Group: ToolsAll, Command: "show", Does: "Show a loop with its steps and its budgets."}),
		asList(PlanLoops, "pawl.plans/v1", Tool{Name: "loop_plans", Group: ToolsAll, Command: "next", Does: "Say when each loop fires next, the soonest first."}),
		withList(ListRuns.Info, "pawl.runs/v1", Tool{
			Name: "run_list", Group: ToolsAll, Command: "runs", Does: "List the 200 newest runs of a loop, or of all.",
		}, func(ctx context.Context, c Caller, r RunChoice) ([]runs.View, error) {
			return ListRuns.Call(ctx, c, RunQuery{r.Loop, mostRuns})
		}),
		withPages(ListEvents.Info, "pawl.events/v1", Tool{
			Name: "run_events", Group: ToolsAll, Command: "logs", Does: "List what happened in a run, oldest first.",
		}, listEvents, func(e loop.Event) string { return strconv.FormatInt(e.Seq, 10) }),
		as(PlanRun, Tool{Name: "run_plan", Group: ToolsAll, Command: "run", Does: "Say what would run, by whom and how it is confined, and start nothing."}),
		as(ShowApproval, Tool{Name: "approval_show", Group: ToolsAll, Command: "approvals", Does: "Show exactly what happens on approval."}),
		asList(ListSnapshots, "pawl.snapshots/v1", Tool{Name: "snapshot_list", Group: ToolsAll, Command: "recover", Does: "List work that is on no branch."}),
		as(DiffSnapshot, Tool{Name: "snapshot_diff", Group: ToolsAll, Command: "recover show", Does: "Show what a snapshot changed, as a patch."}),
		asList(ListGone, "pawl.gone/v1", Tool{Name: "snapshot_gone", Group: ToolsAll, Command: "recover", Does: "List the checkouts that are gone, with what is open of them."}),
		as(ShowRunLog, Tool{Name: "run_log", Group: ToolsAll, Command: "audit log", Does: "Show the run log of a loop, made from its audit chain."}),
		withList(ListMemories.Info, "pawl.memories/v1", Tool{
			Name: "memory_list", Group: ToolsAll, Command: "memory list", Does: "List what was learned in the workspace.",
		}, func(ctx context.Context, c Caller, r RunChoice) ([]memories.View, error) {
			return ListMemories.Call(ctx, c, memories.Query{Loop: r.Loop, Limit: mostRuns})
		}),
		as(ExplainMemory, Tool{Name: "memory_why", Group: ToolsAll, Command: "memory why", Does: "Say where an entry of the memory comes from, and what would make it count."}),
		as(ExportSpec, Tool{Name: "spec_export", Group: ToolsAll, Command: "spec export", Does: "Return the document of a LoopSpec."}),
		as(CheckBoot, Tool{Name: "boot_check", Group: ToolsAll, Command: "boot check", Does: "Read the link, the boot repository and the memory as a run would, and name every fault."}),
		as(BootStatus, Tool{Name: "boot_status", Group: ToolsAll, Command: "boot status", Does: "Say where the work of a boot workspace stands, and what a run would work on next."}),
		asList(ListSessions, "pawl.boot_log/v1", Tool{Name: "boot_log", Group: ToolsAll, Command: "boot log", Does: "List the newest sessions of a boot workspace."}),
		as(CheckOrg, Tool{Name: "org_check", Group: ToolsAll, Command: "org check", Does: "Check the files of an organisation of agents, and name every fault."}),
		as(ShowOrg, Tool{Name: "org_show", Group: ToolsAll, Command: "org show", Does: "Say who reports to whom, and how each agent stands."}),
		asList(ListNodes, "pawl.nodes/v1", Tool{Name: "node_list", Group: ToolsAll, Command: "nodes", Does: "List the machines that share the store."}),
		withList(ListNotices.Info, "pawl.notices/v1", Tool{
			Name: "notice_list", Group: ToolsAll, Command: "notify log", Does: "List the newest notices, and whether they were delivered.",
		}, func(ctx context.Context, c Caller, _ None) ([]notices.Logged, error) {
			return ListNotices.Call(ctx, c, NoticeQuery{Limit: mostRuns})
		}),
		as(ShowAgent, Tool{Name: "agent_show", Group: ToolsAll, Command: "agent show", Does: "Show an agent of the roster."}),
	}
}

// WithoutTool says of verbs that no tool asks for why.
func WithoutTool() map[string]string {
	return map[string]string{
		FindFeedHead.Name:    "a place in the feed is for programs that follow it: subscriptions to resources do so",
		AwaitRun.Name:        "as runs.head",
		FindLive.Name:        "loop_trace and loop_overview say what is live",
		PlanBoot.Name:        "it is the first half of boots.init, which a person does",
		FindOutdated.Name:    "it is the first half of boots.migrate, which a person does",
		PlanOrg.Name:         "it is the first half of orgs.init, which a person does",
		PlanImport.Name:      "it is the first half of orgs.import, which a person does",
		ShowForgotten.Name:   "it is the first half of nodes.forget, which a person does",
		ListAsked.Name:       "it is the first half of nodes.accept, which a person does",
		ListChannels.Name:    hiddenFromAgents[ListChannels.Name],
		RerunRun.Name:        "a person says what is to be done better; loop_run takes a request",
		RegisterLoops.Name:   "a daemon reads definitions again by itself",
		AcceptLoops.Name:     "a person accepts definitions, with the check of a loop",
		TryGate.Name:         "it pays for a turn that is about no work",
		GenerateSpec.Name:    "it pays for a turn of which the result has to be read by a person",
		EditSpec.Name:        "an agent never edits definitions",
		SpawnSpec.Name:       "a budget is divided by a person",
		ExportBoards.Name:    "a document of everything is for people who move it; board_show and task_list have its parts",
		PlanBoardImport.Name: "it is the first half of boards.import, which a person does",
		KillLoops.Name:       "loop_pause stops a loop, and waits for nothing",
		PauseEverywhere.Name: "an agent pauses one loop at a time",
	}
}

func isNotFound(err error) bool { return err != nil && Explain(err).Exit == loop.ExitNotFound }

// verdictOf is the verdict of the iteration that a run was; one that recorded none, because no
// budget was left, has failed.
func verdictOf(run runs.View) loop.Verdict {
	if n := len(run.Iterations); n > 0 {
		if v := run.Iterations[n-1].Verdict; v == loop.VerdictPass || v == loop.VerdictPending {
			return v
		}
	}
	return loop.VerdictFail
}

// textPlace is a cursor that has a text.
func textPlace(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// parseTextPlace returns the two words of a cursor that textPlace has made.
func parseTextPlace(cursor string) (first, second string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	first, second, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return "", "", cursorFault(cursor)
	}
	return first, second, nil
}

// overviewLoops lists a page of all loops, from the one after a place.
func overviewLoops(ctx context.Context, c Caller, _ None, after string, limit int) ([]loops.Row, error) {
	q := LoopQuery{Limit: limit}
	if after != "" {
		var err error
		if q.AfterProtocol, q.AfterName, err = parseTextPlace(after); err != nil {
			return nil, err
		}
	}
	l, err := ListLoops.Call(ctx, c, q)
	return l.Loops, err
}

// listLoops lists a page of the specs, from the one after a place.
func listLoops(ctx context.Context, c Caller, _ None, after string, limit int) ([]ListedLoop, error) {
	q := specs.Query{Limit: limit}
	if after != "" {
		ms, id, err := parseTextPlace(after)
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			return nil, cursorFault(after)
		}
		q.Changed, q.After = time.UnixMilli(at), id
	}
	rows, err := ListSpecs.Call(ctx, c, q)
	list := make([]ListedLoop, len(rows))
	for i, row := range rows {
		list[i] = ListedLoop{
			Spec:   ListedSpec{ID: row.ID, Agent: row.Agent, Goal: row.Goal, ParentID: row.ParentID, CreatedAt: row.CreatedAt.UnixMilli()},
			Status: row.Status, IterationCount: row.Iterations, TokensUsed: row.TokensUsed, Approval: row.Approval, UpdatedAt: row.UpdatedAt.UnixMilli(),
			place: textPlace(fmt.Sprintf("%d %s", row.Changed.UnixMilli(), row.ID)),
		}
	}
	return list, err
}

func (r RunLoop) start() runs.StartRequest {
	return runs.StartRequest{Loop: r.Loop, Request: r.Request}
}

func listEvents(ctx context.Context, c Caller, r RunRef, after string, limit int) ([]loop.Event, error) {
	from, err := parsePlace(after)
	if err != nil {
		return nil, err
	}
	run, err := ShowRun.Call(ctx, c, r)
	if err != nil {
		return nil, err
	}
	p, err := ListEvents.Call(ctx, c, EventQuery{run.ID, int64(from), limit})
	return p.Events, err
}

// diffPart returns the lines of a patch from a place on.
func diffPart(ctx context.Context, c Caller, r PatchRequest) (part PatchPart, err error) {
	from, err := parsePlace(r.Cursor)
	if err != nil {
		return part, err
	}
	p, err := DiffRun.Call(ctx, c, RunRef{r.Run})
	if err != nil {
		return part, err
	}
	text := p.Readable()
	if from > len(text) {
		return part, cursorFault(r.Cursor)
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

// pageOf is the page of a list that begins at an index.
func pageOf[Entry any](schema string, list []Entry, from, limit int) Listing {
	l := Listing{Schema: schema, Data: []any{}}
	for i := min(from, len(list)); i < len(list) && len(l.Data) < limit; i++ {
		l.Data = append(l.Data, list[i])
		place := ""
		if i+1 < len(list) {
			place = strconv.Itoa(i + 1)
		}
		l.Cursors = append(l.Cursors, place)
	}
	return l
}

// parsePlace reads a cursor that is a number. An empty one is the beginning.
func parsePlace(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, cursorFault(cursor)
	}
	return n, nil
}

func cursorFault(cursor string) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: fmt.Sprintf("invalid cursor %q", cursor), Why: "no page ends with it", Fix: "pass next_cursor of a page of the same list, or none for the beginning",
	}
}

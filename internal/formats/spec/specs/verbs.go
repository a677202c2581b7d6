package specs

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Verbs lists the verbs for LoopSpecs.
func Verbs() []verb.Info {
	return []verb.Info{
		CreateSpec.Info, GenerateSpec.Info, ListSpecs.Info, GetSpec.Info, EditSpec.Info, FlagSpec.Info, SpawnSpec.Info, DeleteSpec.Info, ExportSpec.Info,
		StepSpec.Info, QueueStep.Info, StopSpec.Info,
	}
}

// Workspace is a workspace with LoopSpecs, which are run, resumed and stopped as other loops.
type Workspace interface {
	verb.Workspace
	SpecService() *Service
	LoopService() *loops.Service
	// RunOnce carries out the run that start makes, and FireOnce queues it for a daemon, unless the key of the
	// call has done so before.
	RunOnce(ctx context.Context, c verb.Call, start func() (runs.StartRequest, error)) (runs.View, error)
	FireOnce(ctx context.Context, c verb.Call, start func() (runs.StartRequest, error)) (verb.Fired, error)
}

// SpecRef names a LoopSpec by its id.
type SpecRef struct {
	Spec string `json:"spec"`
}

func (r SpecRef) subject() verb.Subject { return verb.Subject{Loop: r.Spec} }

// FlagRequest says what the reviewers of a spec missed.
type FlagRequest struct {
	Spec string `json:"spec"`
	Text string `json:"text"`
}

// SpecDocument is a spec as it is exported.
type SpecDocument struct {
	Document string `json:"document"` // JSON
}

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

func (l LoopID) ref() SpecRef { return SpecRef{l.ID} }

// LoopRun is what became of a loop, as loop_get returns it. The zero LoopRun means that there is no such loop.
type LoopRun struct {
	*View
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
	Run     View            `json:"run"`
	Status  loopspec.Status `json:"status"`
	Verdict loop.Verdict    `json:"verdict"` // pass, fail or pending
}

// LoopFlag is what loop_flag says.
type LoopFlag struct {
	ID   string `json:"loopId" jsonschema:"id of a loop of loop_list"`
	Text string `json:"text" jsonschema:"what was missed; reviewers judge by it from now on"`
}

// The verbs for LoopSpecs.
var (
	CreateSpec = verb.Write("specs.create", "create a LoopSpec from a document or a template", "spec create", verb.InOneTransaction, func(ctx context.Context, w Workspace, c verb.Call, r CreateRequest) (View, error) {
		r.Key, r.Claim = c.Key, c.Claim
		return w.SpecService().Create(ctx, c.By, r)
	}).ForAgentsUnless(notFromTemplate).PostAny("from a template, below the loop of its run").
		ToolFrom(verb.Tool{Name: "loop_create", Group: verb.ToolsSeed, Does: "Create a loop: a goal, who works on it, and the gates of a template. It stays a draft until its first step."}, verb.From(func(r LoopCreation) CreateRequest {
			return CreateRequest{Template: r.Template, Fill: Fill{Goal: r.Goal, Agent: r.Agent}}
		}))
	GenerateSpec = verb.Write("specs.generate", "make a LoopSpec for a task, try its gates, and say where each part of it is from", "spec generate", verb.InOneTransaction, func(ctx context.Context, w Workspace, c verb.Call, r GenerateRequest) (Generated, error) {
		r.Claim = c.Claim
		return w.SpecService().Generate(ctx, c.By, r, func(e loop.Event) { c.Say(verb.Progress{Event: &e}) })
	}).NoTool("it pays for a turn of which the result has to be read by a person")
	ListSpecs = verb.Read("specs.list", "list the LoopSpecs of the workspace, the newest change first", func(ctx context.Context, w Workspace, _ verb.Call, q Query) ([]Row, error) {
		return w.SpecService().List(ctx, q)
	}).AboutAll().Cut(func(q *Query) *int { return &q.Limit }, verb.CutEntries(func(r Row) string { return r.ID })).Seen().ToolBy(verb.WithPages(verb.Tool{
		Name: "loop_list", Schema: "pawl.loop_runs/v1", Group: verb.ToolsSeed, Command: "spec list",
		Does: "List the loops that were created with loop_create, the newest change first. loop_overview has the loops of files, too.",
	}, listSpecs, func(l ListedLoop) string { return l.place }))
	GetSpec = verb.Read("specs.get", "show a LoopSpec, its status, its trace and its rubric", func(ctx context.Context, w Workspace, _ verb.Call, r SpecRef) (View, error) {
		return w.SpecService().Get(ctx, r.Spec)
	}).About(SpecRef.subject).Seen().ToolBy(verb.With(verb.Tool{
		Name: "loop_get", Group: verb.ToolsSeed, Command: "spec get",
		Does: "Show a loop: its spec, its status, the five-step trace of each iteration, its rubric. Null if the loop does not exist.",
	}, func(ctx context.Context, c verb.Caller, get verb.Ask[SpecRef, View], r LoopID) (LoopRun, error) {
		v, err := get(ctx, c, r.ref())
		if err != nil && verb.Explain(err).Exit == loop.ExitNotFound {
			return LoopRun{}, nil
		}
		return LoopRun{&v}, err
	}))
	EditSpec = verb.Write("specs.edit", "replace the document of a LoopSpec", "spec edit", verb.Repeatable, func(ctx context.Context, w Workspace, c verb.Call, r EditRequest) (View, error) {
		return w.SpecService().Edit(ctx, c.By, r)
	}).NoTool("an agent never edits definitions")
	FlagSpec = verb.Write("specs.flag", "say what the reviewers of a LoopSpec missed", "spec flag", verb.Repeatable, func(ctx context.Context, w Workspace, c verb.Call, r FlagRequest) (View, error) {
		return w.SpecService().Flag(ctx, c.By, r.Spec, r.Text)
	}).ForAgents().About(func(r FlagRequest) verb.Subject { return verb.Subject{Loop: r.Spec} }).PostBelow("loops below its own").ToolFrom(verb.Tool{
		Name: "loop_flag", Group: verb.ToolsCore, Idempotent: true,
		Does: "Say what the reviewers of a loop missed: they are told so, and what a person says becomes a criterion of theirs. A loop that is done is opened again.",
	}, verb.From(func(r LoopFlag) FlagRequest { return FlagRequest{r.ID, r.Text} }))
	SpawnSpec = verb.Write("specs.spawn", "create a worker whose budget is taken out of that of its LoopSpec", "spec spawn", verb.InOneTransaction, func(ctx context.Context, w Workspace, c verb.Call, r SpawnRequest) (View, error) {
		r.Claim = c.Claim
		return w.SpecService().Spawn(ctx, c.By, r)
	}).NoTool("a budget is divided by a person")
	DeleteSpec = verb.Write("specs.delete", "remove a LoopSpec and its children", "spec delete", verb.Unknown, func(ctx context.Context, w Workspace, c verb.Call, r SpecRef) (Deleted, error) {
		return w.SpecService().Delete(ctx, c.By, r.Spec)
	})
	ExportSpec = verb.Read("specs.export", "return the document of a LoopSpec", func(ctx context.Context, w Workspace, _ verb.Call, r SpecRef) (d SpecDocument, err error) {
		d.Document, err = w.SpecService().Export(ctx, r.Spec)
		return d, err
	}).About(SpecRef.subject).Seen().Tool(verb.Tool{Name: "spec_export", Group: verb.ToolsAll, Command: "spec export", Does: "Return the document of a LoopSpec."})
	StepSpec = verb.Write("specs.step", "carry out one iteration of a LoopSpec; one that is paused goes on", "spec step", verb.ByRun, func(ctx context.Context, w Workspace, c verb.Call, r SpecRef) (runs.View, error) {
		return w.RunOnce(ctx, c, func() (runs.StartRequest, error) { return readyStep(ctx, w, c, r.Spec) })
	}).ForAgents().About(SpecRef.subject).PostBelow("loops below its own")
	QueueStep = verb.Write("specs.queue", "queue one iteration of a LoopSpec for the daemon, and do not wait for it", "spec step", verb.ByRun, func(ctx context.Context, w Workspace, c verb.Call, r SpecRef) (verb.Fired, error) {
		return w.FireOnce(ctx, c, func() (runs.StartRequest, error) { return readyStep(ctx, w, c, r.Spec) })
	}).OnDaemon(StepSpec.Info).ForAgents().About(SpecRef.subject).PostBelow("loops below its own").ToolBy(verb.Long(verb.Tool{
		Name: "loop_run_step", Group: verb.ToolsSeed, OpenWorld: true, Verbs: []verb.Info{GetSpec.Info},
		Does: "Carry out one iteration of a loop, and return its verdict when it has ended, which takes minutes. A loop that passes waits for a human: only a person completes it.",
	}, StepSpec, LoopID.ref, func(LoopID) bool { return true }, func(ctx context.Context, c verb.Caller, r LoopID, run runs.View) (LoopStepped, error) {
		v, err := GetSpec.Call(ctx, c, r.ref())
		return LoopStepped{v, v.Status, verdictOf(run)}, err
	}))
	StopSpec = verb.Write("specs.stop", "pause a LoopSpec, and end its live run", "spec stop", verb.Repeatable, func(ctx context.Context, w Workspace, c verb.Call, r SpecRef) (View, error) {
		v, err := w.SpecService().Get(ctx, r.Spec)
		if to, _ := loopspec.After(v.Status, loopspec.EventStop); err != nil || to != loopspec.StatusPaused {
			return v, err
		}
		if _, err := w.LoopService().Kill(ctx, c.By, r.Spec, "stopped"); err != nil {
			return v, err
		}
		return w.SpecService().Get(ctx, r.Spec)
	}).ForAgents().About(SpecRef.subject).PostBelow("loops below its own").ToolFrom(verb.Tool{
		Name: "loop_stop", Group: verb.ToolsSeed, Idempotent: true, Destructive: true,
		Does: "Pause a loop and end its live run, which keeps its work. One that is done or gave up stays as it is; loop_run_step continues the others.",
	}, verb.From(LoopID.ref))
)

// notFromTemplate refuses an agent what it may not choose of a spec.
func notFromTemplate(r CreateRequest) string {
	if r.Document != "" || r.Foreign || !reflect.DeepEqual(r.Fill, Fill{Goal: r.Goal, Agent: r.Agent}) {
		return "an agent creates a spec from a template: goal, agent and template are its to choose, and what is executed and what may be changed are not"
	}
	return ""
}

// readyStep makes a spec that is paused go on, and refuses one that cannot be stepped. It returns the run that
// is one iteration.
func readyStep(ctx context.Context, w Workspace, c verb.Call, spec string) (runs.StartRequest, error) {
	status, err := w.SpecService().CheckStep(ctx, spec)
	if err == nil && status == loopspec.StatusPaused {
		_, err = w.LoopService().Resume(ctx, c.By, spec)
	}
	return runs.StartRequest{Loop: spec, Overrides: loop.Overrides{MaxIterations: 1}}, err
}

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

// listSpecs lists a page of the specs, from the one after a place.
func listSpecs(ctx context.Context, c verb.Caller, specsOf verb.Ask[Query, []Row], _ verb.None, after string, limit int) ([]ListedLoop, error) {
	q := Query{Limit: limit}
	if after != "" {
		ms, id, err := verb.ParseTextPlace(after)
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			return nil, verb.CursorFault(after)
		}
		q.Changed, q.After = time.UnixMilli(at), id
	}
	rows, err := specsOf(ctx, c, q)
	list := make([]ListedLoop, len(rows))
	for i, row := range rows {
		list[i] = ListedLoop{
			Spec:   ListedSpec{ID: row.ID, Agent: row.Agent, Goal: row.Goal, ParentID: row.ParentID, CreatedAt: row.CreatedAt.UnixMilli()},
			Status: row.Status, IterationCount: row.Iterations, TokensUsed: row.TokensUsed, Approval: row.Approval, UpdatedAt: row.UpdatedAt.UnixMilli(),
			place: verb.TextPlace(fmt.Sprintf("%d %s", row.Changed.UnixMilli(), row.ID)),
		}
	}
	return list, err
}

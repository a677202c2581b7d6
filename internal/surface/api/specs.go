package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// GateRef names a reviewer of a loop.
type GateRef struct {
	Loop string `json:"loop"`
	Gate string `json:"gate,omitempty"` // empty: the first reviewer
}

// TryGate shows a canary to a reviewer.
var TryGate = write("gates.try", "show a canary to a reviewer of a loop, which must not let it pass", func(ctx context.Context, ws *Workspace, c Call, r GateRef) (runs.Tried, error) {
	return ws.Runs.TryReviewer(ctx, c.By, r.Loop, r.Gate, func(e loop.Event) { c.Say(Progress{Event: &e}) })
})

// SpecRef names a LoopSpec by its id.
type SpecRef struct {
	Spec string `json:"spec"`
}

// FlagRequest says what the reviewers of a spec missed.
type FlagRequest struct {
	Spec string `json:"spec"`
	Text string `json:"text"`
}

// SpecDocument is a spec as it is exported.
type SpecDocument struct {
	Document string `json:"document"` // JSON
}

// The verbs for LoopSpecs.
var (
	CreateSpec = write("specs.create", "create a LoopSpec from a document or a template", func(ctx context.Context, ws *Workspace, c Call, r specs.CreateRequest) (specs.View, error) {
		r.Key, r.Claim = c.Key, c.claim
		return ws.Specs.Create(ctx, c.By, r)
	})
	GenerateSpec = write("specs.generate", "make a LoopSpec for a task, try its gates, and say where each part of it is from", func(ctx context.Context, ws *Workspace, c Call, r specs.GenerateRequest) (specs.Generated, error) {
		r.Claim = c.claim
		return ws.Specs.Generate(ctx, c.By, r, func(e loop.Event) { c.Say(Progress{Event: &e}) })
	})
	ListSpecs = read("specs.list", "list the LoopSpecs of the workspace, the newest change first", func(ctx context.Context, ws *Workspace, _ Call, q specs.Query) ([]specs.Row, error) {
		return ws.Specs.List(ctx, q)
	})
	GetSpec = read("specs.get", "show a LoopSpec, its status, its trace and its rubric", func(ctx context.Context, ws *Workspace, _ Call, r SpecRef) (specs.View, error) {
		return ws.Specs.Get(ctx, r.Spec)
	})
	EditSpec = write("specs.edit", "replace the document of a LoopSpec", func(ctx context.Context, ws *Workspace, c Call, r specs.EditRequest) (specs.View, error) {
		return ws.Specs.Edit(ctx, c.By, r)
	})
	FlagSpec = write("specs.flag", "say what the reviewers of a LoopSpec missed", func(ctx context.Context, ws *Workspace, c Call, r FlagRequest) (specs.View, error) {
		return ws.Specs.Flag(ctx, c.By, r.Spec, r.Text)
	})
	SpawnSpec = write("specs.spawn", "create a worker whose budget is taken out of that of its LoopSpec", func(ctx context.Context, ws *Workspace, c Call, r specs.SpawnRequest) (specs.View, error) {
		r.Claim = c.claim
		return ws.Specs.Spawn(ctx, c.By, r)
	})
	DeleteSpec = write("specs.delete", "remove a LoopSpec and its children", func(ctx context.Context, ws *Workspace, c Call, r SpecRef) (specs.Deleted, error) {
		return ws.Specs.Delete(ctx, c.By, r.Spec)
	})
	ExportSpec = read("specs.export", "return the document of a LoopSpec", func(ctx context.Context, ws *Workspace, _ Call, r SpecRef) (d SpecDocument, err error) {
		d.Document, err = ws.Specs.Export(ctx, r.Spec)
		return d, err
	})
	StepSpec = write("specs.step", "carry out one iteration of a LoopSpec; one that is paused goes on", func(ctx context.Context, ws *Workspace, c Call, r SpecRef) (runs.View, error) {
		if v, ok, err := ws.keyedRun(ctx, c); ok || err != nil {
			return v, err
		}
		if err := ws.readyStep(ctx, c, r.Spec); err != nil {
			return runs.View{}, err
		}
		return ws.startRun(ctx, c, oneStep(r.Spec))
	})
	QueueStep = onDaemon(queued, write("specs.queue", "queue one iteration of a LoopSpec for the daemon, and do not wait for it", func(ctx context.Context, ws *Workspace, c Call, r SpecRef) (Fired, error) {
		if f, ok, err := ws.keyedFired(ctx, c); ok || err != nil {
			return f, err
		}
		if err := ws.readyStep(ctx, c, r.Spec); err != nil {
			return Fired{}, err
		}
		return ws.fireRun(ctx, c, oneStep(r.Spec))
	}))
	StopSpec = write("specs.stop", "pause a LoopSpec, and end its live run", func(ctx context.Context, ws *Workspace, c Call, r SpecRef) (specs.View, error) {
		v, err := ws.Specs.Get(ctx, r.Spec)
		if to, _ := loopspec.After(v.Status, loopspec.EventStop); err != nil || to != loopspec.StatusPaused {
			return v, err
		}
		if _, err := ws.Loops.Kill(ctx, c.By, r.Spec, "stopped"); err != nil {
			return v, err
		}
		return ws.Specs.Get(ctx, r.Spec)
	})
)

// oneStep is the run that is one iteration of a spec.
func oneStep(spec string) runs.StartRequest {
	return runs.StartRequest{Loop: spec, Overrides: loop.Overrides{MaxIterations: 1}}
}

// readyStep makes a spec that is paused go on, and refuses one that cannot be stepped.
func (w *Workspace) readyStep(ctx context.Context, c Call, spec string) error {
	status, err := w.Specs.CheckStep(ctx, spec)
	if err == nil && status == loopspec.StatusPaused {
		_, err = w.Loops.Resume(ctx, c.By, spec)
	}
	return err
}

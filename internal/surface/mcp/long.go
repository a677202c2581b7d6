package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

const (
	progressGap = 500 * time.Millisecond // between two notes about the progress of a call
	lookGap     = 100 * time.Millisecond // between looks at a run for which a call waits
)

// callLong carries out a call that lasts until a run has ended, or only begins the run. The run
// goes on if the client stops waiting.
func (s *Server) callLong(ctx context.Context, t verb.Tool, c call, r Request, of *sdk.CallToolRequest) (any, error) {
	token := of.Params.GetProgressToken()
	caller := s.Open(r)
	fired, failed, err := s.begin(ctx, t, c, r, caller)
	if err != nil {
		return nil, err
	}
	if !t.Long.Waits(c.in) && token == nil {
		return fired, nil
	}
	run, err := s.follow(ctx, caller, fired.ID, failed, progress{of, token})
	if err != nil {
		return nil, err
	}
	return t.Long.Ended(ctx, caller, c.in, run)
}

// begin queues the run of a call for the daemon. If none is at work, it is carried out in this
// process; failed then says why it could not be.
func (s *Server) begin(ctx context.Context, t verb.Tool, c call, r Request, caller verb.Caller) (f verb.Fired, failed <-chan error, err error) {
	if f, err = t.Long.Fire(ctx, caller, c.in); !errors.Is(err, verb.ErrNoDaemon) {
		return f, nil, err
	}
	ids, ended := make(chan string, 1), make(chan error, 1)
	var once sync.Once
	r.Say = func(p verb.Progress) {
		if p.Event != nil && p.Event.RunID != "" {
			once.Do(func() { ids <- p.Event.RunID })
		}
	}
	taken := s.jobs.begin(func(ctx context.Context) {
		run, err := t.Long.Run(ctx, s.Open(r), c.in)
		if err == nil && run.ID != "" {
			once.Do(func() { ids <- run.ID })
		}
		ended <- err
	})
	if !taken {
		return f, nil, &loop.Fault{Exit: loop.ExitInterrupted, What: "the server is ending", Why: "it takes no more work"}
	}
	select {
	case id := <-ids:
		run, err := api.ShowRun.Call(ctx, caller, api.RunRef{Run: id})
		return firedOf(run), ended, err
	case err := <-ended:
		select {
		case id := <-ids: // It ended as soon as it had begun.
			run, err := api.ShowRun.Call(ctx, caller, api.RunRef{Run: id})
			return firedOf(run), nil, err
		default:
		}
		return f, nil, cmp.Or(err, error(&loop.Fault{Exit: loop.ExitError, What: "nothing was run"}))
	case <-ctx.Done():
		return f, nil, context.Cause(ctx)
	}
}

// firedOf is a run that has begun.
func firedOf(v runs.View) verb.Fired {
	return verb.Fired{Schema: "pawl.fired/v1", ID: v.ID, Loop: v.Loop, N: v.N}
}

// follow waits until a run has ended, and tells its progress.
func (s *Server) follow(ctx context.Context, c verb.Caller, id string, failed <-chan error, p progress) (v runs.View, err error) {
	waited, told := time.Duration(0), -progressGap
	for ctx.Err() == nil {
		if v, err = api.ShowRun.Call(ctx, c, api.RunRef{Run: id}); err != nil {
			return v, err
		}
		if v.State == "dead" { // Its process has died: it is concluded, and then has ended.
			if _, err := verb.RecoverRuns.Call(ctx, c, verb.None{}); err != nil {
				return v, err
			}
			if v, err = api.ShowRun.Call(ctx, c, api.RunRef{Run: id}); err != nil {
				return v, err
			}
		}
		if api.HasEnded(v) {
			return v, nil
		}
		if waited-told >= progressGap {
			p.tell(ctx, waited, v)
			told = waited
		}
		select {
		case err := <-failed:
			if err != nil {
				return v, err
			}
			failed = nil
		case <-time.After(lookGap):
			waited += lookGap
		case <-ctx.Done():
		}
	}
	return v, &loop.Fault{
		Exit: loop.ExitInterrupted, What: "the call was canceled", Why: fmt.Sprintf("run %s#%d goes on", v.Loop, v.N), Err: context.Cause(ctx),
		Fix: "{1} shows how it stands; {2} ends it", Actions: []loop.Command{loop.PawlCommand("trace", v.ID), loop.PawlCommand("stop", v.ID)},
	}
}

// progress tells a client how far a call is.
type progress struct {
	of    *sdk.CallToolRequest
	token any // nil: it does not want to know
}

func (p progress) tell(ctx context.Context, waited time.Duration, v runs.View) {
	if p.token == nil {
		return
	}
	used := v.Tokens.Input + v.Tokens.CacheWrite + v.Tokens.Output
	text := fmt.Sprintf("%s#%d: %s, %d tokens", v.Loop, v.N, cmp.Or(string(v.Phase), v.State), used)
	if v.CostUSD != nil {
		text += fmt.Sprintf(", $%.4f", *v.CostUSD)
		if len(v.Cost.Assumed()) > 0 {
			text += " (assumed price)"
		}
	}
	// A client that is gone is noticed by its call.
	_ = p.of.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: p.token, Message: text, Progress: (waited + time.Millisecond).Seconds()})
}

package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/runs"
	"github.com/pawl-run/pawl/internal/store"
)

// ErrNoDaemon means that only a daemon carries a verb out, and that none is at work.
var ErrNoDaemon = errors.New("no daemon is at work")

// mostKey bounds the keys of callers, in bytes.
const mostKey = 200

// makesAnew has the verbs whose key does not find what they made: if nobody knows what became of
// a call, they are not carried out again.
var makesAnew = map[string]bool{CreateTask.Name: true, CommentTask.Name: true, SendMessage.Name: true}

// inProcess has the verbs that queue a run for a daemon, with those that carry the same run out
// in a process: a key is about the run, whoever carries it out.
var inProcess = map[string]string{FireRun.Name: StartRun.Name, QueueStep.Name: StepSpec.Name}

// doOnce carries a verb out whose caller gave a key, unless it was carried out before. A call
// whose process ended before it had an answer is made again: what it had done already is found
// by what the key made.
func (i Info) doOnce(ctx context.Context, c Call, in any) (any, error) {
	if len(c.Key) > mostKey {
		return nil, &loop.Fault{Exit: loop.ExitUsage, What: "the idempotency key is too long", Why: fmt.Sprintf("it has %d bytes", len(c.Key)), Fix: fmt.Sprintf("use one of at most %d bytes", mostKey)}
	}
	place := ""
	if i.InWorkspace {
		ws, err := c.Workspace(ctx)
		if err != nil {
			return nil, err
		}
		place = ws.Root
		c.Workspace = func(context.Context) (*Workspace, error) { return ws, nil }
	}
	request, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	given := c.Key
	verb := cmp.Or(inProcess[i.Name], i.Name)
	caller := []string{place, string(c.By.Role), verb, given}
	if c.By.Run != "" { // Each run has keys of its own.
		caller = append(caller, c.By.Run)
	}
	c.Key = "call/" + digest(caller...)
	call := store.KeyedCall{Key: c.Key, Verb: verb, Request: digest(string(request))}
	var known store.KeyedCall
	err = c.Store.Rows.Update(ctx, func(tx *store.Tx) error {
		known, err = tx.BeginCall(ctx, call)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case known.Request != call.Request:
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("the idempotency key %q was used before", given), Why: "with other arguments", Fix: "use a new key for another call",
		}
	case known.Answer != "":
		out := reflect.New(i.out)
		err := json.Unmarshal([]byte(known.Answer), out.Interface())
		return out.Elem().Interface(), err
	}
	if known.Known && makesAnew[i.Name] {
		return nil, &loop.Fault{
			Exit: loop.ExitHeld, What: fmt.Sprintf("a call with the idempotency key %q was begun and has no answer", given), Why: "it is under way, or its process ended",
			Fix: "see whether it was carried out; if it was not, use a new key",
		}
	}
	out, err := i.do(ctx, c, in)
	if err != nil { // Nothing was done, or it is found when it is asked for again.
		if makesAnew[i.Name] {
			err = errors.Join(err, c.Store.Rows.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.DropCall(ctx, c.Key) }))
		}
		return out, err
	}
	answer, err := json.Marshal(out)
	if err == nil {
		err = c.Store.Rows.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.AnswerCall(ctx, c.Key, string(answer)) })
	}
	return out, err
}

// digest tells sequences of texts apart.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// keyedFired is the run that the call has fired before, if its key did.
func (w *Workspace) keyedFired(ctx context.Context, c Call) (f Fired, ok bool, err error) {
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
	return Fired{firedSchema, run.ID, v.Loop, run.N}, true, err
}

// keyedRun is how the run ended that the call has begun before, if its key did. It waits for
// the end of one that is live.
func (w *Workspace) keyedRun(ctx context.Context, c Call) (v runs.View, ok bool, err error) {
	f, ok, err := w.keyedFired(ctx, c)
	if !ok || err != nil {
		return v, ok, err
	}
	after, err := w.Runs.FeedHead(ctx)
	for err == nil {
		if v, err = w.Runs.Show(ctx, f.ID); err != nil || HasEnded(v) {
			break
		}
		after, err = w.Runs.WaitForRun(ctx, f.ID, after)
	}
	return v, true, err
}

// HasEnded reports whether nobody works on a run any more.
func HasEnded(v runs.View) bool {
	return v.State != "queued" && v.State != "running" && v.State != "settling"
}

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
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// ErrNoDaemon means that only a daemon carries a verb out, and that none is at work.
var ErrNoDaemon = errors.New("no daemon is at work")

var (
	afterClaim   = fault.New("api.call.claim.after")
	beforeAnswer = fault.New("api.call.answer.before")
)

// mostKey bounds the keys of callers, in bytes.
const mostKey = 200

// doneOnce says how a call with a key is carried out once, although its process may end at any
// moment.
type doneOnce int

const (
	// inOneTransaction: what the verb does, the key and the answer are one transaction. A call without an
	// answer has done nothing.
	inOneTransaction doneOnce = iota + 1
	// byRun: what the verb does is a run that has the key. It is looked for first.
	byRun
	// repeatable: the verb says how something is to be. Carried out again it changes nothing more.
	repeatable
	// unknown: no row says whether a call without an answer was carried out. It is not made again.
	unknown
)

// onceBy says of every verb that changes something how it is carried out once.
var onceBy = map[string]doneOnce{
	CreateSpec.Name: inOneTransaction, SpawnSpec.Name: inOneTransaction, GenerateSpec.Name: inOneTransaction,
	CreateBoard.Name: inOneTransaction, SetBoard.Name: inOneTransaction, ImportBoards.Name: inOneTransaction, CreateTask.Name: inOneTransaction, SetTask.Name: inOneTransaction, CommentTask.Name: inOneTransaction,
	MoveTask.Name: inOneTransaction, AssignTask.Name: inOneTransaction, ClaimTask.Name: inOneTransaction, CreateMember.Name: inOneTransaction, SetMember.Name: inOneTransaction, SendMessage.Name: inOneTransaction,
	CreateResource.Name: inOneTransaction, SetResource.Name: inOneTransaction, AddMemory.Name: inOneTransaction, AddChannel.Name: inOneTransaction, CreateAgent.Name: inOneTransaction,

	StartRun.Name: byRun, FireRun.Name: byRun, RerunRun.Name: byRun, StepSpec.Name: byRun, QueueStep.Name: byRun,

	RecoverRuns.Name: repeatable, StopRun.Name: repeatable, StopSpec.Name: repeatable, RegisterLoops.Name: repeatable, RegisterWorkspace.Name: repeatable,
	PauseLoops.Name: repeatable, ResumeLoops.Name: repeatable, KillLoops.Name: repeatable, PauseEverywhere.Name: repeatable, ResumeEverywhere.Name: repeatable,
	TryGate.Name: repeatable, EditSpec.Name: repeatable, FlagSpec.Name: repeatable, InitBoot.Name: repeatable, MigrateBoot.Name: repeatable,
	InitOrg.Name: repeatable, ImportOrg.Name: repeatable, ShowLanding.Name: repeatable, PruneSnapshots.Name: repeatable, SetBudget.Name: repeatable,
	AcceptLoops.Name: repeatable, AcceptAsked.Name: repeatable, RewriteRunLog.Name: repeatable, ApproveMemory.Name: repeatable, ForgetMemory.Name: repeatable, SetNode.Name: repeatable, SetAgent.Name: repeatable,

	Approve.Name: unknown, Reject.Name: unknown, Land.Name: unknown, RestoreSnapshot.Name: unknown, ForgetLoop.Name: unknown, DeleteSpec.Name: unknown,
	ForgetNode.Name: unknown, RemoveChannel.Name: unknown,
}

// inProcess has the verbs that queue a run for a daemon, with those that carry the same run out
// in a process: a key is about the run, whoever carries it out.
var inProcess = map[string]string{FireRun.Name: StartRun.Name, QueueStep.Name: StepSpec.Name}

// doOnce carries a verb out whose caller gave a key, unless it was carried out before. Of equal
// calls at once one is carried out, and the others wait for its answer. A call whose process
// ended before it had an answer is made again, if what it did can be found by its key.
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
	caller := []string{place, string(c.By.Role), cmp.Or(inProcess[i.Name], i.Name), given}
	if c.By.Run != "" { // Each run has keys of its own.
		caller = append(caller, c.By.Run)
	}
	c.Key = "call/" + digest(caller...)
	call := store.KeyedCall{Key: c.Key, Verb: i.Name, Request: digest(string(request)), By: c.Store.Self}
	for {
		known, err := c.Store.claimCall(ctx, call)
		switch {
		case err != nil:
			return nil, err
		case known.Request != call.Request:
			return nil, &loop.Fault{
				Exit: loop.ExitUsage, What: fmt.Sprintf("the idempotency key %q was used before", given), Why: "with other arguments", Fix: "use a new key for another call",
			}
		case known.Answer != "" && known.Verb != i.Name: // It was queued, and is now asked for in a process, or the other way round.
			return i.do(ctx, c, in)
		case known.Answer != "":
			out := reflect.New(i.out)
			err := json.Unmarshal([]byte(known.Answer), out.Interface())
			return out.Elem().Interface(), err
		}
		c.claim = known.Claim()
		if known.Begun && onceBy[i.Name] == unknown {
			_, err := c.endClaim(ctx, (*store.Tx).FreeCall)
			return nil, cmp.Or(err, error(&loop.Fault{
				Exit: loop.ExitHeld, What: fmt.Sprintf("a call with the idempotency key %q was begun and has no answer", given), Why: "its process ended",
				Fix: "see whether it was carried out; if it was not, use a new key",
			}))
		}
		out, err := i.doClaimed(ctx, c, in)
		end := func(tx *store.Tx, ctx context.Context, claim store.Claim) error {
			return tx.AnswerCall(ctx, claim, out)
		}
		switch {
		case err != nil && onceBy[i.Name] == byRun: // Its run has the key, for this request only.
			end = (*store.Tx).FreeCall
		case err != nil:
			end = (*store.Tx).DropCall
		}
		lost, endErr := c.endClaim(ctx, end)
		if lost && err != nil && ctx.Err() == nil {
			continue // This process was suspended, and another one has carried the call out: that is what was in the way.
		}
		if endErr != nil {
			err = errors.Join(err, endErr)
		}
		return out, err
	}
}

// doClaimed carries a claimed call out. Its claim is prolonged meanwhile.
func (i Info) doClaimed(ctx context.Context, c Call, in any) (out any, err error) {
	defer c.keepClaim(ctx)()
	if err := afterClaim.Hit(ctx); err != nil {
		return nil, err
	}
	out, err = i.do(ctx, c, in)
	if failed := beforeAnswer.Hit(ctx); failed != nil {
		err = errors.Join(err, failed)
	}
	return out, err
}

// How long it takes until a call that waits for an equal one looks again.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// claimCall claims a call, and waits as long as another one with its key is carried out. It
// returns the claim, or what is known of the key: an answer, or that it was used for another
// request.
func (s *Store) claimCall(ctx context.Context, call store.KeyedCall) (known store.KeyedCall, err error) {
	var by atomic.Value
	by.Store("")
	defer waiting.For(ctx, "another call with the same idempotency key", func() string { return by.Load().(string) })()
	gone, look := loop.Holder{}, firstLook
	for {
		err = s.Rows.Update(ctx, func(tx *store.Tx) (err error) {
			known, err = tx.BeginCall(ctx, call, gone)
			return err
		})
		if err != nil || known.Claimed || known.Answer != "" || known.Request != call.Request {
			return known, err
		}
		for known.By != (loop.Holder{}) && known.Answer == "" && !known.Lapsed {
			by.Store(known.By.String())
			if s.HolderState(known.By) == loop.HolderDead {
				gone = known.By
				break
			}
			select {
			case <-ctx.Done():
				return known, context.Cause(ctx)
			case <-time.After(look):
			}
			look = min(2*look, lastLook)
			err = s.Rows.View(ctx, func(r *store.Reader) error {
				known, err = r.Call(ctx, call.Key)
				return err
			})
			if errors.Is(err, loop.ErrNotFound) { // It did nothing, and was forgotten.
				break
			}
			if err != nil {
				return known, err
			}
		}
	}
}

// keepClaim prolongs the claim of a call until stop is called. One that is lost is not fought
// for: what the call does counts once by itself.
func (c Call) keepClaim(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(c.Store.Rows.Lease() / 3)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			err := c.Store.Rows.Update(ctx, func(tx *store.Tx) error { return tx.ExtendCall(ctx, c.claim) })
			if errors.Is(err, loop.ErrLeaseLost) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// endClaim writes what becomes of a claim, also if the caller has gone. It reports whether the
// claim was lost, or the call was answered, before.
func (c Call) endClaim(ctx context.Context, end func(*store.Tx, context.Context, store.Claim) error) (lost bool, err error) {
	ctx = context.WithoutCancel(ctx)
	err = c.Store.Rows.Update(ctx, func(tx *store.Tx) error { return end(tx, ctx, c.claim) })
	if errors.Is(err, loop.ErrLeaseLost) {
		return true, nil
	}
	return false, err
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

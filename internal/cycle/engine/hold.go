package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// Subjects of holds.
const (
	holdAccount = "account:"
	holdLoop    = "loop:"
)

// LoopHold is the subject under which a loop cools off.
func LoopHold(loopID string) string { return holdLoop + loopID }

// AccountHold is the subject under which an account is limited.
func AccountHold(account string) string { return holdAccount + account }

// readHolds finds out whether the loop, or the account that it acts with, is kept
// from acting; of a reviewer, only its account. Which account that is, is known from the
// credential alone.
func (a *agentSide) readHolds(ctx context.Context, r *store.Reader) error {
	holds, err := r.Holds(ctx, a.holdSubjects()...)
	if err != nil {
		return err
	}
	return a.applyHolds(ctx, r, holds)
}

// holdSubjects are what may be kept from acting: the account, and the loop unless the agent
// only reviews.
func (a *agentSide) holdSubjects() []string {
	a.login.findCredential()
	subjects := []string{AccountHold(a.login.signed.Account)}
	if !a.reviews {
		subjects = append(subjects, LoopHold(a.run.LoopID))
	}
	return subjects
}

// applyHolds is readHolds with the holds of the subjects.
func (a *agentSide) applyHolds(ctx context.Context, r *store.Reader, holds []loop.Hold) error {
	for _, h := range holds {
		switch {
		case h.Subject == LoopHold(a.run.LoopID):
			a.failures = h.Errors
		case a.login.signed.Account == "":
			continue
		default:
			a.limits = h.Errors
		}
		if plan.HoldActive(h, a.Now()) {
			a.hold = &h
		}
	}
	return a.readSeats(ctx, r)
}

// tryAgain decides after a turn whether another one is to be taken at once, and
// waits for it. Otherwise what went wrong is kept for later runs.
func (a *agentSide) tryAgain(ctx context.Context, t assignment, try int, res turnResult) bool {
	if res.Ended == proc.Canceled && ctx.Err() != nil {
		return false // The run was stopped, which says nothing about the agent.
	}
	failed := a.failureOf(t, res)
	if failed == nil || res.cut != nil || ctx.Err() != nil {
		a.settleHolds(res, plan.RetryDecision{})
		return false
	}
	attempt := try
	if failed.Class == loop.FailureRateLimit {
		attempt += int(a.limits)
	}
	r := plan.Retry(failed.Class, attempt, failed.Reset, a.Now(), a.retrySeed(try))
	if p := t.def.ErrorPolicy; p != nil {
		r = plan.RetryBy(*p, failed.Class, attempt, failed.Reset, a.Now(), a.retrySeed(try))
	}
	wait := r.At.Sub(a.Now())
	if !r.TryAgain || wait > a.money.turnTime(t.limit) {
		r.Hold = r.Hold || r.TryAgain && failed.Class == loop.FailureRateLimit
		a.settleHolds(res, r)
		return false
	}
	a.said.Note("the agent failed: %s: %s; it is started again in %s (%s)", failed.Class, turn.FailureText(*failed), max(0, wait).Round(100*time.Millisecond), r.Why)
	if r.NewSession {
		a.talk = nil
	}
	return a.Sleep(ctx, wait) == nil
}

// failureOf is why a turn failed; nil: it did not. With an error policy it is also that
// the program ended badly, or in time-out, and left no report. A reviewer has none: it leaves
// its gate undecided.
func (a *agentSide) failureOf(t assignment, res turnResult) *loop.Failure {
	if res.Failure != nil || t.def.ErrorPolicy == nil || res.Ended == proc.Exited && (res.Exit == 0 || res.Claims) {
		return res.Failure
	}
	if text, _, err := a.tree.readReport(res.Message); text != "" || err != nil {
		return nil // What the report says counts.
	}
	class := loop.ReasonAgentExit
	if res.Ended == proc.TimedOut {
		class = loop.ReasonAgentTimeout
	}
	return &loop.Failure{Class: class, Text: res.words()}
}

// settleHolds stages what the end of a turn means for later runs: an account that
// may not call is left alone until it may, a program that fails again and again
// cools off, and one that worked starts anew.
func (a *agentSide) settleHolds(res turnResult, r plan.RetryDecision) {
	f := res.Failure
	switch {
	case res.cut != nil, f != nil && (f.Class.IsSeat() || f.Class == loop.FailureDenied || f.Class == loop.ReasonPriceUnknown):
		return // Neither the account nor the program has to do with it.
	case f == nil:
		a.forgetErrors()
		return
	}
	h := loop.Hold{Subject: LoopHold(a.run.LoopID), Errors: a.failures}
	switch {
	case r.Hold && a.login.signed.Account != "" && ofAccount(*f):
		a.limits++
		h = loop.Hold{Subject: AccountHold(a.login.signed.Account), Errors: a.limits, Until: r.At, Reason: f.Class, Detail: holdText(*f, r)}
	case a.reviews:
		return // The loop can still run: its result waits for a human.
	case r.Hold && a.login.unsigned == nil:
		h.Until, h.Reason, h.Detail = r.At, f.Class, holdText(*f, r)
	default:
		a.failures++
		h.Errors = a.failures
		if at := plan.CoolOff(a.failures, a.Now(), a.retrySeed(0)); !at.IsZero() {
			h.Until, h.Reason, h.Detail = at, loop.ReasonCoolOff, fmt.Sprintf("%d turns in a row ended with an error of the agent's program, the last one: %s: %s", a.failures, f.Class, turn.FailureText(*f))
		}
	}
	if h.Reason != "" {
		a.said.Note("%s rests %s", holdSubject(h), plan.HoldWords(h))
		a.hold = &h
	}
	a.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SetHold(ctx, h) })
}

// holdText is what a failure says that keeps runs from starting. A reset that is
// not waited for is no end of that.
func holdText(f loop.Failure, r plan.RetryDecision) string {
	if f.Reset.IsZero() || !r.At.IsZero() {
		return turn.FailureText(f)
	}
	stated := f.Reset.UTC().Format(time.RFC3339)
	f.Reset = time.Time{}
	return turn.FailureText(f) + "; the reset that was stated, " + stated + ", is not waited for"
}

// ofAccount reports whether a failure says something about the account, and not
// about what was asked of it. What is forbidden may be a single thing, which an
// agent can ask for: it must not end the work of every other loop.
func ofAccount(f loop.Failure) bool {
	return f.Class != loop.FailureRequest && f.Status != http.StatusForbidden
}

// holdSubject is what a hold keeps from acting, in words.
func holdSubject(h loop.Hold) string {
	if strings.HasPrefix(h.Subject, holdAccount) {
		return "every loop with this account"
	}
	return "the loop"
}

// forgetErrors forgets the errors before a turn that went well.
func (a *agentSide) forgetErrors() {
	var over []string
	if a.failures > 0 {
		over = append(over, LoopHold(a.run.LoopID))
	}
	if a.limits > 0 {
		over = append(over, AccountHold(a.login.signed.Account))
	}
	a.failures, a.limits = 0, 0
	for _, subject := range over {
		a.stage(func(ctx context.Context, rt *store.RunTx) error {
			_, err := rt.ClearHold(ctx, subject)
			return err
		})
	}
}

// HoldSubjects are those under which a loop may be kept from acting: its own, and
// that of the account that it would act with now.
func (e *Engine) HoldSubjects(ctx context.Context, loopID string, d loop.Definition) []string {
	subjects := []string{LoopHold(loopID)}
	actor, err := e.Actor(ctx, d.WithDefaults())
	if err != nil {
		return subjects // Nobody acts, with no account.
	}
	if cred, err := actor.FindCredential(e.Environ, proc.LookupVariable(e.Environ, "HOME"), e.Now()); err == nil && cred.Account != "" {
		subjects = append(subjects, AccountHold(cred.Account))
	}
	return subjects
}

// retrySeed makes what is random about a wait the same for the same run.
func (a *agentSide) retrySeed(try int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%d", a.run.ID, len(a.its), try)
	return h.Sum64()
}

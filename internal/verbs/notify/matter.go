package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// This file says what people are told about a row, in pure functions.

// told is what a row gives cause for.
type told struct {
	raise []loop.Notice
	over  []ended
}

// ended is a matter that is over, and how it ended.
type ended struct{ key, how string }

func (t *told) add(other told) {
	t.raise, t.over = append(t.raise, other.raise...), append(t.over, other.over...)
}

// keys are those of all matters.
func (t told) keys() (keys []string) {
	for _, n := range t.raise {
		keys = append(keys, n.Key)
	}
	for _, e := range t.over {
		keys = append(keys, e.key)
	}
	return keys
}

// place is the loop of a row, and where its workspace lies.
type place struct {
	loop loop.Loop
	root string // empty: nowhere that is known
}

// notice is one about a run.
func (p place) notice(event loop.NoticeEvent, key string, run loop.Run) loop.Notice {
	return loop.Notice{
		Key: key, Event: event, LoopID: p.loop.ID, Loop: p.loop.Name, RunID: run.ID, Run: fmt.Sprintf("%s#%d", p.loop.Name, run.N),
		Workspace: p.loop.WorkspaceID, Root: p.root,
	}
}

// in adds the workspace to a command.
func (p place) in(c loop.Command) loop.Command {
	if p.root == "" {
		return c
	}
	return c.WithFlag("workspace", p.root)
}

// The keys of matters. What has happened in a run is told once for it; a state of a loop
// is told once until it has changed.
func keyOfApproval(id string) string { return "approval/" + id }
func keyOfRun(id string) string      { return "run/" + id }
func keyOfFailing(id string) string  { return "loop/" + id + "/failing" }
func keyOfBudget(id string) string   { return "loop/" + id + "/budget" }
func keyOfUngated(id string) string  { return "run/" + id + "/ungated" }
func keyOfUnpushed(id string) string { return "loop/" + id + "/unpushed" }

// KeyOfLate is the key of the matter that a loop does not come when it is due.
func KeyOfLate(loopID string) string { return "loop/" + loopID + "/late" }

// ofLate is the notice that a loop does not come when it is due.
func ofLate(p place, why string) loop.Notice {
	return loop.Notice{
		Key: KeyOfLate(p.loop.ID), Event: loop.NoticeLate, Title: p.loop.Name + " is late", Body: why, LoopID: p.loop.ID, Loop: p.loop.Name,
		Workspace: p.loop.WorkspaceID, Root: p.root, Answer: p.in(loop.PawlCommand("why", p.loop.Name)),
	}
}

// ofApproval says what people are told about an approval, now.
func ofApproval(a loop.Approval, run loop.Run, p place, now time.Time) (t told) {
	key := keyOfApproval(a.ID)
	if a.State != loop.ApprovalOpen || !now.Before(a.Expires) {
		t.over = append(t.over, ended{key, (&loop.AnsweredError{Approval: a}).Error()})
		return t
	}
	n := p.notice(loop.NoticeApproval, key, run)
	n.Title = n.Run + " asks: " + question(a.Action)
	var lines []string
	if a.Action.Kind == loop.ActionCommand {
		lines = append(lines, "the command: "+strings.Join(a.Action.Argv, " "))
	}
	if a.Action.Why != "" {
		lines = append(lines, "it says: "+a.Action.Why)
	}
	for _, flag := range a.Action.Flags {
		lines = append(lines, "careful: "+flag)
	}
	lines = append(lines, "It can be answered until "+a.Expires.UTC().Format("2006-01-02 15:04 MST")+".")
	n.Body = strings.Join(lines, "\n")
	n.Answer = p.in(loop.PawlCommand("approve", a.ID))
	t.raise = append(t.raise, n)
	return t
}

// question is what a human is asked to allow.
func question(act loop.Action) string {
	switch act.Kind {
	case loop.ActionLand:
		return fmt.Sprintf("may %s land on %s?", act.Branch, act.Base)
	case loop.ActionPush:
		return fmt.Sprintf("may %s be pushed to %s?", act.Base, act.Remote)
	case loop.ActionPullRequest:
		return fmt.Sprintf("may a pull request of %s for %s be opened?", act.Branch, act.Base)
	case loop.ActionKeep:
		return "is " + act.Branch + " the result that was wanted?"
	case loop.ActionAccept:
		return "is this the result that was wanted?"
	case loop.ActionQuestion:
		return "shall it go on?"
	}
	return "may a command be run?"
}

// ofRun says what people are told about a run. One that has not ended gives no cause:
// its outcome may still change. Only the newest run of a loop says in which state it is.
func ofRun(run loop.Run, p place, newest bool) (t told) {
	if run.State != loop.RunEnded {
		return t
	}
	if newest && showsProgress(run) {
		t.over = append(t.over, ended{keyOfFailing(run.LoopID), describeRun(run, p)})
	}
	if newest && run.Agent != "" && run.Reason != loop.ReasonBudget {
		t.over = append(t.over, ended{keyOfBudget(run.LoopID), describeRun(run, p)})
	}
	if newest && p.loop.Protocol == loop.ProtocolBoot {
		t.add(ofPush(run, p))
	}
	t.add(ofUngated(run, p))
	n := p.notice("", keyOfRun(run.ID), run)
	switch run.Outcome {
	case loop.OutcomeWaiting:
		if run.Approval != "" {
			return t // Its question is told.
		}
		n.Event, n.Title, n.Answer = loop.NoticeWaiting, n.Run+" waits for you", loop.PawlCommand("why", n.Run)
	case loop.OutcomeEscalated:
		n.Event, n.Title, n.Answer = loop.NoticeEscalated, n.Run+" hands its step over to you", loop.PawlCommand("show", n.Run)
	case loop.OutcomeGaveUp:
		n.Event, n.Title, n.Answer = loop.NoticeGaveUp, n.Run+" gave up", loop.PawlCommand("trace", n.Run)
	case loop.OutcomeLanded:
		n.Event, n.Title, n.Answer = loop.NoticeLanded, strings.TrimSpace(n.Run+" landed "+run.Branch), loop.PawlCommand("show", n.Run)
	case loop.OutcomeProposed:
		if run.Approval != "" {
			return t
		}
		n.Event, n.Title, n.Answer = loop.NoticeProposed, n.Run+" proposes "+run.Branch, loop.PawlCommand("diff", n.Run)
	case loop.OutcomeBudget, loop.OutcomeFailed, loop.OutcomeBlocked, loop.OutcomeRefused, loop.OutcomeInterrupted:
		if isOrdinary(run) || !newest {
			return t
		}
		n.Event, n.Key, n.Title = loop.NoticeFailing, keyOfFailing(run.LoopID), n.Run+" "+verbs[run.Outcome]
		n.Answer = loop.PawlCommand("why", n.Run)
		if run.Reason == loop.ReasonBudget {
			n.Event, n.Key, n.Title = loop.NoticeBudget, keyOfBudget(run.LoopID), "no budget pays for "+p.loop.Name
			n.Answer = loop.PawlCommand("budget show", p.loop.Name)
		}
	case loop.OutcomeQuiet, loop.OutcomeReported, loop.OutcomeDone, loop.OutcomePaused:
		return t
	default:
		return t
	}
	n.Answer = p.in(n.Answer)
	n.Body = explain(run)
	t.raise = append(t.raise, n)
	return t
}

// ofPush says whether the memory of a loop is only on this machine since a run.
func ofPush(run loop.Run, p place) (t told) {
	branch := run.Cause.Unpushed
	switch {
	case branch == "" && showsProgress(run):
		t.over = append(t.over, ended{keyOfUnpushed(run.LoopID), describeRun(run, p)})
		return t
	case branch == "":
		return t
	}
	n := p.notice(loop.NoticeUnpushed, keyOfUnpushed(run.LoopID), run)
	n.Title, n.Body, n.Answer = n.Run+" could not push "+branch, explain(run), p.in(loop.PawlCommand("why", n.Run))
	t.raise = append(t.raise, n)
	return t
}

// ofUngated says that a run has pushed work which no gate has judged.
func ofUngated(run loop.Run, p place) (t told) {
	to := run.Cause.Ungated
	if to == "" {
		return t
	}
	n := p.notice(loop.NoticeUngated, keyOfUngated(run.ID), run)
	n.Title, n.Body, n.Answer = n.Run+" pushed work to "+to+", and no gate has judged it", explain(run), p.in(loop.PawlCommand("show", n.Run))
	t.raise = append(t.raise, n)
	return t
}

// verbs say how a run without success ended.
var verbs = map[loop.Outcome]string{
	loop.OutcomeBudget: "met a limit", loop.OutcomeFailed: "failed", loop.OutcomeBlocked: "is blocked",
	loop.OutcomeRefused: "was refused", loop.OutcomeInterrupted: "was interrupted",
}

// isOrdinary reports whether a run ended without success as a person wanted it, or only
// because others go first.
func isOrdinary(run loop.Run) bool {
	return run.Reason.IsSeat() || slices.Contains([]loop.Reason{loop.ReasonStopped, loop.ReasonCanceled, loop.ReasonKillSwitch}, run.Reason)
}

// showsProgress reports whether a run proves that its loop works: it did something, or
// there was nothing to do. A run that only waits for another time proves nothing.
func showsProgress(run loop.Run) bool {
	if run.Outcome != loop.OutcomeQuiet {
		return run.Outcome.IsSuccess()
	}
	return slices.Contains([]loop.Reason{loop.ReasonSensedNothing, loop.ReasonAgentQuiet, loop.ReasonNoCandidates, loop.ReasonUnchanged, loop.ReasonNoChange, loop.ReasonPlanNothing}, run.Reason)
}

// describeRun says how a run ended.
func describeRun(run loop.Run, p place) string {
	return fmt.Sprintf("%s#%d ended %s: %s", p.loop.Name, run.N, run.Outcome, run.Reason.Explain(run.Detail))
}

// explain says why a run ended as it did, and what its agent says about it.
func explain(run loop.Run) string {
	why := run.Reason.Explain(run.Detail)
	if run.Summary != "" && run.Summary != run.Detail {
		why = strings.TrimSpace(why + "\nit says: " + run.Summary)
	}
	return why
}

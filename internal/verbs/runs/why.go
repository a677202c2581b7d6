package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Why explains a run, schema pawl.why/v1.
type Why struct {
	Schema        string          `json:"schema"`
	Run           string          `json:"run"`
	ID            string          `json:"id"`
	State         string          `json:"state"` // as in View
	Outcome       loop.Outcome    `json:"outcome"`
	Reason        loop.Reason     `json:"reason"`
	Detail        string          `json:"detail"`
	Exit          int             `json:"exit"`
	Paused        string          `json:"paused,omitempty"`   // what stops all loops of the workspace now
	PausedBy      loop.KillSwitch `json:"paused_by,omitzero"` // the same as a value
	Decisions     []Decision      `json:"decisions"`
	Attempts      []Attempt       `json:"attempts"`
	Broken        string          `json:"broken,omitempty"`     // of a loop: why its definition cannot run now, so that the loop does not fire
	LastGood      string          `json:"last_good,omitempty"`  // digest of the newest definition that could run; only with Broken
	Late          *time.Time      `json:"late,omitempty"`       // of a loop: when it should have come, if it has stopped coming; with LateUntil: when it would come
	LateUntil     *time.Time      `json:"late_until,omitempty"` // of a loop: when it comes, as it waits because the clock was set back
	Unserved      string          `json:"unserved,omitempty"`   // of a loop or a queued run: why no machine can execute its runs
	Careful       []string        `json:"careful,omitempty"`    // what makes the verdict of a gate worth less
	Denied        []string        `json:"denied,omitempty"`     // requests of its programs that did not pass, the first of them
	Refused       []string        `json:"refused,omitempty"`    // calls to a model that no budget pays for, each reason once
	GoesFirst     *GoesFirst      `json:"goes_first,omitempty"` // the run that it gave way to, or for which it waits in the queue
	Landings      []Landing       `json:"landings,omitempty"`   // yeses whose landing has not come about: that of a run, or those of a loop
	lookup.Family                 // of its loop
	Next          string          `json:"next"` // what a person can do about it, for somebody with a shell

	Event   string             `json:"event,omitempty"`   // as in View
	Events  []loop.FiringEvent `json:"events,omitempty"`  // as in View
	Waiting []loop.FiringEvent `json:"waiting,omitempty"` // of a loop: the events that wait for it, and why

	Actions []loop.Command `json:"actions"` // those of Next, as data
}

// mostDenied is how many denials are told of; pawl logs has all.
const mostDenied = 20

// Decision is one time that decide was asked: each candidate with its rule.
type Decision struct {
	N          int               `json:"n"`
	Considered []loop.Considered `json:"considered"`
}

// Attempt is why one iteration was judged as it was.
type Attempt struct {
	N        int          `json:"n"`
	Step     string       `json:"step"`
	Verdict  loop.Verdict `json:"verdict"`
	Reason   loop.Reason  `json:"reason"`
	Feedback string       `json:"feedback"`
}

// Why says for each candidate which rule chose or dropped it, and why the run
// ended as it did.
func (s *Service) Why(ctx context.Context, ref string) (Why, error) {
	v, err := s.Show(ctx, ref)
	if err != nil {
		return Why{}, err
	}
	w := Why{
		Schema: "pawl.why/v1", Family: v.Family, Run: fmt.Sprintf("%s#%d", v.Loop, v.N), ID: v.ID, State: v.State, Outcome: v.Outcome, Reason: v.Reason, Detail: v.Detail, Event: v.Event, Events: v.Events,
		Exit: loop.ExitStatus(v.Outcome, v.Reason), Decisions: []Decision{}, Attempts: []Attempt{},
	}
	paused, err := s.ws.Paused(ctx)
	if err != nil {
		return w, err
	}
	w.Paused, w.PausedBy = paused.String(), paused
	next := Next(v)
	w.Next, w.Actions = next.String(), append([]loop.Command{}, next.Actions...)
	if v.Landing != nil {
		w.Landings = []Landing{*v.Landing}
	}
	for _, it := range v.Iterations {
		w.Attempts = append(w.Attempts, Attempt{it.N, it.Step, it.Verdict, it.Reason, it.Feedback})
	}
	if w.GoesFirst, err = s.goesFirst(ctx, v.Run); err != nil {
		return Why{}, err
	}
	if v.Run.State == loop.RunQueued {
		var d loop.Definition
		err := s.ws.View(ctx, func(r *store.Reader) (err error) {
			d, err = r.Definition(ctx, v.Run.Definition)
			return err
		})
		if err == nil {
			w.Unserved, err = s.ws.UnservedLabels(ctx, d.NodeLabels)
		}
		if err != nil {
			return w, err
		}
	}
	if !strings.HasPrefix(ref, "run_") && !strings.Contains(ref, "#") { // No loop has such a name.
		l := lookup.Loop{Entry: catalog.Entry{Workspace: s.ws.ID, Name: v.Loop, Protocol: v.Protocol}, Last: &v.Run}
		err := s.ws.View(ctx, func(r *store.Reader) (err error) {
			if l.Row, err = r.LoopNamed(ctx, s.ws.ID, v.Protocol, v.Loop); err != nil {
				return err
			}
			if w.Waiting, err = r.WaitingOf(ctx, l.Row.ID); err != nil {
				return err
			}
			if w.Landings, err = s.landingsOf(ctx, r, l.Row); err != nil {
				return err
			}
			if l.Switches, err = r.Switches(ctx, s.ws.ID); err != nil || l.Row.Registered.Good == "" {
				return err
			}
			l.Definition, err = r.Definition(ctx, l.Row.Registered.Good)
			return err
		})
		if err != nil {
			return w, err
		}
		if w.Broken = l.Row.Registered.Broken; w.Broken != "" {
			w.LastGood = l.Row.Registered.Good
		}
		w.Late, w.LateUntil = s.ws.LateSince(l)
		if w.Unserved == "" {
			if w.Unserved, err = s.ws.UnservedLabels(ctx, l.Usable().NodeLabels); err != nil {
				return w, err
			}
		}
	}
	if v.Landing == nil && len(w.Landings) > 0 {
		next := w.Landings[0].advice()
		w.Next, w.Actions = next.String(), next.Actions
	}
	return w, s.addDecisions(ctx, v.ID, &w)
}

// addDecisions reads from the events of a run what was decided and what was denied.
func (s *Service) addDecisions(ctx context.Context, runID string, w *Why) error {
	var after int64
	for {
		events, _, err := s.Events(ctx, runID, after, 500)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if e.Kind == loop.EventRewritable {
				w.Careful = append(w.Careful, e.Text)
			}
			if text, denied := strings.CutPrefix(e.Text, loop.NoteDenied); denied && e.Kind == loop.EventNote && len(w.Denied) < mostDenied && !slices.Contains(w.Denied, text) {
				w.Denied = append(w.Denied, text)
			}
			if e.Kind == loop.EventRefused && !slices.Contains(w.Refused, e.Text) {
				w.Refused = append(w.Refused, e.Text)
			}
			if e.Kind != loop.EventConsidered {
				continue
			}
			d := Decision{N: len(w.Decisions) + 1, Considered: []loop.Considered{}}
			if err := json.Unmarshal([]byte(e.Text), &d.Considered); err != nil {
				return fmt.Errorf("read decision of run %s: %w", runID, err)
			}
			w.Decisions = append(w.Decisions, d)
		}
	}
}

// Next is what a person can do after a run; empty if there is nothing to do.
func Next(v View) loop.Advice {
	id := fmt.Sprintf("%s#%d", v.Loop, v.N)
	again := loop.PawlCommand("run", v.Loop)
	decided := func(text string) loop.Command { return again.WithFlag("request", text).WithBlanks(text) }
	diff, logs, edit := loop.PawlCommand("diff", id), loop.PawlCommand("logs", id), loop.PawlCommand("config edit", v.Loop)
	switch {
	case v.DeferredTo != nil:
		return loop.Advise("it comes again at its next tick; {1} runs it as soon as nothing is in its way", again.WithFlag("wait"))
	case v.State == lookup.Lost:
		return loop.Advise("{1} ends it, as every command does that writes; its work is kept where it is", loop.PawlCommand("recover"))
	case v.State == lookup.Dead:
		return loop.Advise("{1} concludes it and keeps its work, as every command does that writes", loop.PawlCommand("recover"))
	case v.Landing != nil:
		return v.Landing.advice()
	case v.PullRequest() != "":
		return loop.Advise("judge the pull request: " + v.PullRequest())
	case v.Outcome == loop.OutcomeProposed && v.Answer == loop.ApprovalOpen:
		return loop.Advise("look at it: {1}; land it: {2}", diff, loop.PawlCommand("approve", id))
	case v.Outcome == loop.OutcomeProposed && v.Answer != "":
		return loop.Advise("its question is "+string(v.Answer)+": {1}", loop.PawlCommand("approvals", v.Approval))
	case v.Outcome == loop.OutcomeProposed:
		return loop.Advise("look at it: {1}; take it: {2}", loop.HostCommand("git", "diff", short(v.Base), v.Branch), loop.HostCommand("git", "merge", v.Branch))
	case v.Outcome == loop.OutcomePaused:
		clear := v.Cause.Switch.ClearedBy(v.Loop)
		if v.Again == nil {
			return clear
		}
		return clear.Then("; then ", loop.Advise("{1}", *v.Again))
	case v.Outcome == loop.OutcomeWaiting && v.Answer == loop.ApprovalOpen:
		return loop.Advise("{1} shows what is asked; {2}, or {3}", loop.PawlCommand("approvals", id), loop.PawlCommand("approve", id), loop.PawlCommand("reject", id))
	case (v.Outcome == loop.OutcomeGaveUp || v.Outcome == loop.OutcomeEscalated) && v.Answer == loop.ApprovalOpen:
		return loop.Advise("{1} shows what was tried; {2} lets it go on, {3} leaves it",
			loop.PawlCommand("approvals", id), loop.PawlCommand("approve", id).WithFlag("note", "TEXT").WithBlanks("TEXT"), loop.PawlCommand("reject", id))
	case v.Again != nil && v.Outcome != loop.OutcomeLanded && v.Outcome != loop.OutcomeDone && v.Outcome != loop.OutcomeEscalated:
		return loop.Advise("nothing has landed; once the cause is gone: {1}", *v.Again)
	case v.Reason == loop.ReasonDisk:
		small := loop.Advise("keep those folders small, or raise max_disk in the definition")
		if v.Snapshot == "" {
			return small
		}
		return small.Then("; ", loop.Advise("what fits into a snapshot is kept: {1}", diff))
	case v.Reason == loop.ReasonPriceUnknown:
		return loop.Advise("{1} lists the models that have one; {2} adds one", loop.PawlCommand("prices"), loop.PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F"))
	case v.Outcome == loop.OutcomeBudget && v.Reason == loop.ReasonBudget:
		return loop.Advise("{1} says what is left; {2} changes it", loop.PawlCommand("budget show", v.Loop), loop.PawlCommand("budget set", v.Loop))
	case v.Reason == loop.FailureAuth, v.Reason == loop.FailureQuota:
		return loop.Advise("{1} says how each agent signs in; {2} once that is right", loop.PawlCommand("agent drivers"), loop.PawlCommand("resume", v.Loop))
	case v.Reason == loop.FailureRateLimit, v.Reason == loop.ReasonCoolOff:
		return loop.Advise("it rests; {1} says until when, {2} lets it try at once", loop.PawlCommand("show", v.Loop), loop.PawlCommand("resume", v.Loop))
	case v.Reason == loop.FailureHeld:
		return loop.Advise("{1} when that run has ended; with a key and auth: inject, any number of runs act at once", again)
	case v.Reason == loop.ReasonAgentBusy, v.Reason == loop.ReasonAccountBusy:
		who := "@" + strings.TrimPrefix(v.Agent, "@")
		more := loop.PawlCommand("agent set", who).WithFlag("max-runs", "N").WithBlanks("N")
		if v.Reason == loop.ReasonAccountBusy {
			more = loop.PawlCommand("agent set", who).WithFlag("account-max-runs", "N").WithBlanks("N")
		}
		return loop.Advise("{1} when one of them has ended, or let more act at once: {2}", again, more)
	case v.Reason == loop.ReasonAgentEscalated && v.Snapshot == "", v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepEscalated:
		return loop.Advise("decide what the reason asks; then {1}", decided("what you decided"))
	case v.Reason == loop.ReasonUnfilled:
		return loop.Advise(v.Cause.Fetch).Then("; ", loop.Advise("then {1}", again))
	case v.Reason == loop.ReasonConflict:
		return loop.Advise("merge the branch by hand, or make a new proposal: {1}", again)
	case v.Reason == loop.ReasonGitConfig:
		if v.Cause.GitChange {
			return loop.Advise("if you made this change: {1}; if not, undo it", loop.PawlCommand("init").WithFlag("accept-git-config"))
		}
		return loop.Advise("take it out of git's configuration; then {1}", again)
	case v.Reason == loop.ReasonSenseFailed:
		return loop.Advise("correct sense in the definition: {1}", edit)
	case v.Reason == loop.ReasonNoChanges:
		return loop.Advise("{1} shows what the agent did; if nothing had to change, it has to report no_change", logs)
	case v.Reason == loop.ReasonAgentExit && v.Snapshot == "":
		return loop.Advise("{1} shows what the agent printed", logs)
	case v.Reason == loop.ReasonAgentTimeout && v.Snapshot == "":
		return loop.Advise("{1} shows what the agent did; max_step_timeout allows it more time: {2}", logs, edit)
	case v.Reason == loop.ReasonScope && v.Snapshot != "":
		return loop.Advise("its work is kept: {1}; to allow such files, name them in scope: {2}", diff, edit)
	case v.Reason == loop.ReasonSetupFailed:
		return loop.Advise("{1} tries it again; setup in the definition names another command, network more hosts", loop.PawlCommand("doctor", v.Loop).WithFlag("live"))
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepWaiting:
		return loop.Advise("{1}, or {2}", loop.PawlCommand("approve", v.Loop), loop.PawlCommand("reject", v.Loop))
	case v.Reason == loop.ReasonLandingWaits, v.Reason == loop.ReasonLandingRests:
		return loop.Advise("{1} says how it stands and what lands it at once", loop.PawlCommand("why", v.Loop))
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonPullRequest:
		return loop.Advise("merge the pull request, or close it; the next run of " + v.Loop + " asks gh whether it was merged")
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonMerged:
		return loop.Advise("{1}; then {2}", loop.HostCommand("git", "pull"), again)
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonRejected:
		return loop.Advise("say what should be different: {1}", decided("what you want"))
	case v.Snapshot != "":
		return loop.Advise("its work is kept: {1}; bring it back: {2}", diff, loop.HostCommand("git", "checkout", "-b", "rescue", v.Snapshot))
	case v.Outcome == loop.OutcomeQuiet, v.Outcome == loop.OutcomeReported, v.Outcome == loop.OutcomeDone, v.Outcome == loop.OutcomeLanded:
		return loop.Advice{}
	}
	return loop.Advise("{1}", loop.PawlCommand("trace", id))
}

func joinedBy(by, first, second string) string {
	if second == "" {
		return first
	}
	return first + by + second
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

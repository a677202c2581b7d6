package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/event"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// Show returns one loop with its steps and the budgets that bound it.
func (s *Service) Show(ctx context.Context, name string) (LoopRow, error) {
	l, err := s.stateOf(ctx, name)
	if err != nil {
		return LoopRow{}, err
	}
	one := []loopState{l}
	rows := s.rowsOf(one)
	row := &rows[0]
	row.Schema = "pawl.loop/v1"
	err = s.view(ctx, func(r *store.Reader) error {
		row.Steps, err = r.Steps(ctx, l.LoopID())
		return err
	})
	if err != nil && !absent(err) {
		return *row, err
	}
	if row.Budgets, err = s.budgetsOfLoop(ctx, l); err != nil {
		return *row, err
	}
	if err = s.rests(ctx, one, rows); err != nil {
		return *row, err
	}
	row.Drift, err = s.drift(ctx, l.LoopID())
	return *row, err
}

// Runs lists the newest runs of a loop, newest first; of all loops if name is
// empty.
func (s *Service) Runs(ctx context.Context, name string, limit int) ([]RunView, error) {
	list := func(r *store.Reader) ([]loop.Run, error) { return s.newestRuns(ctx, r, limit) }
	if name != "" {
		e, err := s.loops.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		list = func(r *store.Reader) ([]loop.Run, error) { return r.Runs(ctx, e.LoopID(), limit) }
	}
	var runs []loop.Run
	err := s.view(ctx, func(r *store.Reader) (err error) {
		runs, err = list(r)
		return err
	})
	if err != nil && !absent(err) {
		return nil, err
	}
	views := []RunView{}
	for _, run := range runs {
		v, err := s.runView(ctx, run)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// newestRuns lists the newest runs of the workspace, in the order in which they were
// fired: the clock may have been set back between two of them. Those of loops that
// were forgotten are left out.
func (s *Service) newestRuns(ctx context.Context, r *store.Reader, limit int) (list []loop.Run, err error) {
	forgotten := map[string]bool{}
	for before := int64(0); ; {
		page, err := r.WorkspaceRuns(ctx, s.ws.ID, before, limit)
		if err != nil {
			return nil, err
		}
		for _, run := range page {
			before = run.Seq
			if _, known := forgotten[run.LoopID]; !known {
				l, err := r.Loop(ctx, run.LoopID)
				if err != nil {
					return nil, err
				}
				_, err = os.Lstat(filepath.Join(s.ws.Root, catalog.File(l.Name)))
				forgotten[run.LoopID] = l.Forgotten && (l.Protocol != loop.ProtocolSpine || err != nil)
			}
			if !forgotten[run.LoopID] {
				list = append(list, run)
			}
			if len(list) == limit {
				return list, nil
			}
		}
		if len(page) < limit {
			return list, nil
		}
	}
}

// Run finds a RUN: a run id, LOOP#N, or LOOP for its newest.
func (s *Service) Run(ctx context.Context, ref string) (RunView, error) {
	run, err := s.runOf(ctx, ref)
	if err != nil {
		return RunView{}, err
	}
	return s.runView(ctx, run)
}

func (s *Service) runOf(ctx context.Context, ref string) (loop.Run, error) {
	var run loop.Run
	if strings.HasPrefix(ref, "run_") {
		err := s.view(ctx, func(r *store.Reader) (err error) {
			run, err = r.Run(ctx, ref)
			return err
		})
		return run, s.noRun(ref, err)
	}
	name, number, numbered := strings.Cut(ref, "#")
	e, err := s.loops.Resolve(ctx, name)
	if err != nil {
		return run, err
	}
	if !numbered {
		var newest []loop.Run
		err := s.view(ctx, func(r *store.Reader) (err error) {
			newest, err = r.Runs(ctx, e.LoopID(), 1)
			return err
		})
		if err != nil && !absent(err) {
			return run, err
		}
		if len(newest) == 0 {
			return run, &loop.Fault{
				Exit: loop.ExitNotFound, What: "loop " + name + " has no runs yet", Err: loop.ErrNotFound,
				Fix: "start one: {1}", Actions: []loop.Command{loop.Pawl("run", name)},
			}
		}
		return newest[0], nil
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return run, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q is no run", ref), Fix: "write LOOP#NUMBER, for example " + name + "#3"}
	}
	err = s.view(ctx, func(r *store.Reader) (err error) {
		run, err = r.RunNumber(ctx, e.LoopID(), n)
		return err
	})
	return run, s.noRun(ref, err)
}

func (s *Service) noRun(ref string, err error) error {
	if !absent(err) {
		return err
	}
	return &loop.Fault{Exit: loop.ExitNotFound, What: "there is no run " + ref, Fix: "{1} lists them", Actions: []loop.Command{loop.Pawl("runs")}, Err: err}
}

// Events lists events of a run after a sequence number, oldest first, and says
// whether the run can still get more.
func (s *Service) Events(ctx context.Context, runID string, after int64, limit int) (events []loop.Event, more bool, err error) {
	err = s.view(ctx, func(r *store.Reader) error {
		// The state is read first: what an ended run wrote is then all there.
		run, err := r.Run(ctx, runID)
		if err != nil {
			return err
		}
		events, err = r.Events(ctx, runID, after, limit)
		more = run.State != loop.RunEnded && s.liveness(run) != "dead" || len(events) == limit
		return err
	})
	return events, more, err
}

// FeedHead is the newest place in the store's feed.
func (s *Service) FeedHead(ctx context.Context) (loop.Cursor, error) {
	return s.feed().Head(ctx)
}

// WaitForRun returns when the feed says after a cursor that a run has changed, and
// from where to wait for its next change. It also returns now and then without a
// change: the process of a run may have died, which no row says.
func (s *Service) WaitForRun(ctx context.Context, runID string, after loop.Cursor) (loop.Cursor, error) {
	_, after, err := s.feed().Next(ctx, after, 2*time.Second, func(e loop.FeedEntry) bool { return e.Kind == loop.FeedRun && e.ID == runID })
	if errors.Is(err, store.ErrFeedPruned) { // It was followed too slowly: the rows say how it is now.
		return s.FeedHead(ctx)
	}
	return after, err
}

func (s *Service) feed() event.Feed { return event.Feed{Store: s.Store} }

// changingRun finds a run whose change is asked for. A quiet one has none: if it was
// found by the name of its loop, the run is meant that asked the newest open question.
func (s *Service) changingRun(ctx context.Context, ref string) (loop.Run, error) {
	run, err := s.runOf(ctx, ref)
	if err != nil || run.Outcome != loop.OutcomeQuiet {
		return run, err
	}
	open, err := s.openOf(ctx, ref)
	if err != nil || len(open) == 0 {
		return run, err
	}
	v, err := s.approvalByID(ctx, open[0])
	return v.run, err
}

// Diff is what a run changed, as a patch. It is empty for a run that changed
// nothing. Of work that lies in pawl's home, and in no commit, the error says
// where.
func (s *Service) Diff(ctx context.Context, ref string) ([]byte, error) {
	run, err := s.changingRun(ctx, ref)
	if err != nil {
		return nil, err
	}
	v, err := s.runView(ctx, run)
	if err != nil {
		return nil, err
	}
	to := v.Commit
	if to == "" && v.Snapshot != "" {
		if id, ok, err := s.repo.Ref(ctx, v.Snapshot); err != nil || ok {
			if to = id; err != nil {
				return nil, err
			}
		}
	}
	if to == "" {
		kept, ok, err := s.keptOf(ctx, v.Run)
		if err != nil && !absent(err) {
			return nil, err
		}
		if ok {
			return nil, keptFault("diff", kept, nil)
		}
	}
	if to == "" || v.Base == "" {
		return nil, nil
	}
	return s.repo.Diff(ctx, v.Base, to)
}

// Why explains a run, schema pawl.why/v1.
type Why struct {
	Schema    string       `json:"schema"`
	Run       string       `json:"run"`
	ID        string       `json:"id"`
	Outcome   loop.Outcome `json:"outcome"`
	Reason    loop.Reason  `json:"reason"`
	Detail    string       `json:"detail"`
	Exit      int          `json:"exit"`
	Decisions []Decision   `json:"decisions"`
	Attempts  []Attempt    `json:"attempts"`
	Careful   []string     `json:"careful,omitempty"` // what makes the verdict of a gate worth less
	Denied    []string     `json:"denied,omitempty"`  // requests of its programs that did not pass, the first of them
	Refused   []string     `json:"refused,omitempty"` // calls to a model that no budget pays for, each reason once
	Next      string       `json:"next"`              // what a person can do about it, for somebody with a shell

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
	v, err := s.Run(ctx, ref)
	if err != nil {
		return Why{}, err
	}
	w := Why{
		Schema: "pawl.why/v1", Run: fmt.Sprintf("%s#%d", v.Loop, v.N), ID: v.ID, Outcome: v.Outcome, Reason: v.Reason, Detail: v.Detail,
		Exit: v.Outcome.Meaning().Exit, Decisions: []Decision{}, Attempts: []Attempt{},
	}
	next := Next(v)
	w.Next, w.Actions = next.String(), append([]loop.Command{}, next.Actions...)
	for _, it := range v.Iterations {
		w.Attempts = append(w.Attempts, Attempt{it.N, it.Step, it.Verdict, it.Reason, it.Feedback})
	}
	return w, s.decisions(ctx, v.ID, &w)
}

// decisions reads from the events of a run what was decided and what was denied.
func (s *Service) decisions(ctx context.Context, runID string, w *Why) error {
	var after int64
	for {
		events, _, err := s.Events(ctx, runID, after, 500)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if e.Kind == engine.EventRewritable {
				w.Careful = append(w.Careful, e.Text)
			}
			if text, denied := strings.CutPrefix(e.Text, loop.NoteDenied); denied && e.Kind == loop.EventNote && len(w.Denied) < mostDenied && !slices.Contains(w.Denied, text) {
				w.Denied = append(w.Denied, text)
			}
			if e.Kind == loop.EventRefused && !slices.Contains(w.Refused, e.Text) {
				w.Refused = append(w.Refused, e.Text)
			}
			if e.Kind != engine.EventConsidered {
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
func Next(v RunView) loop.Advice {
	id := fmt.Sprintf("%s#%d", v.Loop, v.N)
	again := loop.Pawl("run", v.Loop)
	decided := func(text string) loop.Command { return again.With("request", text).Blank(text) }
	diff, logs, edit := loop.Pawl("diff", id), loop.Pawl("logs", id), loop.Pawl("config edit", v.Loop)
	switch {
	case v.State == "dead":
		return loop.Advise("{1} concludes it and keeps its work, as every command does that writes", loop.Pawl("recover"))
	case v.PullRequest() != "":
		return loop.Advise("judge the pull request: " + v.PullRequest())
	case v.Outcome == loop.OutcomeProposed && v.Answer == loop.ApprovalOpen:
		return loop.Advise("look at it: {1}; land it: {2}", diff, loop.Pawl("approve", id))
	case v.Outcome == loop.OutcomeProposed && v.Answer != "":
		return loop.Advise("its question is "+string(v.Answer)+": {1}", loop.Pawl("approvals", v.Approval))
	case v.Outcome == loop.OutcomeProposed:
		return loop.Advise("look at it: {1}; take it: {2}", loop.Host("git", "diff", short(v.Base), v.Branch), loop.Host("git", "merge", v.Branch))
	case v.Outcome == loop.OutcomePaused:
		clear := ResumeCommand(v.Loop, v.Detail)
		if v.Again == nil {
			return clear
		}
		return clear.Then("; then ", loop.Advise("{1}", *v.Again))
	case v.Outcome == loop.OutcomeWaiting && v.Answer == loop.ApprovalOpen:
		return loop.Advise("{1} shows what is asked; {2}, or {3}", loop.Pawl("approvals", id), loop.Pawl("approve", id), loop.Pawl("reject", id))
	case v.Again != nil && v.Outcome != loop.OutcomeLanded && v.Outcome != loop.OutcomeDone && v.Outcome != loop.OutcomeEscalated:
		return loop.Advise("nothing has landed; once the cause is gone: {1}", *v.Again)
	case v.Reason == loop.ReasonDisk:
		small := loop.Advise("keep those folders small, or raise max_disk in the definition")
		if v.Snapshot == "" {
			return small
		}
		return small.Then("; ", loop.Advise("what fits into a snapshot is kept: {1}", diff))
	case v.Outcome == loop.OutcomeBudget && v.Reason == loop.ReasonBudget:
		if strings.Contains(v.Detail, "has no price") {
			return loop.Advise("{1} lists the models that have one; {2} adds one", loop.Pawl("prices"), PriceUpdate)
		}
		return loop.Advise("{1} says what is left; {2} changes it", loop.Pawl("budget show", v.Loop), loop.Pawl("budget set", v.Loop))
	case v.Reason == loop.FailureAuth, v.Reason == loop.FailureQuota:
		return loop.Advise("{1} says how each agent signs in; {2} once that is right", loop.Pawl("agent drivers"), loop.Pawl("resume", v.Loop))
	case v.Reason == loop.FailureRateLimit, v.Reason == loop.ReasonCoolOff:
		return loop.Advise("it rests; {1} says until when, {2} lets it try at once", loop.Pawl("show", v.Loop), loop.Pawl("resume", v.Loop))
	case v.Reason == loop.ReasonAgentEscalated && v.Snapshot == "", v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepEscalated:
		return loop.Advise("decide what the reason asks; then {1}", decided("what you decided"))
	case v.Reason == loop.ReasonUnfilled:
		_, fix, _ := strings.Cut(v.Detail, loop.FixMark)
		return loop.Advise(fix).Then("; ", loop.Advise("then {1}", again))
	case v.Reason == loop.ReasonConflict:
		return loop.Advise("merge the branch by hand, or make a new proposal: {1}", again)
	case v.Reason == loop.ReasonGitConfig:
		if engine.AcceptsGitConfig(v.Detail) {
			return loop.Advise("if you made this change: {1}; if not, undo it", loop.Pawl("init").With("accept-git-config"))
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
		return loop.Advise("{1} tries it again; setup in the definition names another command, network more hosts", loop.Pawl("doctor", v.Loop).With("live"))
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepWaiting:
		return loop.Advise("{1}, or {2}", loop.Pawl("approve", v.Loop), loop.Pawl("reject", v.Loop))
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonPullRequest:
		return loop.Advise("merge the pull request, or close it; the next run of " + v.Loop + " asks gh what became of it")
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonMerged:
		return loop.Advise("{1}; then {2}", loop.Host("git", "pull"), again)
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonRejected:
		return loop.Advise("say what should be different: {1}", decided("what you want"))
	case v.Snapshot != "":
		return loop.Advise("its work is kept: {1}; bring it back: {2}", diff, loop.Host("git", "checkout", "-b", "rescue", v.Snapshot))
	case v.Outcome == loop.OutcomeQuiet, v.Outcome == loop.OutcomeReported, v.Outcome == loop.OutcomeDone, v.Outcome == loop.OutcomeLanded:
		return loop.Advice{}
	}
	return loop.Advise("{1}", loop.Pawl("trace", id))
}

func joinedBy(by, first, second string) string {
	if second == "" {
		return first
	}
	return first + by + second
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

// VerifyAudit walks the audit chain of a loop, and says which entry was
// changed, removed or put in another place. A loop without entries is in order.
func (s *Service) VerifyAudit(ctx context.Context, name string) error {
	e, err := s.loops.Resolve(ctx, name)
	if err != nil {
		return err
	}
	err = s.view(ctx, func(r *store.Reader) error {
		links, err := r.Chain(ctx, e.LoopID())
		if err != nil {
			return err
		}
		return store.VerifyChain(links)
	})
	if absent(err) {
		return nil
	}
	return err
}

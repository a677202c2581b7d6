package control

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/engine"
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
				Exit: loop.ExitNotFound, What: "loop " + name + " has no runs yet", Fix: "start one: pawl run " + name, Err: loop.ErrNotFound,
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
	return &loop.Fault{Exit: loop.ExitNotFound, What: "there is no run " + ref, Fix: "`pawl runs` lists them", Err: err}
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
	Next      string       `json:"next"`              // what a person can do about it
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
		Exit: v.Outcome.Meaning().Exit, Decisions: []Decision{}, Attempts: []Attempt{}, Next: Next(v),
	}
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
func Next(v RunView) string {
	id := fmt.Sprintf("%s#%d", v.Loop, v.N)
	switch {
	case v.State == "dead":
		return "pawl recover concludes it and keeps its work, as every command does that writes"
	case v.PullRequest() != "":
		return "judge the pull request: " + v.PullRequest()
	case v.Outcome == loop.OutcomeProposed && v.Answer == loop.ApprovalOpen:
		return fmt.Sprintf("look at it: pawl diff %s; land it: pawl approve %s", id, id)
	case v.Outcome == loop.OutcomeProposed && v.Answer != "":
		return "its question is " + string(v.Answer) + ": pawl approvals " + v.Approval
	case v.Outcome == loop.OutcomeProposed:
		return fmt.Sprintf("look at it: git diff %s %s; take it: git merge %s", short(v.Base), v.Branch, v.Branch)
	case v.Outcome == loop.OutcomePaused:
		return joinedBy("; then ", ResumeCommand(v.Loop, v.Detail), v.Again)
	case v.Outcome == loop.OutcomeWaiting && v.Answer == loop.ApprovalOpen:
		return fmt.Sprintf("pawl approvals %s shows what is asked; pawl approve %s, or pawl reject %s", id, id, id)
	case v.Again != "" && v.Outcome != loop.OutcomeLanded && v.Outcome != loop.OutcomeDone && v.Outcome != loop.OutcomeEscalated:
		return "nothing has landed; once what stood in the way is gone: " + v.Again
	case v.Reason == loop.ReasonDisk:
		kept := ""
		if v.Snapshot != "" {
			kept = "what fits into a snapshot is kept: pawl diff " + id
		}
		return joinedBy("; ", "keep those folders small, or raise max_disk in the definition", kept)
	case v.Outcome == loop.OutcomeBudget && v.Reason == loop.ReasonBudget:
		if strings.Contains(v.Detail, "has no price") {
			return "pawl prices lists the models that have one; pawl prices update --file F adds one"
		}
		return "pawl budget show " + v.Loop + " says what is left; pawl budget set changes it"
	case v.Reason == loop.FailureAuth, v.Reason == loop.FailureQuota:
		return "pawl agent drivers says how each agent signs in; pawl resume " + v.Loop + " once that is right"
	case v.Reason == loop.FailureRateLimit, v.Reason == loop.ReasonCoolOff:
		return "it rests; pawl show " + v.Loop + " says until when, pawl resume " + v.Loop + " lets it try at once"
	case v.Reason == loop.ReasonAgentEscalated && v.Snapshot == "", v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepEscalated:
		return "decide what the reason asks; then pawl run " + v.Loop + ` --request "what you decided"`
	case v.Reason == loop.ReasonSetupFailed:
		return "pawl doctor " + v.Loop + " --live tries it again; setup in the definition names another command, network more hosts"
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepWaiting:
		return "pawl approve " + v.Loop + ", or pawl reject " + v.Loop
	case v.Snapshot != "":
		return fmt.Sprintf("its work is kept: pawl diff %s; git checkout -b rescue %s", id, v.Snapshot)
	case v.Outcome == loop.OutcomeQuiet, v.Outcome == loop.OutcomeReported, v.Outcome == loop.OutcomeDone, v.Outcome == loop.OutcomeLanded:
		return ""
	}
	return "pawl trace " + id
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

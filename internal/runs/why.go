package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
)

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
	v, err := s.Show(ctx, ref)
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
func Next(v View) string {
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
		return joinedBy("; then ", engine.ClearedBy(v.Loop, v.Detail), v.Again)
	case v.Outcome == loop.OutcomeWaiting && v.Answer == loop.ApprovalOpen:
		return fmt.Sprintf("pawl approvals %s shows what is asked; pawl approve %s, or pawl reject %s", id, id, id)
	case v.Again != "" && v.Outcome != loop.OutcomeLanded && v.Outcome != loop.OutcomeDone && v.Outcome != loop.OutcomeEscalated:
		return "nothing has landed; once the cause is gone: " + v.Again
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
	case v.Reason == loop.ReasonUnfilled:
		_, fix, _ := strings.Cut(v.Detail, loop.FixMark)
		return strings.TrimPrefix(fix+"; then pawl run "+v.Loop, "; then ")
	case v.Reason == loop.ReasonConflict:
		return "merge the branch by hand, or make a new proposal: pawl run " + v.Loop
	case v.Reason == loop.ReasonGitConfig:
		if strings.Contains(v.Detail, "--accept-git-config") {
			return "if you made this change: pawl init --accept-git-config; if not, undo it"
		}
		return "take it out of git's configuration; then pawl run " + v.Loop
	case v.Reason == loop.ReasonSenseFailed:
		return "correct sense in the definition: pawl config edit " + v.Loop
	case v.Reason == loop.ReasonNoChanges:
		return "pawl logs " + id + " shows what the agent did; if nothing had to change, it has to report no_change"
	case v.Reason == loop.ReasonAgentExit && v.Snapshot == "":
		return "pawl logs " + id + " shows what the agent printed"
	case v.Reason == loop.ReasonAgentTimeout && v.Snapshot == "":
		return "pawl logs " + id + " shows what the agent did; max_step_timeout allows it more time: pawl config edit " + v.Loop
	case v.Reason == loop.ReasonScope && v.Snapshot != "":
		return fmt.Sprintf("its work is kept: pawl diff %s; to allow such files, name them in scope: pawl config edit %s", id, v.Loop)
	case v.Reason == loop.ReasonSetupFailed:
		return "pawl doctor " + v.Loop + " --live tries it again; setup in the definition names another command, network more hosts"
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonStepWaiting:
		return "pawl approve " + v.Loop + ", or pawl reject " + v.Loop
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonPullRequest:
		return "merge the pull request, or close it; the next run of " + v.Loop + " asks gh what became of it"
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonMerged:
		return "git pull; then pawl run " + v.Loop
	case v.Outcome == loop.OutcomeQuiet && v.Reason == loop.ReasonRejected:
		return "say what should be different: pawl run " + v.Loop + ` --request "what you want"`
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

package boot

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// End implements the optional method of engine.Session: step 7 of the boot protocol. It
// depends on nothing but the memory and the summary, so that a run of a process that died
// ends like any other.
func (s *session) End(sum engine.Summary) ([]loop.Change, []loop.EffectRequest) {
	s.takeBackBegin(len(sum.Iterations))
	before := s.found
	failed := isFailure(sum.Run)
	if len(sum.Iterations) == 0 && !s.changed && (!failed || !s.isNews(sum.Run)) {
		return nil, s.askAboutEarlier(sum)
	}
	s.memory.State, s.memory.Tasks = s.memory.State.Clone(), s.memory.Tasks.Clone()
	tree := s.settleTasks(sum)
	s.settleState(sum, failed)
	s.memory.Changelog = bootstate.AddToChangelog(s.memory.Changelog, sum.Now, s.entries)
	message := bootstate.Session{
		Brief: s.brief(sum), State: bootstate.DescribeState(before.State, s.memory.State), Tasks: bootstate.DescribeTasks(before.Tasks, s.memory.Tasks),
		Summary: cmp.Or(sum.Run.Summary, sum.Run.Reason.Explain(readiness.FirstLine(sum.Run.Detail)), string(sum.Run.Outcome)),
	}
	s.note(sum.Now, "ended %s: %s", sum.Run.Outcome, cmp.Or(string(sum.Run.Reason), "-"))
	files := s.files()
	if name := s.auditFile(); name != "" {
		text := s.texts[name]
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		files[name] = text + strings.Join(s.audit, "")
	}
	changes := s.write()
	if name := s.auditFile(); name != "" && !s.elsewhere {
		changes = append(changes, loop.Change{Kind: loop.ChangeEdit, Path: name, Before: s.texts[name], Content: files[name]})
		s.texts[name] = files[name]
	}
	commit := loop.EffectRequest{Kind: effect.KindMemoryCommit, Key: sum.Run.ID + "/commit", Args: map[string]string{
		effect.ArgBase: s.branch, effect.ArgOnto: sum.Run.BaseCommit, effect.ArgTree: tree, effect.ArgMessage: message.Message(),
		effect.ArgWhen: sum.Now.UTC().Format(time.RFC3339), effect.ArgFiles: effect.EncodeFiles(files), effect.ArgContract: s.contractText(),
	}}
	if tree == "" {
		commit.Args[loop.ArgAccount] = "memory"
	}
	if s.asksToPush() {
		commit.Args[effect.ArgAsks], commit.Args[effect.ArgRemote] = "true", Remote
	}
	if !s.pushesItself() {
		return changes, []loop.EffectRequest{commit}
	}
	return changes, []loop.EffectRequest{commit, s.remoteRequest(effect.KindMemoryPush, sum.Run.ID+"/push", sum.Now)}
}

// askAboutEarlier lets a session that leaves no commit ask about those of earlier ones, which
// may have others names since they were made again on top of what the remote had.
func (s *session) askAboutEarlier(sum engine.Summary) []loop.EffectRequest {
	if !s.owed || !s.asksToPush() {
		return nil
	}
	return []loop.EffectRequest{{Kind: effect.KindMemoryCommit, Key: sum.Run.ID + "/commit", Args: map[string]string{
		effect.ArgBase: s.branch, effect.ArgOnto: sum.Run.BaseCommit, effect.ArgWhen: sum.Now.UTC().Format(time.RFC3339), effect.ArgFiles: effect.EncodeFiles(nil),
		effect.ArgContract: s.contractText(), effect.ArgAsks: "true", effect.ArgRemote: Remote, loop.ArgAccount: "memory",
	}}}
}

func (s *session) remoteRequest(kind, key string, now time.Time) loop.EffectRequest {
	return loop.EffectRequest{Kind: kind, Key: key, Args: map[string]string{
		effect.ArgBase: s.branch, effect.ArgRemote: Remote, effect.ArgWhen: now.UTC().Format(time.RFC3339),
		effect.ArgFiles: effect.EncodeFiles(s.committed()), effect.ArgContract: s.contractText(),
	}}
}

// committed are the files of the memory as the checkout has them, with the audit trail.
func (s *session) committed() map[string]string {
	files := map[string]string{}
	for name, text := range s.texts {
		if text != "" {
			files[name] = text
		}
	}
	if s.elsewhere {
		files = s.files()
	}
	return files
}

// contractText is the link with the commit of the boot repository that this run follows.
func (s *session) contractText() string {
	by := contractArg{Root: s.v.Root, Link: s.link}
	by.Link.Reference, by.Link.Rows = s.contract.Commit, nil
	text, err := json.Marshal(by)
	if err != nil {
		panic("boot: a link does not marshal: " + err.Error())
	}
	return string(text)
}

// isFailure reports whether a run ended in a way that the state records as an error.
func isFailure(r loop.Run) bool {
	return !r.Outcome.IsSuccess() && r.Outcome != loop.OutcomeWaiting
}

// isNews reports whether the error of a run that worked on nothing is not the last one that
// the state records already. Ends that somebody asked for are none.
func (s *session) isNews(r loop.Run) bool {
	if r.Outcome == loop.OutcomePaused || r.Outcome == loop.OutcomeInterrupted {
		return false
	}
	code, _ := s.memory.State.LastError()
	return code != string(r.Reason)
}

// settleTasks brings the tasks to what the iterations came to, and returns the tree of the
// work that goes into the commit; empty: none does.
func (s *session) settleTasks(sum engine.Summary) (tree string) {
	ids := map[string]string{} // of tasks, by the id of their step
	for _, task := range s.memory.Tasks.Tasks() {
		ids[engine.StepID(sum.Run.LoopID, task.ID)] = task.ID
	}
	s.counters.Iterations, s.counters.Errors = 0, 0
	unfinished := ""
	lastOf := map[string]int{} // number of the last iteration of a step
	for _, it := range sum.Iterations {
		lastOf[it.StepID] = it.N
	}
	for _, it := range sum.Iterations {
		s.counters.Add(it)
		id := ids[it.StepID]
		title := strings.Join(strings.Fields(it.Step), " ")
		s.note(it.Started, "%s: began (%s)", id, strings.TrimPrefix(it.Decided, it.Step+": "))
		s.note(it.Ended, "%s: iteration %d %s: %s", id, it.N, it.Verdict, it.Reason)
		switch {
		case it.Verdict == loop.VerdictPass && sum.Run.Outcome != loop.OutcomePaused:
			s.memory.Tasks.SetStatus(id, bootstate.StatusDone, "", sum.Now)
			s.contract.Schemas.SetAttempts(s.memory, id, nil, sum.Now)
			s.say("%s: done: %s", id, cmp.Or(reportOf(it).Summary, title))
			if len(it.Changed) > 0 && s.v.Definition.Tier != loop.TierReport {
				tree = it.Tree
			}
			unfinished = ""
		case it.Reason == loop.ReasonAgentBlocked || it.Reason == loop.ReasonAgentEscalated || sum.Run.Outcome == loop.OutcomeGaveUp && it.N == len(sum.Iterations):
			s.memory.Tasks.SetStatus(id, bootstate.StatusBlocked, readiness.FirstLine(cmp.Or(it.Feedback, it.Reason.Sentence())), sum.Now)
			s.contract.Schemas.SetAttempts(s.memory, id, nil, sum.Now) // Who opens it again wants it tried as often again.
			s.say("%s: blocked: %s", id, readiness.FirstLine(cmp.Or(it.Feedback, it.Reason.Sentence())))
			unfinished = ""
		default:
			s.memory.Tasks.SetStatus(id, bootstate.StatusInProgress, "", sum.Now)
			s.say("%s: not finished: %s", id, readiness.FirstLine(cmp.Or(it.Feedback, it.Reason.Sentence())))
			unfinished = id
			if it.N != lastOf[it.StepID] {
				continue
			}
			if blocked := s.settleAttempt(sum, id, it); blocked != "" {
				s.say("%s: blocked: %s", id, blocked)
				unfinished = ""
			}
		}
	}
	if len(sum.Iterations) > 0 {
		last := sum.Iterations[len(sum.Iterations)-1]
		next := cmp.Or(unfinished, reportOf(last).Handoff)
		if next == "" || last.Verdict != loop.VerdictPass && unfinished == "" {
			next = bootstate.NextTask(s.memory.Tasks)
		}
		s.memory.State.SetNextIntent(next)
	}
	return tree
}

// sessionMetadata is the name under which the state records the counters of the last run.
const sessionMetadata = "session"

func (s *session) settleState(sum engine.Summary, failed bool) {
	state := s.memory.State
	if failed {
		why := sum.Run.Reason.Explain(readiness.FirstLine(sum.Run.Detail))
		state.AddError(sum.Now, cmp.Or(why, string(sum.Run.Outcome)), string(sum.Run.Reason), sum.Run.Outcome != loop.OutcomeRefused)
		if len(sum.Iterations) == 0 {
			s.say("%s: %s", sum.Run.Outcome, cmp.Or(why, "for no known reason"))
		}
	}
	if s.counters.Minutes = sum.Now.Sub(s.v.Now).Minutes(); s.v.Ending { // Nobody knows how long the process lived.
		s.counters.Minutes = max(0, sum.Now.Sub(sum.Run.Started).Minutes())
	}
	counters := jsontree.NewObject(
		jsontree.Member{Name: "iterations", Value: jsontree.NewInt(int64(s.counters.Iterations))},
		jsontree.Member{Name: "errors", Value: jsontree.NewInt(int64(s.counters.Errors))},
		jsontree.Member{Name: "minutes", Value: jsontree.NewInt(int64(s.counters.Minutes))},
	)
	if c := s.counters.Confidence; c != nil {
		counters.Set("confidence", &jsontree.Value{Kind: jsontree.Number, Text: strconv.FormatFloat(*c, 'f', -1, 64)})
	}
	state.SetMetadata(sessionMetadata, counters)
	state.SetPhase(s.phaseAfter(sum.Run))
	if p := state.Phase(); p == bootstate.PhaseIdle || p == bootstate.PhaseCompleted {
		state.SetPlan(nil)
	}
	state.SetLastUpdated(sum.Now)
}

// phaseAfter is where the work stands after a run.
func (s *session) phaseAfter(r loop.Run) bootstate.Phase {
	var open, begun bool
	for _, task := range s.memory.Tasks.Tasks() {
		open = open || task.Status != bootstate.StatusDone
		begun = begun || task.Status == bootstate.StatusInProgress
	}
	switch {
	case r.Outcome == loop.OutcomeWaiting:
		return bootstate.PhaseReviewing
	case begun:
		return bootstate.PhaseImplementing
	case !open:
		return bootstate.PhaseCompleted
	case isFailure(r) || bootstate.NextTask(s.memory.Tasks) == "":
		return bootstate.PhaseBlocked
	}
	return bootstate.PhaseIdle
}

// brief is what the run came to, in a few words.
func (s *session) brief(sum engine.Summary) string {
	if n := len(sum.Iterations); n > 0 {
		it := sum.Iterations[n-1]
		if it.Verdict == loop.VerdictPass {
			return cmp.Or(readiness.FirstLine(reportOf(it).Summary), it.Step)
		}
		return it.Step + " (" + string(sum.Run.Outcome) + ")"
	}
	if len(s.repairs) > 0 {
		return "recovered the memory"
	}
	return string(sum.Run.Outcome)
}

// Close implements engine.Session. A commit cannot name itself: the checkout's state says
// which it was, and the next commit takes that along. Where there is no commit, what the
// run finished is open again.
func (s *session) Close(sum engine.Summary) []loop.Change {
	if s.elsewhere {
		return nil
	}
	for _, e := range sum.Effects {
		if e.Kind != effect.KindMemoryCommit {
			continue
		}
		if e.State != loop.EffectDone {
			return s.undo(sum, e)
		}
		return s.writeLastCommit(sum.Run.Commit)
	}
	return nil
}

// writeLastCommit writes the commit into the state of the checkout, which others may have
// changed since.
func (s *session) writeLastCommit(commit string) []loop.Change {
	file, err := s.v.Files.Read(s.link.State)
	if err != nil || !file.Exists || commit == "" {
		return nil
	}
	state, wrong := s.contract.Schemas.ReadState([]byte(file.Content))
	if len(wrong) > 0 || state.LastCommit() == commit {
		return nil
	}
	state.SetLastCommit(commit)
	return []loop.Change{{Kind: loop.ChangeEdit, Path: s.link.State, Before: file.Content, Content: string(state.Encode())}}
}

// undo takes back that tasks are done whose work is in no commit.
func (s *session) undo(sum engine.Summary, commit loop.Effect) []loop.Change {
	s.memory.State, s.memory.Tasks = s.memory.State.Clone(), s.memory.Tasks.Clone()
	for _, it := range sum.Iterations {
		for _, task := range s.memory.Tasks.Tasks() {
			if it.Verdict == loop.VerdictPass && engine.StepID(sum.Run.LoopID, task.ID) == it.StepID {
				s.memory.Tasks.SetStatus(task.ID, bootstate.StatusInProgress, "", sum.Now)
				s.memory.State.SetNextIntent(task.ID)
				a := s.attempt("the session was not committed: " + readiness.FirstLine(commit.Error))
				if s.contract.Schemas.FailAttempt(s.memory, task.ID, s.tried.Attempts(task.ID), a, sum.Now) != "" {
					s.memory.State.SetNextIntent(bootstate.NextTask(s.memory.Tasks))
				}
			}
		}
	}
	s.memory.State.AddError(sum.Now, "the session was not committed: "+readiness.FirstLine(commit.Error), string(sum.Run.Reason), true)
	s.memory.State.SetPhase(s.phaseAfter(sum.Run))
	return s.write()
}

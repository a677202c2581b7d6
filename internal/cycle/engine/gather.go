package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/rules/report"
)

var (
	beforeGather   = fault.New("engine.gather.before")
	afterCandidate = fault.New("engine.gather.candidate.after")
)

// work is what an agent's turn left behind.
type work struct {
	turn      turnResult
	said      string // what its agent said last, or printed
	report    report.Report
	malformed error      // why the report could not be read
	ran       commandRun // what the runtime ran for it
	changed   []string
	candidate object.Candidate
	compared  workspace.Comparison // of the candidate with the run's base
	refused   []string             // each path that may not be changed, with its rule
	leaked    []string             // each secret that the candidate adds
}

// claim is what the agent says in its report.
type claim struct {
	text      string // of the report
	report    report.Report
	malformed error // why the report could not be read
}

// readClaim reads the report of a turn. One that only answers has none.
func (wt *workTree) readClaim(turn turnResult) (c claim) {
	if !turn.answers {
		c.text, c.report, c.malformed = wt.readReport(turn.Message)
	}
	return c
}

// gatherWork takes the change list of a turn and of what the runtime ran for it, checks
// it against the scope and writes the candidate tree.
func (wt *workTree) gatherWork(ctx context.Context, turn turnResult, claimed claim, ran commandRun, sensed []Observation) (work, error) {
	wt.enterPhase(loop.PhaseGather)
	w := work{turn: turn, report: claimed.report, malformed: claimed.malformed, ran: ran}
	if err := beforeGather.Hit(ctx); err != nil {
		return w, err
	}
	it := wt.current()
	if turn.answers {
		it.Words = wt.answerOf(turn)
	}
	it.Report = claimed.text
	w.said = wt.said.Hide(strings.TrimSpace(cmp.Or(turn.Message, turn.printed)))
	w.said = strings.ToValidUTF8(w.said[:min(len(w.said), MostPrinted)], "")
	changes, problems, err := wt.copy.Changes(ctx)
	if err != nil {
		return w, err
	}
	changes = slices.DeleteFunc(changes, func(c object.FileChange) bool { return wt.isDiscarded(c.Path) })
	problems = slices.DeleteFunc(problems, func(p workspace.Problem) bool { return wt.isDiscarded(p.Path) })
	explained := map[workspace.Rule]bool{}
	for _, p := range problems {
		text := string(p.Rule)
		if !explained[p.Rule] {
			text = p.Rule.Sentence()
		}
		explained[p.Rule] = true
		w.refused = append(w.refused, p.Path+": "+text)
	}
	if w.candidate, err = wt.makeCandidate(ctx, changes); err != nil {
		return w, err
	}
	if w.changed, err = wt.changedPaths(ctx, changes, w.candidate); err != nil {
		return w, err
	}
	if err := afterCandidate.Hit(ctx); err != nil {
		return w, err
	}
	if err := wt.checkScope(ctx, &w); err != nil {
		return w, err
	}
	it.Tree, it.Candidate, it.Changed = w.candidate.Tree, w.candidate.Commit, wt.said.HideAll(w.changed)
	if w.leaked != nil {
		it.Candidate = "" // Nothing is to keep it.
	}
	if text := ran.summary(); text != "" {
		it.Acted += "; " + text
	}
	it.Acted += "; " + changedText(it.Changed)
	if w.report.Summary != "" {
		it.Acted += "; it says: " + w.report.Summary
	}
	if wt.def.Tier == loop.TierReport && it.Report == "" && w.malformed == nil && !turn.answers {
		it.Words = wt.wordsOf(turn, sensed)
		w.report.Summary = it.Words
	}
	row := *it
	return w, wt.commit(ctx, loop.PhaseGather,
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, row) })
}

// readReport reads what the agent wrote into PAWL_REPORT, or put at the end of
// its last message. Of a program that did neither the end of its turn is the
// claim.
func (wt *workTree) readReport(message string) (text string, r report.Report, malformed error) {
	file, err := projection.ReadFile(wt.host().ReportFile(wt.run.ID, len(wt.its)), report.MaxSize)
	switch {
	case err != nil:
		return "", r, err
	case file.TooBig:
		return "", r, fmt.Errorf("the report has more than %d bytes", report.MaxSize)
	}
	if strings.TrimSpace(file.Content) == "" {
		r, text, _, err := report.InMessage(wt.said.Hide(message))
		return text, r, err
	}
	file.Content = wt.said.Hide(file.Content)
	r, err = report.Parse([]byte(file.Content))
	if err != nil {
		return "", report.Report{}, err
	}
	return strings.TrimSpace(file.Content), r, nil
}

// mostWords bounds what is kept of an agent that wrote no report, and of what was
// sensed for it, in bytes.
const mostWords = 2 << 10

// wordsOf is what is known of a turn without a report, for a loop that changes
// nothing and would lose what it was paid for: the agent's own last words, which
// nobody has checked, and what was sensed.
func (wt *workTree) wordsOf(turn turnResult, sensed []Observation) string {
	said := strings.TrimSpace(wt.said.Hide(cmp.Or(turn.Message, turn.printed)))
	text := loop.WordsMark + " " + lastOf(cmp.Or(said, "none"))
	if len(sensed) > 0 {
		text += "\n" + loop.SensedMark + " " + lastOf(sensedText(sensed))
	}
	return text
}

// answerOf returns the last message of an agent that was only asked something, bounded and
// without secrets.
func (wt *workTree) answerOf(turn turnResult) string {
	said := wt.said.Hide(strings.TrimSpace(turn.Message))
	return strings.ToValidUTF8(said[:min(len(said), mostAnswer)], "")
}

// lastOf is the end of a text that is too long to be kept.
func lastOf(text string) string {
	if len(text) <= mostWords {
		return text
	}
	return "[…] " + strings.ToValidUTF8(text[len(text)-mostWords:], "")
}

// checkScope judges the candidate at the tiers that may change anything: every
// path with its modes and sizes, as the object store has them, against the
// definition's scope and what is protected.
func (wt *workTree) checkScope(ctx context.Context, w *work) error {
	if wt.def.Tier == loop.TierReport || len(w.changed) == 0 {
		return nil // What a report changes is dropped, and kept as a snapshot only.
	}
	scope, err := wt.runEnv().Scope(ctx)
	if err != nil {
		return err
	}
	compared, err := workspace.Compare(ctx, wt.target.Repo, wt.run.BaseCommit, w.candidate.Commit)
	if err != nil {
		return err
	}
	w.compared = compared
	for _, v := range scope.Check(compared.Changes, compared.Beside, policy.Limits{AllowExec: wt.def.AllowExec, AnyNames: wt.def.AnyNames, NoDelete: slices.Contains(wt.def.Denies, loop.DenyDestructive)}) {
		w.refused = append(w.refused, strings.TrimPrefix(v.Path+": "+v.Rule, ": "))
	}
	w.refused = wt.said.HideAll(w.refused)
	if len(w.refused) == 0 {
		w.leaked = findLeaks(wt.said.Secrets(), compared.Changes)
		w.refused = w.leaked
	}
	if w.leaked != nil {
		wt.dropCandidates(ctx) // No ref may lead to a secret; its snapshot is made without.
	}
	return nil
}

func changedText(paths []string) string {
	const shown = 5
	switch n := len(paths); {
	case n == 0:
		return "nothing changed"
	case n > shown:
		return fmt.Sprintf("changed %s and %d more", strings.Join(printables(paths[:shown]), ", "), n-shown)
	}
	return "changed " + strings.Join(printables(paths), ", ")
}

// claim is what the agent says of its step: its report, or else the way in which
// its turn ended.
func (w work) claim() report.Outcome {
	if w.report.Outcome != "" || w.turn.Ended != proc.Exited || w.turn.Failure != nil {
		return w.report.Outcome
	}
	if w.turn.Exit == 0 || w.turn.Claims {
		return report.Done
	}
	return report.Failed
}

// changedPaths lists the paths by which the candidate differs from the run's base.
// A tree that was made from a snapshot differs by more than this turn changed.
func (wt *workTree) changedPaths(ctx context.Context, changes []object.FileChange, cand object.Candidate) ([]string, error) {
	if wt.madeFrom != wt.run.BaseCommit {
		paths, err := wt.target.Repo.Changed(ctx, wt.run.BaseTree, cand.Tree)
		return slices.DeleteFunc(paths, wt.isDiscarded), err
	}
	paths := make([]string, 0, len(changes))
	for _, ch := range changes {
		paths = append(paths, ch.Path)
	}
	return paths, nil
}

// isDiscarded reports whether changes to a path are dropped.
func (wt *workTree) isDiscarded(path string) bool {
	return slices.ContainsFunc(wt.discards, func(d string) bool { return path == d || strings.HasSuffix(d, "/") && strings.HasPrefix(path, d) })
}

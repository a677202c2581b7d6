package engine

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/unprintable"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// collectFlags collects what a human should know before a candidate lands that its
// gates passed: changes of what judges it, with what the gates say when those
// files are as on the base, and classes of changes that never land by
// themselves. It fails no candidate: the scope allowed these files by name.
func (j *judge) collectFlags(ctx context.Context, w work) (flags []string, onlyJudges bool, err error) {
	for _, v := range policy.Classify(policy.ChangeSet{
		Changes: w.compared.Changes, Files: w.compared.Files, Action: policy.ActionOpenPR, Branch: "pawl/x", Main: j.baseBranch, Green: true,
	}).Never {
		flags = append(flags, fmt.Sprintf("%s: %s %s", v.Code, v.Path, v.Rule))
	}
	flags = append(flags, hiddenIn(w.compared.Changes)...)
	flags = append(flags, suspectsIn(w.compared.Changes)...)
	deciding, err := j.runEnv().Judges(ctx)
	if err != nil {
		return nil, false, err
	}
	var judges []string
	for _, ch := range w.compared.Changes {
		if policy.Judging(ch.Path) || deciding.IsProgram(ch.Path) {
			judges = append(judges, ch.Path)
		}
	}
	if len(judges) == 0 {
		return flags, false, nil
	}
	failed, err := j.withJudgesOfBase(ctx, w, judges)
	onlyJudges = len(flags)+len(failed) == 0
	return append(append(flags, "it changes what judges it: "+quoteList(judges)), failed...), onlyJudges, err
}

// hiddenIn names the lines of a change that are not what they look like. A flag
// is one line, and there is an end to them.
func hiddenIn(changes []policy.Change) (flags []string) {
	const most = 10
	for _, ch := range changes {
		for _, f := range unprintable.FindAdded(ch.Path, ch.Old.Text, ch.New.Text) {
			if len(flags) == most {
				return append(flags, "and more lines like these")
			}
			flags = append(flags, f.String())
		}
	}
	return flags
}

// suspectsIn names the lines of a change by which it could report for its tests.
func suspectsIn(changes []policy.Change) (flags []string) {
	const most, longest = 10, 100
	lines, all := policy.Suspects(changes, most)
	for _, s := range lines {
		text := []rune(strings.ToValidUTF8(s.Text, "\uFFFD"))
		if len(text) > longest {
			text = append(text[:longest], '…')
		}
		flags = append(flags, fmt.Sprintf("look at %s:%d, %s: %+q", strings.Join(printables([]string{s.Path}), ""), s.Line, s.What, string(text)))
	}
	if all > most {
		flags = append(flags, fmt.Sprintf("and %d more lines like these", all-most))
	}
	return flags
}

// withJudgesOfBase runs the gates on the candidate with its judging files as
// they are on the base, and says which of them fail there.
func (j *judge) withJudgesOfBase(ctx context.Context, w work, judges []string) (flags []string, err error) {
	var changes []object.FileChange
	for _, path := range judges {
		e, there := w.compared.Before[path]
		changes = append(changes, object.FileChange{Path: path, Mode: e.Mode, ID: e.ID, Delete: !there})
	}
	restored, err := j.target.Repo.Candidate(ctx, object.Draft{
		Base: w.candidate.Commit, Changes: changes, Message: "pawl: " + j.run.ID + " with the judging files of its base", When: j.Now(),
	})
	if err != nil {
		return nil, err
	}
	err = j.runEnv().Judge(ctx, restored.Commit, false, func(g runenv.Gate, place func() (runenv.Place, error)) (more bool, err error) {
		if g.Check().Kind != loop.GateCommand {
			return true, nil // It reads no files of the tree to find out what it checks.
		}
		at, err := place()
		if err != nil {
			return false, err
		}
		res, err := j.runEnv().RunGate(ctx, g, at, nil, io.Discard)
		if err != nil {
			return false, err
		}
		res.Name += "@base"
		res.Evidence = j.said.Hide(res.Evidence)
		it := j.current()
		it.Gates = append(it.Gates, res)
		j.run.Spent.Gates += res.Took
		if !res.Pass {
			flags = append(flags, fmt.Sprintf("%s fails with the judging files of the base", res.Name))
			j.said.Emit(loop.EventGate, res.Name+": fails, which a human decides about")
		}
		return true, nil
	})
	return flags, err
}

// findRewritable finds the gates that files of the scope can rewrite, for whoever
// decides about the proposal and for whoever asks why.
func (j *judge) findRewritable(ctx context.Context, a *judgement) error {
	judges, err := j.runEnv().Judges(ctx)
	if err != nil {
		return err
	}
	for _, r := range judges.Rewritable {
		text := strings.Join(printables([]string{r.Gate + ": " + r.String()}), "")
		a.rewritable = append(a.rewritable, text)
		a.untraced = a.untraced || len(r.Lost) > 0
		if !j.toldGates {
			j.said.Emit(loop.EventRewritable, text)
		}
	}
	j.toldGates = true
	return nil
}

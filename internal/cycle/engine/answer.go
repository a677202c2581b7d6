package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// exitMissing is the exit status of a shell for a program that is not there.
const exitMissing = 127

var beforeApproved = fault.New("engine.approved.before")

// senseAnswer takes up the step whose approval fired this run. On approval the
// runtime itself runs the bound command, in the step's own tree, and what it
// did is sensed like anything else.
func (s *sensing) senseAnswer(ctx context.Context) (*ending, error) {
	if s.firing.Approval == "" {
		return nil, nil
	}
	a, err := s.readApproval(ctx, s.firing.Approval)
	if err != nil {
		return nil, err
	}
	o := Observation{Source: "approval " + a.ID}
	switch {
	case a.Changes:
		o.Text = fmt.Sprintf("%s asks for changes to %s: %s", a.By, cmp.Or(a.Action.Branch, "the result"), a.Note)
		s.changes = &a
	case a.Action.Kind == loop.ActionQuestion && a.State == loop.ApprovalApproved:
		o.Text = fmt.Sprintf("%s was asked: %s\nand says yes: %s", a.By, firstLine(a.Action.Why), cmp.Or(a.Note, "no note"))
	case a.State == loop.ApprovalRejected:
		o.Text = fmt.Sprintf("%s said no to %q: %s", a.By, strings.Join(a.Action.Argv, " "), cmp.Or(a.Note, "no reason given"))
	case a.State == loop.ApprovalExpired:
		o.Text = fmt.Sprintf("nobody answered in time whether %q may run; it was not run", strings.Join(a.Action.Argv, " "))
	case a.State != loop.ApprovalApproved:
		return nil, fmt.Errorf("approval %s is %s: %w", a.ID, a.State, loop.ErrAnswered)
	case a.LoopID != s.run.LoopID || a.Hash != a.BindingHash() || a.Definition != s.run.Definition:
		return &ending{
			outcome: loop.OutcomeRefused, reason: loop.ReasonApproval,
			detail: "approval " + a.ID + " was given for another definition of this loop; ask again",
		}, nil
	default:
		if err := s.admitAnswer(a); err != nil {
			return notGiven(err)
		}
		var end *ending
		if o, end, err = s.runApproved(ctx, a); err != nil || end != nil {
			return end, err
		}
	}
	s.Observations = append(s.Observations, o)
	s.Nothing = ""
	return stopEnding(ctx), nil
}

// runApproved runs what the human allowed, on the tree that they were shown: the
// same words do something else in another one.
func (s *sensing) runApproved(ctx context.Context, a loop.Approval) (o Observation, end *ending, err error) {
	o.Source = "approved command"
	for _, step := range s.steps {
		if step.ID != a.StepID {
			continue
		}
		if err := s.tree.restoreSnapshot(ctx, step); err != nil {
			return o, nil, err
		}
	}
	if err := s.tree.make(ctx); err != nil {
		return o, nil, err
	}
	if s.tree.copy.From != a.Tree {
		return o, &ending{
			outcome: loop.OutcomeRefused, reason: loop.ReasonApproval,
			detail: fmt.Sprintf("approval %s was given for %q on tree %s, and the copy holds %s; ask again", a.ID, strings.Join(a.Action.Argv, " "), shortHash(a.Tree), shortHash(s.tree.copy.From)),
		}, nil
	}
	// What the command does must be found again if this process dies.
	saved := func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.Save(ctx, s.run, loop.PhaseSense)
	}
	if err := s.commitBy(ctx, loop.PhaseSense, saved); err != nil {
		return o, nil, err
	}
	if err := beforeApproved.Hit(ctx); err != nil {
		return o, nil, err
	}
	at, err := s.sensePlace(ctx, false)
	if err != nil {
		return o, nil, err
	}
	defer at.Done()
	s.target.Repo.Rest()
	tail := proc.NewRing(senseHead, senseTail)
	res, err := at.Run(ctx, proc.Spec{
		Argv: a.Action.Argv, Dir: at.Dir, Env: s.runEnv().ProgramEnv(), Stdout: tail, Stderr: tail, Timeout: s.timeWithin(s.def.MaxStepTimeout), Tag: runenv.Tag(s.run.ID),
	})
	if err != nil && cannotStart(ctx, err) {
		o.Exit, o.Text = exitMissing, fmt.Sprintf("%s said yes; %q could not be started: %s", a.By, strings.Join(a.Action.Argv, " "), s.said.Hide(err.Error()))
		return o, nil, nil
	}
	if err != nil {
		return o, nil, fmt.Errorf("run the approved command: %w", err)
	}
	o.Exit = res.Exit
	o.Text = strings.TrimSpace(fmt.Sprintf("%s said yes; %q ended with exit status %d\n%s", a.By, strings.Join(a.Action.Argv, " "), res.Exit, s.said.Hide(tail.String())))
	return o, nil, nil
}

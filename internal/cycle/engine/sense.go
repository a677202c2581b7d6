package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	lessons "github.com/pawl-run/pawl/internal/record/memory"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	senseTimeout = 10 * time.Minute
	senseHead    = 24 << 10 // bytes kept of a source's output: its beginning
	senseTail    = 8 << 10  // and its end
	gateEnds     = 4 << 10  // bytes of each of these where the source is a gate
)

// hintSource is the source of what a person tells the agent.
const hintSource = "a hint from the user"

var beforeSense = fault.New("engine.sense.before")

// sensing is what the sources of the protocol said.
type sensing struct {
	*heldRun
	tree   *workTree
	judge  *judge
	memory *memory
	Sensed
	found   string         // without the answer that the run was fired for
	news    bool           // an event has fired the run
	changes *loop.Approval // a human asks for changes of what it is about; nil: nobody does
	onPass  bool           // gates that pass on the base mean that there is nothing to do
}

// readSources looks at the protocol's sources. No token is spent here.
func (s *sensing) readSources(ctx context.Context) (*ending, error) {
	s.enterPhase(loop.PhaseSense)
	if err := beforeSense.Hit(ctx); err != nil {
		return nil, err
	}
	quiet, deciding := 0, 0
	var found []string
	if hint := s.run.Overrides.Hint; hint != "" {
		s.Observations = append(s.Observations, Observation{Source: hintSource, Text: hint})
	}
	sources := s.memory.session.Sources()
	for _, src := range sources {
		o := Observation{Source: src.Name, Text: src.Text}
		stable := ""
		var end *ending
		var err error
		switch {
		case src.Gates:
			o, stable, end, err = s.senseGates(ctx, src)
		case src.Changes:
			o.Text, err = s.senseChanges(ctx)
		case src.Memory:
			o.Text, err = s.senseMemory(ctx)
		case src.Command != "":
			o, end, err = s.senseCommand(ctx, src)
		}
		if err != nil || end != nil {
			return end, err
		}
		found = append(found, o.Source, cmp.Or(stable, fmt.Sprint(o.Exit, " ", o.Text)))
		s.Observations = append(s.Observations, o)
		if src.Quiet != QuietNever {
			deciding++
		}
		if src.Quiet == QuietOnEmpty && o.Exit == 0 && o.Text == "" || src.Quiet == QuietOnPass && o.Exit == 0 {
			quiet++
		}
	}
	if deciding > 0 && quiet == deciding {
		s.Nothing = loop.ReasonSensedNothing
	}
	if s.run.Overrides.Step != "" { // A person wants it worked again, whatever is sensed.
		s.Nothing = ""
	}
	if s.onPass = slices.ContainsFunc(sources, func(s Source) bool { return s.Gates && s.Quiet == QuietOnPass }); s.onPass && s.Nothing != "" {
		s.Because = gatesPass
	}
	s.found = strings.Join(found, "\n")
	if err := s.senseEvents(ctx); err != nil {
		return nil, err
	}
	return s.senseAnswer(ctx)
}

// senseCommand runs one source on the run's copy of the base. A program that
// fails is something sensed; one that is not there or never ends is not.
func (s *sensing) senseCommand(ctx context.Context, src Source) (Observation, *ending, error) {
	o := Observation{Source: src.Name}
	if err := s.tree.make(ctx); err != nil {
		return o, nil, err
	}
	at, err := s.sensePlace(ctx, s.tree.madeFrom == s.run.BaseCommit)
	if err != nil {
		return o, nil, err
	}
	defer at.Done()
	s.target.Repo.Rest()
	tail, limit := proc.NewRing(senseHead, senseTail), s.timeWithin(senseTimeout)
	if slices.ContainsFunc(s.def.AllGates(), func(g loop.Gate) bool { return g.Kind == loop.GateCommand && g.Check == src.Command }) {
		tail = proc.NewRing(gateEnds, gateEnds) // What it prints is told again after each attempt.
	}
	res, err := at.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", src.Command}, Dir: at.Dir, Env: s.runEnv().ProgramEnv(), Stdout: tail, Stderr: tail,
		Timeout: limit, Tag: runenv.Tag(s.run.ID),
	})
	if err != nil {
		return o, nil, fmt.Errorf("start sense command %q: %w", src.Command, err)
	}
	if end := stopEnding(ctx); end != nil {
		return o, end, nil
	}
	o.Text, o.Exit = s.said.Hide(strings.TrimSpace(tail.String())), res.Exit
	switch {
	case res.Ended == proc.TimedOut:
		return o, senseFailed(src, "it did not end within "+limit.Round(time.Second).String()), nil
	case res.Exit == 126 || res.Exit == 127:
		return o, senseFailed(src, o.Text), nil
	}
	changes, problems, err := s.tree.copy.Changes(ctx)
	if err == nil && len(changes)+len(problems) > 0 {
		err = s.tree.drop(ctx) // The agent gets a copy into which no command wrote.
	}
	return o, nil, err
}

// sensePlace is where commands work that come before any turn.
func (s *sensing) sensePlace(ctx context.Context, vouched bool) (runenv.Place, error) {
	env := s.runEnv()
	turn, err := env.OpenTurn(0)
	if err != nil {
		return runenv.Place{}, err
	}
	return env.Place(ctx, s.tree.copy, runenv.Use{Turn: turn, Vouched: vouched})
}

// senseChanges says what the snapshot of a step changes.
func (s *sensing) senseChanges(ctx context.Context) (string, error) {
	for _, step := range s.steps {
		if step.Snapshot == "" {
			continue
		}
		commit, ok, err := s.target.Repo.Ref(ctx, step.Snapshot)
		if err != nil || !ok {
			return "", err
		}
		parent, err := s.target.Repo.Parent(ctx, commit)
		if err != nil {
			return "", err
		}
		files, added, removed, err := s.target.Repo.DiffStat(ctx, parent.Commit, commit)
		if err != nil {
			return "", err
		}
		paths, err := s.target.Repo.Changed(ctx, parent.Commit, commit)
		return fmt.Sprintf("%d files changed, %d lines added, %d removed: %s", files, added, removed, quoteList(paths)), err
	}
	return "nothing is changed yet", nil
}

// mostLessons is how many entries of the memory are sensed, and of how many they are the best.
const mostLessons, lessonsToRank = 20, 1000

// senseMemory lists what is remembered that fits the goal of the loop.
func (s *sensing) senseMemory(ctx context.Context) (string, error) {
	l := s.target.Loop
	var all []loop.Memory
	err := s.Store.View(ctx, func(r *store.Reader) (err error) {
		all, err = r.Memories(ctx, store.MemoryQuery{Workspace: l.WorkspaceID, Loop: l.ID, Active: true, Limit: lessonsToRank})
		return err
	})
	fit := lessons.ForGoal(all, s.def.Goal, mostLessons)
	return cmp.Or(strings.TrimSpace(lessons.Text(fit)), "nothing is remembered that fits the goal"), err
}

func senseFailed(src Source, why string) *ending {
	return &ending{
		outcome: loop.OutcomeFailed, reason: loop.ReasonSenseFailed,
		detail: fmt.Sprintf("%s command %q: %s", src.Name, src.Command, why),
	}
}

// sensedText is the observations as they stand in the trace.
func sensedText(sensed []Observation) string {
	if len(sensed) == 0 {
		return "the loop's memory"
	}
	var b strings.Builder
	for i, o := range sensed {
		if i > 0 {
			b.WriteString("\n")
		}
		if o.Source == hintSource {
			fmt.Fprintf(&b, "%s: %s", o.Source, o.Text)
			continue
		}
		fmt.Fprintf(&b, "%s (exit %d): %s", o.Source, o.Exit, cmp.Or(o.Text, "no output"))
	}
	return b.String()
}

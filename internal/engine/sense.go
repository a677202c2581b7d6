package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/runenv"
)

const (
	senseTimeout = 10 * time.Minute
	senseHead    = 24 << 10 // bytes kept of a source's output: its beginning
	senseTail    = 8 << 10  // and its end
	gateEnds     = 4 << 10  // bytes of each of these where the source is a gate
)

var beforeSense = fault.New("engine.sense.before")

// sense looks at the protocol's sources. No token is spent here.
func (c *cycle) sense(ctx context.Context) (*ending, error) {
	c.enter(loop.PhaseSense)
	if err := beforeSense.Hit(ctx); err != nil {
		return nil, err
	}
	quiet, deciding := 0, 0
	var found []string
	sources := c.session.Sources()
	for _, src := range sources {
		o := Observation{Source: src.Name, Text: src.Text}
		stable := ""
		var end *ending
		var err error
		switch {
		case src.Gates:
			o, stable, end, err = c.senseGates(ctx, src)
		case src.Command != "":
			o, end, err = c.senseCommand(ctx, src)
		}
		if err != nil || end != nil {
			return end, err
		}
		found = append(found, o.Source, or(stable, fmt.Sprint(o.Exit, " ", o.Text)))
		c.sensed.Observations = append(c.sensed.Observations, o)
		if src.Quiet != QuietNever {
			deciding++
		}
		if src.Quiet == QuietOnEmpty && o.Exit == 0 && o.Text == "" || src.Quiet == QuietOnPass && o.Exit == 0 {
			quiet++
		}
	}
	if deciding > 0 && quiet == deciding {
		c.sensed.Nothing = loop.ReasonSensedNothing
	}
	if c.onPass = slices.ContainsFunc(sources, func(s Source) bool { return s.Gates && s.Quiet == QuietOnPass }); c.onPass && c.sensed.Nothing != "" {
		c.sensed.Because = gatesPass
	}
	c.found = strings.Join(found, "\n")
	return c.senseAnswer(ctx)
}

// senseCommand runs one source on the run's copy of the base. A program that
// fails is something sensed; one that is not there or never ends is not.
func (c *cycle) senseCommand(ctx context.Context, src Source) (Observation, *ending, error) {
	o := Observation{Source: src.Name}
	if err := c.makeTree(ctx); err != nil {
		return o, nil, err
	}
	at, err := c.sensePlace(ctx, c.treeBase == c.run.BaseCommit)
	if err != nil {
		return o, nil, err
	}
	defer at.Done()
	c.t.Repo.Rest()
	tail, limit := proc.NewRing(senseHead, senseTail), c.within(senseTimeout)
	if src.Command == c.def.Verify || src.Command == c.def.Guard {
		tail = proc.NewRing(gateEnds, gateEnds) // What it prints is told again after each attempt.
	}
	res, err := at.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", src.Command}, Dir: at.Dir, Env: c.runEnv().ProgramEnv(), Stdout: tail, Stderr: tail,
		Timeout: limit, Tag: runenv.Tag(c.run.ID),
	})
	if err != nil {
		return o, nil, fmt.Errorf("start sense command %q: %w", src.Command, err)
	}
	if end := stopped(ctx); end != nil {
		return o, end, nil
	}
	o.Text, o.Exit = c.said.Hide(strings.TrimSpace(tail.String())), res.Exit
	switch {
	case res.Ended == proc.TimedOut:
		return o, senseFailed(src, "it did not end within "+limit.Round(time.Second).String()), nil
	case res.Exit == 126 || res.Exit == 127:
		return o, senseFailed(src, o.Text), nil
	}
	return o, nil, c.cleanTree(ctx)
}

// sensePlace is where commands work that come before any turn.
func (c *cycle) sensePlace(ctx context.Context, vouched bool) (runenv.Place, error) {
	s := c.runEnv()
	turn, err := s.OpenTurn(0)
	if err != nil {
		return runenv.Place{}, err
	}
	return s.Place(ctx, c.tree, runenv.Use{Turn: turn, Vouched: vouched})
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
		fmt.Fprintf(&b, "%s (exit %d): %s", o.Source, o.Exit, or(o.Text, "no output"))
	}
	return b.String()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

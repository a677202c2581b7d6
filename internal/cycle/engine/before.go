package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Gates are run on the base before the first turn is paid: a gate that cannot start
// there would fail whatever an agent does. What they say is kept, so that it costs
// one run of each for a base tree, which the candidate is compared with afterwards.

// gatesPass is why there is nothing to do where the gates are the goal.
const gatesPass = "the gates pass on the base"

// gatesOnBase is what each gate says of the base. A failure that an earlier run saw
// is looked at again if again is set: it may have been a flaky test's, and a turn
// costs more than a suite.
func (j *judge) gatesOnBase(ctx context.Context, again bool) ([]loop.GateResult, *ending, error) {
	var results []loop.GateResult
	env, outputs := j.runEnv(), map[string]string{}
	env.Work = gate.Work{Outputs: outputs, BaseOutputs: outputs}
	for _, g := range env.Gates() {
		switch g.Check().Kind {
		case loop.GateReviewer:
			continue // It costs tokens, and has nothing to review.
		case loop.GateInvariant:
			res, err := env.RunGate(ctx, g, runenv.PlaceOf(j.run.BaseCommit), nil, io.Discard)
			if err != nil {
				return nil, nil, err
			}
			results = append(results, res)
			continue
		case loop.GateCommand:
		}
		r, known, err := j.recordOf(ctx, j.run.BaseTree, g)
		if err != nil {
			return nil, nil, err
		}
		if !known || r.Result == nil || again && r.Result.Known && !r.Result.Pass {
			if r, err = j.baseTests(ctx, g); err != nil {
				return nil, nil, err
			}
		}
		if end := stopEnding(ctx); end != nil {
			return nil, end, nil
		}
		if why, fix := gate.Obstacle(*r.Result, j.def); why != "" {
			return nil, &ending{
				outcome: loop.OutcomeFailed, reason: loop.ReasonGateStart,
				detail: fmt.Sprintf("%s cannot start on the base: %s; %s", g.Check().Name, firstLine(why), fix),
			}, nil
		}
		results = append(results, *r.Result)
		outputs[r.Result.Name] = r.Result.Evidence
	}
	return results, nil, nil
}

// senseGates tries the gates on the base. Found is what it saw without what differs
// from one run of a gate to the next.
func (s *sensing) senseGates(ctx context.Context, src Source) (o Observation, found string, end *ending, err error) {
	o.Source = src.Name
	if err := s.resolveBase(ctx); err != nil {
		return o, "", nil, err
	}
	results, end, err := s.judge.gatesOnBase(ctx, false)
	if err != nil || end != nil {
		return o, "", end, err
	}
	var texts, verdicts []string
	if len(results) == 0 {
		texts, o.Exit = []string{"the definition has no gates"}, 1
	}
	for i, res := range results {
		same := slices.IndexFunc(results[:i], func(g loop.GateResult) bool { return !g.Pass && g.Evidence == res.Evidence })
		if res.Pass {
			texts = append(texts, res.Name+" passes on the base")
		} else {
			if same >= 0 && res.Evidence != "" {
				res.Evidence = "it printed the same as " + results[same].Name
			}
			texts = append(texts, gate.Feedback(res))
			o.Exit = max(1, res.Exit)
		}
		verdicts = append(verdicts, fmt.Sprint(res.Name, " ", res.Pass, " ", res.Exit))
	}
	o.Text = strings.Join(texts, "\n")
	return o, strings.Join(verdicts, "\n"), nil, nil
}

// beforeTurn looks at the gates on the base before the first turn of a run. It
// reports false if a failure that was known has gone, and nothing is left to do.
func (s *sensing) beforeTurn(ctx context.Context, step loop.Step) (worth bool, end *ending, err error) {
	if len(s.its) > 0 || s.def.Tier == loop.TierReport && !s.onPass || step.Kind == loop.StepReply {
		return true, nil, nil
	}
	results, end, err := s.judge.gatesOnBase(ctx, s.onPass)
	if err != nil || end != nil {
		return true, end, err
	}
	if s.onPass && len(results) > 0 && !slices.ContainsFunc(results, func(g loop.GateResult) bool { return !g.Pass }) {
		s.Nothing, s.Because = loop.ReasonSensedNothing, gatesPass
		return false, nil, nil
	}
	return true, nil, nil
}

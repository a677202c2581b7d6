package api_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

var errReached = errors.New("it went past the roles")

// try asks for a verb and reports whether the role let it pass.
func try(t *testing.T, role loop.Role, v verb.Info, in any) (allowed bool, err error) {
	t.Helper()
	defer func() {
		if recover() != nil { // It reached a service that is not there.
			allowed = true
		}
	}()
	_, err = v.Do(t.Context(), verb.Call{
		By: loop.Actor{Who: "x", Role: role, From: "test"}, Say: func(verb.Progress) {}, Store: &api.Store{},
		Open: func(context.Context, bool) (verb.Workspace, error) { return nil, errReached },
	}, in)
	if errors.Is(err, loop.ErrRole) {
		f := verb.Explain(err)
		if f.Exit != loop.ExitRefused || f.Why == "" || f.Fix == "" {
			t.Errorf("%s is refused with %+v", v.Name, f)
		}
		return false, err
	}
	if err != nil && !errors.Is(err, errReached) && verb.Explain(err).Exit == loop.ExitRefused {
		return false, err
	}
	return true, err
}

// single are requests that are about one loop, or by one agent, where the empty one is about all
// or by a person.
var single = map[string]any{
	api.PauseLoops.Name: api.SwitchRequest{Loop: "a"}, api.ResumeLoops.Name: api.LoopRef{Loop: "a"},
	boards.CreateTask.Name: boards.CreateTaskRequest{By: "ada"}, boards.CommentTask.Name: boards.CommentRequest{By: "@ada"}, boards.SendMessage.Name: boards.SendRequest{From: "ada"},
}

func TestEachVerbIsTriedByEachRole(t *testing.T) {
	t.Parallel()
	for _, v := range api.Verbs() {
		in := v.Request()
		if one := single[v.Name]; one != nil {
			in = one
		}
		if allowed, err := try(t, loop.RoleAgent, v, in); allowed != (v.RefusesAgents() == "") {
			t.Errorf("an agent asks for %s: allowed %v (%v), and RefusesAgents says %q", v.Name, allowed, err, v.RefusesAgents())
		}
		if allowed, err := try(t, loop.RoleViewer, v, in); allowed && v.Writes {
			t.Errorf("a viewer asks for %s: allowed (%v)", v.Name, err)
		}
		if allowed, err := try(t, loop.RoleHuman, v, in); !allowed {
			t.Errorf("a person asks for %s: %v", v.Name, err)
		}
	}
}

// TestAttack101 and its like: what an agent asks beyond the verb.
func TestAttack101AnAgentAsksForMoreThanItMay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verb verb.Info
		in   any
	}{
		"a spec with gates of its own":      {specs.CreateSpec.Info, specs.CreateRequest{Document: "{}"}},
		"a spec with a command":             {specs.CreateSpec.Info, specs.CreateRequest{Fill: specs.Fill{Goal: "g", Agent: "a", Test: "true"}}},
		"a spec with a scope":               {specs.CreateSpec.Info, specs.CreateRequest{Fill: specs.Fill{Goal: "g", Agent: "a", Paths: []string{"/"}}}},
		"a run without confinement":         {api.StartRun.Info, runs.StartRequest{Loop: "a", Overrides: loop.Overrides{Sandbox: "none"}}},
		"a run by another program":          {api.FireRun.Info, runs.StartRequest{Loop: "a", Overrides: loop.Overrides{AgentCommand: "sh"}}},
		"a run until a command passes":      {api.StartRun.Info, runs.StartRequest{Until: "true"}},
		"the kill switch of all":            {api.PauseLoops.Info, api.SwitchRequest{}},
		"all loops again":                   {api.ResumeLoops.Info, api.LoopRef{}},
		"a task by a person":                {boards.CreateTask.Info, boards.CreateTaskRequest{Board: "b"}},
		"a message by a person":             {boards.SendMessage.Info, boards.SendRequest{To: "ada", From: "@human"}},
		"a comment by the owner":            {boards.CommentTask.Info, boards.CommentRequest{Task: "t", By: "owner"}},
		"a yes":                             {api.Approve.Info, api.AnswerRequest{Approval: "ap_1"}},
		"a landing":                         {api.Land.Info, api.LandingRequest{Run: "a#1"}},
		"more money":                        {api.SetBudget.Info, api.SetBudget.Request()},
		"another definition":                {specs.EditSpec.Info, specs.EditRequest{Spec: "lp_1234567"}},
		"the addresses that notices go to":  {api.ListChannels.Info, verb.None{}},
		"the switch of every workspace off": {api.ResumeEverywhere.Info, verb.None{}},
	} {
		allowed, err := try(t, loop.RoleAgent, c.verb, c.in)
		if allowed {
			t.Errorf("an agent gets %s (%v)", name, err)
		}
	}
	for _, in := range []any{runs.StartRequest{Loop: "a", Request: "r", Wait: true}, runs.StartRequest{Loop: "a", Overrides: loop.Overrides{MaxIterations: 1}}} {
		if allowed, err := try(t, loop.RoleAgent, api.StartRun.Info, in); !allowed {
			t.Errorf("an agent does not get %+v: %v", in, err)
		}
	}
}

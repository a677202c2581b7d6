package specs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// makefile has the target test in its third line.
const makefile = "# Of the project.\n\ntest:\n\tgrep -q two src/a.txt\n"

func (r rig) commit(name, text string) {
	r.T.Helper()
	verbtest.Write(r.T, r.Root, name, text)
	gittest.Run(r.T, r.Root, "add", "-A")
	gittest.Run(r.T, r.Root, "commit", "-q", "-m", name)
}

func (r rig) generate(req specs.GenerateRequest) specs.Generated {
	r.T.Helper()
	g, err := r.Generate(r.T.Context(), verbtest.Ann, req, nil)
	if err != nil {
		r.T.Fatal(err)
	}
	return g
}

func (r rig) remember(kind loop.MemoryKind, text string) {
	r.T.Helper()
	if _, err := r.Memories.Add(r.T.Context(), verbtest.Ann, memories.Addition{Kind: string(kind), Text: text}); err != nil {
		r.T.Fatal(err)
	}
}

func TestEachFieldOfAGeneratedSpecNamesItsSource(t *testing.T) {
	r := newRig(verbtest.New(t))
	r.commit("Makefile", makefile)
	g := r.generate(specs.GenerateRequest{Task: "Keep the tests green."})
	want := map[string]string{
		"agentId": "the only agent of the roster", "goal": "said", "loopType": "template keep-tests-green", "trigger.type": "template keep-tests-green",
		"stateSource": "template keep-tests-green", "gates[0].name": "template keep-tests-green", "gates[0].kind": "template keep-tests-green", "gates[0].check": "Makefile:3",
		"budget.maxIterations": "default", "budget.maxTokens": "default", "budget.maxWallClockMs": "default", "giveUp": "template keep-tests-green", "errorPolicy": "default",
		"guardrails[0]": "the source folders of the repository", "guardrails[1]": "template keep-tests-green", "guardrails[2]": "template keep-tests-green",
		"humanGate": "template keep-tests-green", "role": "template keep-tests-green", "concurrency": "default",
	}
	if diff := cmp.Diff(want, g.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if g.Template != "keep-tests-green" || g.Spec.AgentID != "@doer" || g.Spec.Goal != "Keep the tests green." || g.Spec.Gates[0].Check != "`make test`" || g.ID != "" {
		t.Errorf("generated %+v", g)
	}
	if list, err := r.List(t.Context(), specs.Query{Limit: 9}); err != nil || len(list) > 0 {
		t.Errorf("it was created: %v, %v", list, err)
	}

	said := r.generate(specs.GenerateRequest{Task: "Keep the tests green.", Fill: specs.Fill{Agent: "@doer", Test: "test -d src", Paths: []string{"/src"}}, Create: true})
	for path, want := range map[string]string{"agentId": "said", "gates[0].check": "said", "guardrails[0]": "said"} {
		if said.Sources[path] != want {
			t.Errorf("%s is from %s, want %s", path, said.Sources[path], want)
		}
	}
	if v := r.get(said.ID); v.Status != loopspec.StatusDraft || v.Spec.Gates[0].Check != "`test -d src`" {
		t.Errorf("created %+v", v)
	}
}

// What a gate of a run proved is better known than what a file suggests.
func TestACommandThatPassedIsTakenBeforeOneOfAFile(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, v *verbtest.Rig) {
		r := newRig(v)
		r.commit("Makefile", makefile+"lint:\n\ttrue\n")
		r.DefineLoop("tidy", verbtest.WritesTwo, "verify", "sh -c 'make test'", "guard", "make test && make lint")
		r.RunLoop(runs.StartRequest{Loop: "tidy"})
		r.remember(loop.MemoryFact, "The tests are in src.")
		g := r.generate(specs.GenerateRequest{Task: "fix the tests"})
		if g.Spec.Gates[0].Check != "`sh -c 'make test'`" || g.Sources["gates[0].check"] != "memory #1" {
			t.Errorf("gate %s from %s", g.Spec.Gates[0].Check, g.Sources["gates[0].check"])
		}
		if _, err := r.Memories.Forget(t.Context(), verbtest.Ann, "1"); err != nil {
			t.Fatal(err)
		}
		if g := r.generate(specs.GenerateRequest{Task: "fix the tests"}); g.Spec.Gates[0].Check != "`make test`" || g.Sources["gates[0].check"] != "Makefile:3" {
			t.Errorf("without it gate %s from %s", g.Spec.Gates[0].Check, g.Sources["gates[0].check"])
		}
		debt := r.generate(specs.GenerateRequest{Task: "get rid of the lint findings"})
		for path, want := range map[string]string{"gates[0].check": "Makefile:3", "gates[1].check": "Makefile:5", "stateSource": "Makefile:5", "gates[2].check": "template lint-debt"} {
			if debt.Sources[path] != want {
				t.Errorf("%s is from %s, want %s", path, debt.Sources[path], want)
			}
		}
	})
}

func TestWhatGenerateRefusesCreatesNothing(t *testing.T) {
	r := newRig(verbtest.New(t))
	for name, c := range map[string]struct {
		req   specs.GenerateRequest
		exit  int
		words string
	}{
		"no task":                     {specs.GenerateRequest{}, loop.ExitUsage, "--task"},
		"a command that nobody knows": {specs.GenerateRequest{Task: "keep the tests green"}, loop.ExitUsage, "say it with --test COMMAND"},
		"a coverage command":          {specs.GenerateRequest{Task: "raise the coverage", Fill: specs.Fill{Test: "true"}}, loop.ExitUsage, "--coverage COMMAND"},
		"an unknown template":         {specs.GenerateRequest{Task: "x", Template: "keep-green"}, loop.ExitNotFound, "keep-tests-green"},
		"an agent and a template":     {specs.GenerateRequest{Task: "x", Template: "skeleton", By: "@doer"}, loop.ExitUsage, "leave out"},
		"an unknown agent":            {specs.GenerateRequest{Task: "x", Fill: specs.Fill{Agent: "@who"}}, loop.ExitUnreadable, "agentId"},
		"an unknown writer":           {specs.GenerateRequest{Task: "x", By: "@who"}, loop.ExitMissing, "who"},
		"a program that is not there": {specs.GenerateRequest{Task: "tests", Fill: specs.Fill{Test: "no-such-program -v"}}, loop.ExitUnreadable, "gates[0].check"},
		"a gate that cannot start":    {specs.GenerateRequest{Task: "tests", Fill: specs.Fill{Test: "sh -c 'no-such-program -v'"}}, loop.ExitUnreadable, "its gate tests_pass, which is from 'said', cannot start"},
	} {
		c.req.Create = true
		_, err := r.Generate(t.Context(), verbtest.Ann, c.req, nil)
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || f.Exit != c.exit || !strings.Contains(f.Error()+f.Advice().String(), c.words) {
			t.Errorf("%s: %v, want exit %d with %q", name, err, c.exit, c.words)
		}
	}
	if list, err := r.List(t.Context(), specs.Query{Limit: 9}); err != nil || len(list) > 0 {
		t.Errorf("created %v, %v", list, err)
	}
}

func TestTheGatesAreTriedOnTheBaseBeforeASpecIsShown(t *testing.T) {
	r := newRig(verbtest.New(t))
	verbtest.Write(t, r.Root, "src/a.txt", "two\n") // Not committed: it is not of the base.
	g := r.generate(specs.GenerateRequest{Task: "keep the tests green", Fill: specs.Fill{Test: "seq 20; grep two src/a.txt", TypeCheck: "test -d src"}})
	want := []specs.Try{
		{Gate: "tests_pass", Kind: loop.GateCommand, Exit: 1, Output: "13\n14\n15\n16\n17\n18\n19\n20"},
		{Gate: "typecheck", Kind: loop.GateCommand, Pass: true},
	}
	if diff := cmp.Diff(want, g.Tried); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
	if g := r.generate(specs.GenerateRequest{Task: "Write a poem."}); g.Template != loopspec.Skeleton || len(g.Tried) > 0 {
		t.Errorf("generated %+v", g)
	}
}

// writes makes an agent of the roster that answers with a text.
func (r rig) writes(answer string) (by string) {
	r.T.Helper()
	r.saveAgent("writer", "printf %s "+loop.QuoteWord(answer))
	return "@writer"
}

// written is a spec as an agent writes it.
func written(change func(*loopspec.Spec)) string {
	s := loopspec.Spec{
		AgentID: "@boss", Goal: "src/a.txt says two.", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "test output",
		Gates: []loop.Gate{
			{Name: "tests_pass", Kind: loop.GateCommand, Check: "`make test`"},
			{Name: "readable", Kind: loop.GateReviewer, Check: "A stranger understands it."},
		},
		Guardrails: []string{"edits limited to /src"}, GiveUp: "same gate 2×", HumanGate: "propose a branch, do not merge",
	}.WithDefaults()
	if change != nil {
		change(&s)
	}
	return string(loopspec.Encode(s))
}

func TestAnAgentWritesTheSpecInARunOfItsOwn(t *testing.T) {
	r := newRig(verbtest.New(t))
	r.commit("Makefile", makefile)
	r.remember(loop.MemoryPitfall, "DATA the tests want a clean tree")
	by := r.writes("```json\n" + written(nil) + "```\n")
	prompt := ""
	g, err := r.Generate(t.Context(), verbtest.Ann, specs.GenerateRequest{Task: "Make the tests say two.", By: by, Fill: specs.Fill{Agent: "@doer"}}, func(e loop.Event) {
		if e.Kind == loop.EventPrompt {
			prompt = e.Text
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if g.Reason != "" || g.By != "@writer" || g.Run != "spec-generate#1" || g.Spec.AgentID != "@doer" || g.Spec.Goal != "src/a.txt says two." {
		t.Errorf("generated %+v", g)
	}
	for path, want := range map[string]string{
		"agentId": "said", "goal": "@writer", "gates[0].check": "Makefile:3", "gates[1].check": "@writer", "stateSource": "@writer", "guardrails[0]": "the source folders of the repository", "giveUp": "@writer",
		"budget.maxTokens": "default", "humanGate": "@writer",
	} {
		if g.Sources[path] != want {
			t.Errorf("%s is from %q, want %s", path, g.Sources[path], want)
		}
	}
	if len(g.Tried) != 1 || g.Tried[0].Pass {
		t.Errorf("tried %+v", g.Tried)
	}
	for _, want := range []string{
		"Make the tests say two.", "same gate fails [N×] with no diff", "make test   (Makefile:3)", "[1] DATA the tests want a clean tree (pitfall, ", "Template keep-tests-green",
		"It cannot be used here: no memory and no file has its test command or its coverage command", "@doer",
	} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, prompt)
		}
	}
	v, err := r.Runs.Show(t.Context(), "spec-generate")
	if err != nil || v.Outcome != loop.OutcomeReported || len(v.Turns) != 1 || v.Turns[0].Purpose != loop.PurposeGenerate {
		t.Errorf("the run is %+v, %v", v, err)
	}
}

func TestWhatAnAgentWroteIsNotUsedUnlessItIsASpecOfKnownCommands(t *testing.T) {
	for name, c := range map[string]struct{ answer, reason, words string }{
		"words":                      {"Here it is:\n" + written(nil), loopspec.ParseFailed, "not JSON"},
		"nothing":                    {"", loopspec.ParseFailed, "not JSON"},
		"a phrase of its own":        {written(func(s *loopspec.Spec) { s.GiveUp = "never" }), loopspec.SchemaFailed, "giveUp"},
		"a command of its own":       {written(func(s *loopspec.Spec) { s.Gates[0].Check = "`grep -q . src/a.txt`" }), loopspec.SchemaFailed, "no memory and no file has 'grep -q . src/a.txt'"},
		"a command with an addition": {written(func(s *loopspec.Spec) { s.Gates[0].Check = "`make test || true`" }), loopspec.SchemaFailed, "no memory and no file has"},
		"a trigger that is a command": {
			written(func(s *loopspec.Spec) {
				s.Trigger = loopspec.Trigger{Type: loopspec.TriggerEvent, On: "cmd:touch /tmp/x"}
			}), loopspec.SchemaFailed, "trigger.on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(verbtest.New(t))
			r.commit("Makefile", makefile)
			by := r.writes(c.answer)
			g := r.generate(specs.GenerateRequest{Task: "Make the tests say two.", By: by, Fill: specs.Fill{Agent: "@doer"}})
			if g.Reason != c.reason || len(g.Why) == 0 || !strings.Contains(g.Why[0].String(), c.words) {
				t.Errorf("reason %s, %v; want %s with %q", g.Reason, g.Why, c.reason, c.words)
			}
			if g.Template != loopspec.Skeleton || g.Spec.Gates[0].Name != "goal_met" || g.Spec.Goal != "Make the tests say two." || g.Sources["stateSource"] != "template skeleton" {
				t.Errorf("instead of it %+v", g)
			}
		})
	}
}

func TestTheReasonOfAnAgentThatDoesNotAnswerIsThatOfItsRun(t *testing.T) {
	r := newRig(verbtest.New(t))
	r.saveAgent("broken", "echo no; exit 3")
	g := r.generate(specs.GenerateRequest{Task: "Say two.", By: "broken", Fill: specs.Fill{Agent: "@doer"}})
	if g.Reason != string(loop.ReasonAgentExit) || g.Run != "spec-generate#1" || g.Template != loopspec.Skeleton || len(g.Why) != 1 {
		t.Errorf("generated %+v", g)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.saveAgent("slow", "sleep 100")
	_, err := r.Generate(ctx, verbtest.Ann, specs.GenerateRequest{Task: "Say two.", By: "slow", Fill: specs.Fill{Agent: "@doer"}}, func(e loop.Event) {
		if e.Kind == loop.EventPrompt {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted one: %v", err)
	}
}

// A person who runs the loop by its name has no task for it.
func TestTheLoopOfGenerationsIsNotRunByItsName(t *testing.T) {
	r := newRig(verbtest.New(t))
	by := r.writes(written(nil))
	r.generate(specs.GenerateRequest{Task: "Say two.", By: by, Fill: specs.Fill{Agent: "@doer"}})
	if v := r.RunLoop(runs.StartRequest{Loop: "spec-generate", Overrides: loop.Overrides{Sandbox: "none"}}); v.Outcome != loop.OutcomeQuiet || v.Reason != loop.ReasonAllDropped || len(v.Turns) > 0 {
		t.Errorf("run = %s %s %q", v.Outcome, v.Reason, v.Detail)
	}
	_, err := r.Runs.Again(t.Context(), "spec-generate#1", "")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitRefused || !strings.Contains(f.Advice().String(), "pawl spec generate --task 'Say two.' --by writer") {
		t.Errorf("once more: %v", err)
	}
}

func TestAGeneratedSpecIsOneThatCreateTakes(t *testing.T) {
	r := newRig(verbtest.New(t))
	r.commit("Makefile", makefile)
	g := r.generate(specs.GenerateRequest{Task: "Keep the tests green."})
	v, err := r.Create(t.Context(), verbtest.Ann, specs.CreateRequest{Document: string(loopspec.Encode(g.Spec)), File: "spec.json"})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := json.Marshal(g); err != nil || !strings.Contains(string(body), `"gates[0].check":"Makefile:3"`) || v.Status != loopspec.StatusDraft {
		t.Errorf("%s, %v", body, err)
	}
}

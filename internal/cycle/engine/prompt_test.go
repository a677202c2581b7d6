package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// prompted is a run in its first iteration, with everything that a prompt
// shows.
func prompted() (*cycle, loop.Step, Brief) {
	c := unstarted(loop.Definition{
		Name: "fix", Tier: loop.TierAssisted, Goal: "keep the build green", Scope: []string{"src/**", "docs/**"}, MaxIterations: 3,
	})
	c.target.Loop.Name = "fix"
	c.run = loop.Run{ID: "run_1", N: 1, Request: "mind the docs", By: loop.Actor{Who: "ann", Role: loop.RoleHuman}}
	c.its = []loop.Iteration{{N: 1}}
	c.sensed.Observations = []Observation{{Source: "sense", Text: "2 tests fail", Exit: 1}}
	step := loop.Step{ID: "st_1", Title: "red build", Attempts: 2, Feedback: "verify says no"}
	brief := Brief{
		Goal: envelope.Plain("keep the build green"), Role: "You are careful.", Rules: []string{"Hand over instead of doing: secrets"}, Task: envelope.Plain("make the build green again"),
		Memory: []Block{{Label: "STATE.md", Text: "# fix — STATE\n"}, {Label: "nothing", Text: " \n"}},
	}
	return c, step, brief
}

// stable is the part of a prompt that caches hold.
func stable(t *testing.T, prompt string) string {
	t.Helper()
	prefix, _, found := strings.Cut(prompt, "\n# This step\n")
	if !found {
		t.Fatalf("no step in\n%s", prompt)
	}
	return prefix
}

func TestAPromptSaysEverythingInOrder(t *testing.T) {
	c, step, brief := prompted()
	got := c.agent.promptFor(step, brief, c.sensed.Observations, "")
	at := 0
	for _, part := range []string{
		"# Goal\nkeep the build green\n", "# Role\nYou are careful.\n", "# Rules\n", "src/**, docs/**", "- Hand over instead of doing: secrets\n",
		"# How to work and report\n", "PAWL_REPORT", "# This step\nmake the build green again\n",
		"# What the user asks for in this run\nmind the docs\n", "## Sensed by sense, exit status 1\n<<DATA ", "2 tests fail\nDATA ",
		"## STATE.md\n<<DATA ", "## The last attempt ended so; do it differently", "verify says no\nDATA ", "# Limits\niteration 1 of 3 of this run\n",
	} {
		found := strings.Index(got[at:], part)
		if found < 0 {
			t.Fatalf("%q is missing, or too early, in\n%s", part, got)
		}
		at += found
	}
	if strings.Contains(got, "## nothing") {
		t.Errorf("a block of nothing is shown:\n%s", got)
	}
}

func TestWhatAGatePrintedStandsOnceInAPrompt(t *testing.T) {
	c, step, brief := prompted()
	var failure strings.Builder
	for n := range 8 {
		fmt.Fprintf(&failure, "src/a_test.go:%d: the total is wrong\n", n)
	}
	text := failure.String()
	c.sensed.Observations[0].Text = strings.Repeat(text, 100)
	brief.Memory = append(brief.Memory, Block{Label: "The run before this one", Text: "run #1 ended failed: verify failed:\n" + text})
	step.Feedback = "verify failed with exit status 1:\n" + text + "}\nFAIL 0.2s"
	got := c.agent.promptFor(step, brief, c.sensed.Observations, "")
	if n := strings.Count(got, "src/a_test.go:7:"); n != 1 {
		t.Errorf("a failure stands %d times in\n%.4000s", n, got)
	}
	for _, part := range []string{
		"[left out because they are above: 792 lines]\n", "verify failed:\n[left out because they are above: 8 lines]\nDATA",
		"exit status 1:\n[left out because they are above: 8 lines]\n}\nFAIL 0.2s\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%.4000s", part, got)
		}
	}
}

func TestWhatIsNotThereIsNotSaid(t *testing.T) {
	c, step, brief := prompted()
	c.run.Request, c.sensed.Sensed, step.Feedback, brief.Role, brief.Task, brief.Memory = "", Sensed{}, "", "", envelope.Field{}, nil
	got := c.agent.promptFor(step, brief, c.sensed.Observations, "")
	for _, part := range []string{"# Role", "What the user asks", "<<DATA " + c.agent.delimiter(), "The last attempt", "tokens left"} {
		if strings.Contains(got, part) {
			t.Errorf("%q is in\n%s", part, got)
		}
	}
	if !strings.Contains(got, "# This step\nred build\n") {
		t.Errorf("the title does not stand in for the task:\n%s", got)
	}
}

func TestWhatVariesStandsBehindWhatDoesNot(t *testing.T) {
	c, step, brief := prompted()
	want := stable(t, c.agent.promptFor(step, brief, c.sensed.Observations, ""))
	for name, change := range map[string]func(){
		"another run":       func() { c.run.ID, c.run.N = "run_2", 2 },
		"another request":   func() { c.run.Request = "" },
		"another iteration": func() { c.its = append(c.its, loop.Iteration{N: 2}) },
		"another step":      func() { step, brief.Task = loop.Step{Title: "x", Feedback: "y"}, envelope.Plain("z") },
		"another sight":     func() { c.sensed.Sensed = Sensed{Observations: []Observation{{Source: "diff", Text: "x"}}} },
		"another memory":    func() { brief.Memory = []Block{{Label: "a", Text: "b"}} },
		"tokens were used":  func() { c.run.Usage.Output = 5 },
	} {
		change()
		if got := stable(t, c.agent.promptFor(step, brief, c.sensed.Observations, "")); got != want {
			t.Errorf("%s changes the beginning from\n%s\nto\n%s", name, want, got)
		}
	}
}

func TestAReportingLoopIsToldToChangeNothing(t *testing.T) {
	c, step, brief := prompted()
	c.def.Tier = loop.TierReport
	got := c.agent.promptFor(step, brief, c.sensed.Observations, "")
	if !strings.Contains(got, "Change no files") || strings.Contains(got, "src/**") {
		t.Errorf("prompt:\n%s", got)
	}
}

func TestTheBudgetThatIsLeftIsSaidAndNeverNegative(t *testing.T) {
	c, step, brief := prompted()
	c.def.BudgetTokens = 100
	for used, want := range map[int64]string{0: "; 100 output tokens left\n", 60: "; 40 output tokens left\n", 100: "; 0 output tokens left\n", 999: "; 0 output tokens left\n"} {
		c.run.Usage.Output = used
		if got := c.agent.promptFor(step, brief, c.sensed.Observations, ""); !strings.HasSuffix(got, want) {
			t.Errorf("%d used: …%q, want %q", used, got[len(got)-60:], want)
		}
	}
}

func TestEachRunHasADelimiterOfItsOwn(t *testing.T) {
	words := map[string]string{}
	for n := range 100 {
		c := unstarted(loop.Definition{})
		c.run.ID = fmt.Sprintf("run_%d", n)
		word := c.agent.delimiter()
		if other, taken := words[word]; taken || len(word) != 12 {
			t.Errorf("%s and %s have the word %q", other, c.run.ID, word)
		}
		words[word] = c.run.ID
		if c.agent.delimiter() != word {
			t.Error("the word changes within the run")
		}
	}
}

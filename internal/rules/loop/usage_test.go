package loop_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// usages draws usages of real size: sums of three never overflow.
var usages = rapid.Custom(func(t *rapid.T) loop.Usage {
	tokens := rapid.Int64Range(0, 1<<50)
	return loop.Usage{
		Input:      tokens.Draw(t, "input"),
		Output:     tokens.Draw(t, "output"),
		CacheRead:  tokens.Draw(t, "cache read"),
		CacheWrite: tokens.Draw(t, "cache write"),
		Source: rapid.SampledFrom([]loop.UsageSource{
			"", loop.UsageMetered, loop.UsageReported, loop.UsageEstimated,
		}).Draw(t, "source"),
	}
})

func TestUsageAddsUpInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := usages.Draw(t, "a"), usages.Draw(t, "b"), usages.Draw(t, "c")
		if got, want := a.Add(b), b.Add(a); got != want {
			t.Fatalf("a+b = %+v, b+a = %+v", got, want)
		}
		if got, want := a.Add(b).Add(c), a.Add(b.Add(c)); got != want {
			t.Fatalf("(a+b)+c = %+v, a+(b+c) = %+v", got, want)
		}
		if got := a.Add(loop.Usage{}); got != a {
			t.Fatalf("a+0 = %+v, want %+v", got, a)
		}
		if got, want := a.Add(b).ChargedTokens(), a.ChargedTokens()+b.ChargedTokens(); got != want {
			t.Fatalf("charged for a+b = %d, want %d", got, want)
		}
	})
}

func TestASumIsAsExactAsItsLeastExactPart(t *testing.T) {
	order := []loop.UsageSource{"", loop.UsageMetered, loop.UsageReported, loop.UsageEstimated}
	for i, a := range order {
		for j, b := range order {
			sum := loop.Usage{Source: a}.Add(loop.Usage{Source: b})
			if want := order[max(i, j)]; sum.Source != want {
				t.Errorf("%q + %q = %q, want %q", a, b, sum.Source, want)
			}
		}
	}
}

func TestReadingTheCacheIsNotCharged(t *testing.T) {
	u := loop.Usage{Input: 1, Output: 10, CacheWrite: 100, CacheRead: 1000}
	if got := u.ChargedTokens(); got != 111 {
		t.Errorf("charged %d tokens, want 111", got)
	}
}

func TestOverheadIsWhatNeitherAgentNorGatesUsed(t *testing.T) {
	cases := map[string]struct {
		spent loop.Spent
		want  time.Duration
	}{
		"nothing":                       {loop.Spent{}, 0},
		"agent and gates one by one":    {loop.Spent{Total: 10, Agent: 5, Gates: 3}, 2},
		"gates that ran beside another": {loop.Spent{Total: 10, Agent: 5, Gates: 9}, 0},
	}
	for name, c := range cases {
		if got := c.spent.Overhead(); got != c.want {
			t.Errorf("%s: overhead = %v, want %v", name, got, c.want)
		}
	}
}

func TestAnApprovalIsBoundToEverythingThatItAllows(t *testing.T) {
	asked := loop.Approval{
		LoopID: "lp_1", RunID: "r1", StepID: "s1", Tree: "t1", Definition: "d1",
		Action: loop.Action{Kind: "land", Argv: []string{"a b"}, Why: "green"},
	}
	other := map[string]func(*loop.Approval){
		"loop":       func(a *loop.Approval) { a.LoopID += "x" },
		"run":        func(a *loop.Approval) { a.RunID += "x" },
		"step":       func(a *loop.Approval) { a.StepID += "x" },
		"tree":       func(a *loop.Approval) { a.Tree += "x" },
		"definition": func(a *loop.Approval) { a.Definition += "x" },
		"kind":       func(a *loop.Approval) { a.Action.Kind = "push" },
		"arguments":  func(a *loop.Approval) { a.Action.Argv = []string{"a", "b"} },
	}
	for name, change := range other {
		changed := asked
		change(&changed)
		if changed.BindingHash() == asked.BindingHash() {
			t.Errorf("another %s has the same binding", name)
		}
	}
	answered := asked
	answered.State, answered.By = loop.ApprovalApproved, "ada"
	if answered.BindingHash() != asked.BindingHash() {
		t.Error("the answer changes what it is bound to")
	}
}

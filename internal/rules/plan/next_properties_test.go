package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// snapshots draws small worlds in which every rule applies to something often.
var snapshots = rapid.Custom(func(t *rapid.T) plan.Snapshot {
	few := rapid.IntRange(0, 3)
	s := plan.Snapshot{
		Rules: plan.Rules{
			MaxIterations: few.Draw(t, "max iterations") + 1, MaxItems: few.Draw(t, "max items") + 1, MaxWallClock: time.Hour,
			BudgetTokens: rapid.Int64Range(0, 3).Draw(t, "budget"), GiveUp: after(3), RetryBlockedAfter: rapid.Int64Range(1, 4).Draw(t, "retry"),
			OnBlocked: rapid.SampledFrom([]string{"log_and_skip", "escalate", "retry_next_cycle", "halt"}).Draw(t, "on blocked"),
		},
		Run: rapid.Int64Range(1, 8).Draw(t, "run"), RunID: "run_7", Settled: map[string]bool{},
		Iterations: few.Draw(t, "iterations"), Items: few.Draw(t, "items"), Output: rapid.Int64Range(0, 3).Draw(t, "output"),
		Started: noon.Add(-time.Duration(rapid.IntRange(0, 70).Draw(t, "minutes")) * time.Minute),
		Nothing: rapid.SampledFrom([]loop.Reason{"", "", "", loop.ReasonSensedNothing}).Draw(t, "nothing"),
	}
	for i := range rapid.IntRange(0, 7).Draw(t, "candidates") {
		key := string(rune('a' + i))
		s.Candidates = append(s.Candidates, plan.Candidate{
			Step: loop.Step{
				Key: key, Title: key, Attempts: few.Draw(t, "attempts"), BlockedAt: rapid.Int64Range(0, 8).Draw(t, "blocked at"),
				Kind: rapid.SampledFrom([]loop.StepKind{loop.StepWork, loop.StepReply}).Draw(t, "kind"),
				State: rapid.SampledFrom([]loop.StepState{
					loop.StepOpen, loop.StepOpen, loop.StepClaimed, loop.StepBlocked, loop.StepFailed, loop.StepWaiting, loop.StepEscalated,
					loop.StepDone, loop.StepDropped, "odd",
				}).Draw(t, "state"),
				RunID:  rapid.SampledFrom([]string{"run_7", "run_6"}).Draw(t, "claimed by"),
				Inputs: rapid.SampledFrom([]string{"", "same"}).Draw(t, "settled with"),
			},
			Inputs:   rapid.SampledFrom([]string{"same", "changed"}).Draw(t, "inputs"),
			Drop:     rapid.SampledFrom([]loop.Reason{"", "", "", loop.ReasonNotEligible}).Draw(t, "drop"),
			Answered: rapid.Bool().Draw(t, "answered"),
			Proposed: rapid.SampledFrom([]string{"", "", "", "pawl/x/1 has no answer yet"}).Draw(t, "proposed"),
		})
		if rapid.IntRange(0, 5).Draw(t, "settled") == 0 {
			s.Settled[key] = true
		}
	}
	return s
})

// mayBeWorkedOn is the rule of eligibility, written down a second time.
func mayBeWorkedOn(s plan.Snapshot, c plan.Candidate) bool {
	wait := s.Rules.RetryBlockedAfter
	if s.Rules.OnBlocked == "retry_next_cycle" {
		wait = 1
	}
	state := map[loop.StepState]bool{
		loop.StepOpen: true, loop.StepFailed: true, loop.StepClaimed: c.Step.RunID == s.RunID, loop.StepWaiting: c.Answered,
		loop.StepBlocked: s.Run-c.Step.BlockedAt >= wait,
		loop.StepDone:    c.Step.Inputs == "same" && c.Inputs == "changed", loop.StepEscalated: c.Step.Inputs == "same" && c.Inputs == "changed",
	}
	return s.Nothing == "" && c.Drop == "" && c.Proposed == "" && !s.Settled[c.Step.Key] && state[c.Step.State]
}

func mayGoOn(s plan.Snapshot) bool {
	return s.Items < s.Rules.MaxItems && s.Iterations < s.Rules.MaxIterations && noon.Before(s.Started.Add(s.Rules.MaxWallClock)) &&
		(s.Rules.BudgetTokens == 0 || s.Output < s.Rules.BudgetTokens)
}

func class(c plan.Candidate) int {
	return 2*map[loop.StepKind]int{loop.StepWork: 1}[c.Step.Kind] + map[loop.StepState]int{loop.StepFailed: 1}[c.Step.State]
}

func TestTheChoiceIsTheFirstOfTheEligibleByRankAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots.Draw(t, "snapshot")
		var want string
		best := 4
		for _, c := range s.Candidates {
			if mayGoOn(s) && mayBeWorkedOn(s, c) && class(c) < best {
				want, best = c.Step.Key, class(c)
			}
		}
		d := plan.Next(s, noon)
		if got := chosen(d); got != want {
			t.Fatalf("chosen %q, want %q: %+v", got, want, d.Considered)
		}
	})
}

func TestEveryCandidateIsConsideredOnceAndAtMostOneIsChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots.Draw(t, "snapshot")
		d := plan.Next(s, noon)
		left := map[string]bool{}
		for _, c := range s.Candidates {
			left[c.Step.Key] = true
		}
		for _, c := range d.Considered {
			if !left[c.Key] {
				t.Fatalf("%s is considered twice, or is not a candidate", c.Key)
			}
			delete(left, c.Key)
			if !slices.Contains(nextReasons, c.Reason) {
				t.Errorf("%s: reason %q is none of the codes", c.Key, c.Reason)
			}
			if is := c.Key == chosen(d); c.Chosen != is || (c.Reason == loop.ReasonChosen) != is {
				t.Errorf("%s: chosen %v with reason %s, and %q is the choice", c.Key, c.Chosen, c.Reason, chosen(d))
			}
		}
		if len(left) > 0 {
			t.Errorf("not considered: %v", slices.Collect(maps.Keys(left)))
		}
		if (d.Reason == loop.ReasonChosen) != (d.Choice != nil) {
			t.Errorf("reason %s with choice %+v", d.Reason, d.Choice)
		}
	})
}

func TestTheSameSnapshotAlwaysGivesTheSameDecisionAndIsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots.Draw(t, "snapshot")
		before := s
		before.Candidates, before.Settled = slices.Clone(s.Candidates), maps.Clone(s.Settled)
		first, second := plan.Next(s, noon), plan.Next(s, noon)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("two decisions (-first +second):\n%s", diff)
		}
		if diff := cmp.Diff(before, s); diff != "" {
			t.Fatalf("the snapshot changed (-before +after):\n%s", diff)
		}
	})
}

func TestWhatCannotBeWorkedOnNeverChangesTheChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots.Draw(t, "snapshot")
		var eligible, others []plan.Candidate
		for _, c := range s.Candidates {
			if mayBeWorkedOn(s, c) {
				eligible = append(eligible, c)
			} else {
				others = append(others, c)
			}
		}
		want := chosen(plan.Next(s, noon))
		moved := eligible
		for _, c := range rapid.Permutation(others).Draw(t, "others") {
			moved = slices.Insert(slices.Clone(moved), rapid.IntRange(0, len(moved)).Draw(t, "at"), c)
		}
		for name, list := range map[string][]plan.Candidate{"elsewhere": moved, "gone": eligible} {
			s.Candidates = list
			if got := chosen(plan.Next(s, noon)); got != want {
				t.Fatalf("with what cannot be worked on %s, %q is chosen instead of %q", name, got, want)
			}
		}
	})
}

package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func TestEachThresholdHasOneRecipient(t *testing.T) {
	member := plan.Chain{Agent: "dev", ReportsTo: "lead", Escalation: "sage", Chief: "chief", Owner: "ann"}
	lead := plan.Chain{Agent: "lead", ReportsTo: "chief", Chief: "chief"}
	chief := plan.Chain{Agent: "chief", Chief: "chief"}
	step := func(trouble plan.Trouble, times int, has ...string) plan.Case {
		return plan.Case{Trouble: trouble, Step: "step-3", Times: times, Has: has}
	}
	critical := func(c plan.Case) plan.Case {
		c.Critical = true
		return c
	}
	many := func(trouble plan.Trouble, times int, has ...string) plan.Case {
		return plan.Case{Trouble: trouble, Times: times, Has: has}
	}
	for name, c := range map[string]struct {
		in     plan.Case
		chain  plan.Chain
		to     string
		reason loop.Reason
	}{
		"a step is blocked for the first time":            {step(plan.TroubleBlocked, 1), member, "", ""},
		"for the second time":                             {step(plan.TroubleBlocked, 2), member, "", ""},
		"for the third time":                              {step(plan.TroubleBlocked, 3), member, "lead", loop.ReasonEscalateRepeated},
		"the same failed for the third time":              {step(plan.TroubleFailed, 3), member, "lead", loop.ReasonEscalateRepeated},
		"once more":                                       {step(plan.TroubleBlocked, 4, "lead"), member, "sage", loop.ReasonEscalateRepeated},
		"once more, without an escalation":                {step(plan.TroubleFailed, 4, "lead"), plan.Chain{Agent: "dev", ReportsTo: "lead", Chief: "chief"}, "chief", loop.ReasonEscalateRepeated},
		"and once more":                                   {step(plan.TroubleBlocked, 5, "lead", "sage"), member, "ann", loop.ReasonEscalateRepeated},
		"and again, and everybody has it":                 {step(plan.TroubleBlocked, 6, "lead", "sage", "ann"), member, "", ""},
		"the threshold is another":                        {plan.Case{Trouble: plan.TroubleFailed, Step: "step-3", Times: 1, MaxRetries: 1}, member, "lead", loop.ReasonEscalateRepeated},
		"the threshold is not reached":                    {plan.Case{Trouble: plan.TroubleFailed, Step: "step-3", Times: 3, MaxRetries: 4}, member, "", ""},
		"one who has it is skipped":                       {step(plan.TroubleBlocked, 4, "chief"), lead, "owner", loop.ReasonEscalateRepeated},
		"the agent itself is skipped":                     {step(plan.TroubleBlocked, 3), chief, "owner", loop.ReasonEscalateRepeated},
		"nobody is above the owner":                       {step(plan.TroubleBlocked, 3, "owner"), lead, "", ""},
		"a critical step is blocked":                      {critical(step(plan.TroubleBlocked, 1)), member, "chief", loop.ReasonEscalateCritical},
		"a critical one is blocked for the third time":    {critical(step(plan.TroubleBlocked, 3, "chief")), member, "", ""},
		"a critical one once more":                        {critical(step(plan.TroubleBlocked, 4, "chief")), member, "sage", loop.ReasonEscalateRepeated},
		"a step that has become critical":                 {critical(step(plan.TroubleBlocked, 2)), member, "chief", loop.ReasonEscalateCritical},
		"a critical step of the chief":                    {critical(step(plan.TroubleBlocked, 1)), chief, "owner", loop.ReasonEscalateCritical},
		"a critical step fails":                           {critical(step(plan.TroubleFailed, 1)), member, "ann", loop.ReasonEscalateCritical},
		"a critical step fails again":                     {critical(step(plan.TroubleFailed, 2, "ann")), member, "", ""},
		"a critical step was blocked, and fails":          {critical(step(plan.TroubleFailed, 2, "chief")), member, "ann", loop.ReasonEscalateCritical},
		"all steps are blocked":                           {many(plan.TroubleAllBlocked, 0), member, "ann", loop.ReasonEscalateBlocked},
		"all steps are still blocked":                     {many(plan.TroubleAllBlocked, 0, "ann"), member, "", ""},
		"two cycles in a row failed":                      {many(plan.TroubleFailedCycles, 2), member, "", ""},
		"three cycles in a row failed":                    {many(plan.TroubleFailedCycles, 3), member, "ann", loop.ReasonEscalateCycles},
		"four cycles in a row failed":                     {many(plan.TroubleFailedCycles, 4, "ann"), member, "", ""},
		"four cycles in a row were idle":                  {many(plan.TroubleIdle, 4), member, "", ""},
		"five cycles in a row were idle":                  {many(plan.TroubleIdle, 5), member, "chief", loop.ReasonEscalateIdle},
		"five more were idle":                             {many(plan.TroubleIdle, 5, "chief"), member, "chief", loop.ReasonEscalateIdle},
		"five of the chief were idle":                     {many(plan.TroubleIdle, 5), chief, "owner", loop.ReasonEscalateIdle},
		"nine entries wait":                               {many(plan.TroubleInbox, 9), member, "", ""},
		"ten entries wait":                                {many(plan.TroubleInbox, 10), member, "lead", loop.ReasonEscalateInbox},
		"eleven entries wait, and the superior knows":     {many(plan.TroubleInbox, 11, "lead"), member, "", ""},
		"ten entries wait, and the agent has no superior": {many(plan.TroubleInbox, 10), plan.Chain{Agent: "dev", Chief: "chief"}, "chief", loop.ReasonEscalateInbox},
	} {
		got, ok := plan.Escalate(c.in, c.chain)
		if got.To != c.to || got.Reason != c.reason || ok != (c.to != "") || got.Reset != (c.in.Trouble == plan.TroubleIdle && ok) {
			t.Errorf("%s: %+v, want %s for %s", name, got, c.to, c.reason)
		}
	}
}

func TestAnEscalationHasItsCaseInWords(t *testing.T) {
	chain := plan.Chain{Agent: "dev", ReportsTo: "lead", Chief: "chief"}
	evidence := plan.Evidence{RunID: "run_1", Words: "no key", Outputs: []string{"401"}}
	for want, c := range map[string]plan.Case{
		"step-3 was blocked 3 times in a row: no key": {Trouble: plan.TroubleBlocked, Step: "step-3", Times: 3, Evidence: evidence},
		"step-3 failed 3 times in a row: no key":      {Trouble: plan.TroubleFailed, Step: "step-3", Times: 3, Evidence: evidence},
		"step-3 is critical, and it failed: no key":   {Trouble: plan.TroubleFailed, Step: "step-3", Times: 1, Critical: true, Evidence: evidence},
		"3 cycles in a row failed: no key":            {Trouble: plan.TroubleFailedCycles, Times: 3, Evidence: evidence},
		"12 entries wait in the inbox":                {Trouble: plan.TroubleInbox, Times: 12},
		"5 cycles in a row had nothing to do":         {Trouble: plan.TroubleIdle, Times: 5},
		"all steps are blocked":                       {Trouble: plan.TroubleAllBlocked},
	} {
		got, _ := plan.Escalate(c, chain)
		if got.Detail != want || got.RunID != c.RunID || !slices.Equal(got.Outputs, c.Outputs) || got.Reason.Sentence() == "" {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestNobodyGetsACaseTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "dev", "lead", "chief", "sage", "owner"})
		chain := plan.Chain{Agent: rapid.SampledFrom([]string{"dev", "lead", "chief"}).Draw(t, "agent"), ReportsTo: name.Draw(t, "reports_to"), Escalation: name.Draw(t, "escalation"), Chief: name.Draw(t, "chief")}
		most := rapid.IntRange(1, 4).Draw(t, "max retries")
		critical := rapid.Bool().Draw(t, "critical")
		var has []string
		times := 0
		for range rapid.IntRange(1, 25).Draw(t, "cycles") {
			trouble := rapid.SampledFrom([]plan.Trouble{plan.TroubleBlocked, plan.TroubleFailed, "done"}).Draw(t, "outcome")
			if trouble == "done" {
				has, times = nil, 0
				continue
			}
			times++
			got, ok := plan.Escalate(plan.Case{Trouble: trouble, Step: "step-1", Critical: critical, Times: times, MaxRetries: most, Has: has}, chain)
			ownerHadIt := slices.Contains(has, "owner")
			switch {
			case ok && (got.To == "" || got.To == chain.Agent || slices.Contains(has, got.To)):
				t.Fatalf("%q is told, and these have it: %v", got.To, has)
			case ok && !critical && times < most:
				t.Fatalf("%s is told after %d times", got.To, times)
			case ok && ownerHadIt:
				t.Fatalf("%s is told after the owner", got.To)
			case ok:
				has = append(has, got.To)
			}
			if len(has) > 3 {
				t.Fatalf("more than three have it: %v", has)
			}
			if (times >= most+2 || critical && trouble == plan.TroubleFailed) && !slices.Contains(has, "owner") {
				t.Fatalf("after %d times the owner does not have it: %v", times, has)
			}
			if !critical && times >= most && len(has) == 0 {
				t.Fatalf("after %d times nobody has it", times)
			}
		}
	})
}

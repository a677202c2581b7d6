package spine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// summary is how run 58 ended, with these iterations.
func summary(outcome loop.Outcome, its ...loop.Iteration) engine.Summary {
	for i := range its {
		its[i].RunID, its[i].N = "run_58", i+1
	}
	return engine.Summary{
		Run: loop.Run{
			ID: "run_58", N: 58, Outcome: outcome, Readiness: 70,
			Usage: loop.Usage{Input: 100, Output: 20, CacheWrite: 3, CacheRead: 1000},
		},
		Iterations: its, Now: noon,
	}
}

func iteration(step string, verdict loop.Verdict, reported string) loop.Iteration {
	return loop.Iteration{Step: step, Verdict: verdict, Report: reported, Tree: "tree of " + step, Changed: []string{"a.txt"}}
}

func TestEveryOutcomeLeavesOneLineAndANewHeader(t *testing.T) {
	for _, m := range loop.Meanings {
		t.Run(string(m.Outcome), func(t *testing.T) {
			s := withState(t, golden, nil)
			changes := s.Close(summary(m.Outcome, iteration("something else", loop.VerdictFail, "")))
			var lines []loop.Change
			for _, ch := range changes[1:] {
				if ch.Kind == loop.ChangeAppend {
					lines = append(lines, ch)
				}
			}
			if m.Action == "" {
				if len(lines) > 0 {
					t.Errorf("a line for %s: %+v", m.Outcome, lines)
				}
				return
			}
			edit := changes[0]
			want := strings.Replace(golden, "2026-09-03T08:20:00Z · run #57 · readiness 95/100", "2026-09-03T12:00:00Z · run #58 · readiness 70/100", 1)
			if diff := cmp.Diff(loop.Change{Kind: loop.ChangeEdit, Path: statePath, Before: golden, Content: want}, edit); diff != "" {
				t.Errorf("edit (-want +got):\n%s", diff)
			}
			if len(lines) != 1 || strings.ContainsAny(lines[0].Content, "\r\n") || lines[0].Path != logPath || lines[0].Before != runlog.Header("ci-watch") {
				t.Fatalf("lines = %+v, want one for %s", lines, logPath)
			}
			entries, bad := runlog.Parse(lines[0].Before + lines[0].Content + "\n")
			entry := []runlog.Entry{{At: noon, Run: 58, Action: m.Action, Outcome: m.Log, Tokens: 123}}
			if diff := cmp.Diff(entry, entries); diff != "" || len(bad) > 0 {
				t.Errorf("entry (-want +got), bad %v:\n%s", bad, diff)
			}
		})
	}
}

func TestARunWhoseMemoryCannotBeOpenedLeavesItsLineAlone(t *testing.T) {
	for _, m := range loop.Meanings {
		t.Run(string(m.Outcome), func(t *testing.T) {
			sum := summary(m.Outcome, iteration("something", loop.VerdictFail, ""))
			var want []loop.Change
			for _, ch := range withState(t, golden, nil).Close(sum) {
				if ch.Kind == loop.ChangeAppend {
					want = append(want, ch)
				}
			}
			if diff := cmp.Diff(want, Protocol{}.CloseUnopened(seen(nil, nil), sum)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			unreadable := seen(nil, func(v *engine.View) {
				v.Files = memory{broken: map[string]error{logPath: errors.New("input/output error")}}
			})
			if changes := (Protocol{}).CloseUnopened(unreadable, sum); changes != nil {
				t.Errorf("a log that cannot be read is to be changed: %+v", changes)
			}
		})
	}
}

func TestTheLineNamesWhatTheRunWasAbout(t *testing.T) {
	for name, c := range map[string]struct {
		run  loop.Run
		want string
	}{
		"nothing":                                {loop.Run{}, ""},
		"what the agent named":                   {loop.Run{Cause: loop.Cause{Item: "pr=31"}}, "pr=31"},
		"the branch that it proposed":            {loop.Run{Branch: "pawl/ci-watch/58", Commit: "abc"}, "branch=pawl/ci-watch/58"},
		"what the agent named, and not a branch": {loop.Run{Cause: loop.Cause{Item: "pr=31"}, Branch: "pawl/ci-watch/58", Commit: "abc"}, "pr=31"},
		"no branch that was not made":            {loop.Run{Branch: "pawl/ci-watch/58"}, ""},
		"no matter what the agent named":         {loop.Run{Cause: loop.Cause{Item: "x\n2026-09-03T12:00:00Z  run#99  action=landed  -  outcome=landed  tokens=0"}}, "x\n2026-09-03T12:00:00Z  run#99  action=landed  -  outcome=landed  tokens=0"},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.N, c.run.Outcome = 58, loop.OutcomeProposed
			changes := withState(t, golden, nil).Close(engine.Summary{Run: c.run, Now: noon})
			entries, bad := runlog.Parse(changes[len(changes)-1].Content + "\n")
			if len(entries) != 1 || len(bad) > 0 || entries[0].Subject != c.want || entries[0].Run != 58 {
				t.Errorf("entries = %+v, bad %v; want one of run 58 about %q", entries, bad, c.want)
			}
		})
	}
}

func TestWhereAnItemStandsAfterItsRun(t *testing.T) {
	branch := loop.Effect{Kind: effect.KindPropose, State: loop.EffectDone, Args: map[string]string{effect.ArgTree: "tree of one"}}
	lost := branch
	lost.State = loop.EffectFailed
	pass, fail := loop.VerdictPass, loop.VerdictFail
	for name, c := range map[string]struct {
		outcome loop.Outcome
		verdict loop.Verdict
		effects []loop.Effect
		row     loop.StepState // of the item, as a session reads it that did not see the run
		want    Section
	}{
		"proposed: a human looks at it":         {loop.OutcomeProposed, pass, []loop.Effect{branch}, "", SectionWatch},
		"reported: a human looks at it":         {loop.OutcomeReported, pass, nil, "", SectionWatch},
		"landed":                                {loop.OutcomeLanded, pass, nil, "", SectionWatch},
		"done: nobody has to":                   {loop.OutcomeDone, pass, nil, "", SectionNoise},
		"quiet":                                 {loop.OutcomeQuiet, fail, nil, loop.StepOpen, SectionPriority},
		"failed: it goes on":                    {loop.OutcomeFailed, fail, nil, loop.StepFailed, SectionPriority},
		"blocked: it waits":                     {loop.OutcomeBlocked, fail, nil, loop.StepBlocked, SectionPriority},
		"escalated: a human has it":             {loop.OutcomeEscalated, fail, nil, loop.StepEscalated, SectionWatch},
		"given up: a human has it":              {loop.OutcomeGaveUp, fail, nil, loop.StepEscalated, SectionWatch},
		"waiting for an answer":                 {loop.OutcomeWaiting, loop.VerdictPending, nil, loop.StepWaiting, SectionPriority},
		"refused":                               {loop.OutcomeRefused, fail, nil, loop.StepFailed, SectionPriority},
		"out of budget":                         {loop.OutcomeBudget, fail, nil, loop.StepFailed, SectionPriority},
		"interrupted":                           {loop.OutcomeInterrupted, loop.VerdictIntended, nil, loop.StepOpen, SectionPriority},
		"passed, but the branch was not made":   {loop.OutcomeFailed, pass, []loop.Effect{lost}, loop.StepOpen, SectionPriority},
		"proposed, and then refused":            {loop.OutcomeRefused, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"proposed, and then waiting":            {loop.OutcomeWaiting, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"proposed, and then interrupted":        {loop.OutcomeInterrupted, pass, []loop.Effect{branch}, loop.StepDone, SectionWatch},
		"given up in a run that had proposed":   {loop.OutcomeProposed, fail, nil, loop.StepEscalated, SectionWatch},
		"escalated in a run that was done":      {loop.OutcomeDone, fail, nil, loop.StepEscalated, SectionWatch},
		"failed in a run that had proposed":     {loop.OutcomeProposed, fail, nil, loop.StepFailed, SectionPriority},
		"interrupted after a human put it back": {loop.OutcomeInterrupted, loop.VerdictIntended, nil, loop.StepOpen, SectionPriority},
	} {
		t.Run(name, func(t *testing.T) {
			row := loop.Step{ID: "st_1", Key: "one", Title: "One", State: c.row}
			text := strings.Replace(listing("zero\n[P1] One <!-- mine -->", "w", "n"), "mine -->\n", "mine -->\n  see the wiki\n", 1)
			s := withState(t, text, func(v *engine.View) { v.Steps = []loop.Step{row} })
			sum := summary(c.outcome, iteration("One", c.verdict, ""))
			sum.Iterations[0].Tree, sum.Effects = "tree of one", c.effects
			sum.Iterations[0].Feedback = "no key\nat all"
			edit := s.Close(sum)[0]
			after := parse(t, edit.Content)
			for _, section := range sections {
				held := false
				for _, it := range after.Items(section) {
					held = held || it.Key == "one"
				}
				if held != (section == c.want) {
					t.Errorf("it stands in %s: %v, want it in %s", section, held, c.want)
				}
			}
			noted := strings.Contains(edit.Content, "  see the wiki\n  - escalated in run #58: no key\n")
			if escalated := c.row == loop.StepEscalated; noted != escalated {
				t.Errorf("a line says why: %v, want %v:\n%s", noted, escalated, edit.Content)
			}
			for _, kept := range []string{"Mind the gap.\n", "- [P1] One <!-- mine -->\n  see the wiki\n", "- zero\n", "- w\n", "- n\n", "_Source: cron_\n"} {
				if !strings.Contains(edit.Content, kept) {
					t.Errorf("%q is gone:\n%s", kept, edit.Content)
				}
			}
		})
	}
}

func TestARunThatWorkedOnNothingAndEscalatesSaysWhy(t *testing.T) {
	sum := summary(loop.OutcomeEscalated)
	sum.Run.Detail = "pawl/ci-watch/57 and main changed the same lines: a.txt"
	edit := withState(t, golden, nil).Close(sum)[0]
	if want := "- Run #58 escalated: " + sum.Run.Detail + "\n"; !strings.Contains(edit.Content, want) {
		t.Errorf("%q is missing in\n%s", want, edit.Content)
	}
}

// worked takes a session through an iteration as a run does.
func worked(s *session, title string, left loop.StepState) {
	step := loop.Step{Key: ItemKey(title), Title: title, State: loop.StepClaimed}
	_, _, _ = s.Begin(plan.Choice{Step: step})
	if left == "" {
		return // It died before it had a verdict.
	}
	step.State = left
	s.Record(engine.Result{Settlement: plan.Settlement{Step: step}})
}

func TestAnItemIsGivenUpAlsoInARunThatProposedAnother(t *testing.T) {
	s := withState(t, listing("one\ntwo", "", ""), func(v *engine.View) {
		v.Steps = []loop.Step{{Key: "two", Title: "two", State: loop.StepFailed, Tried: loop.Tried{Back: 2}}}
	})
	worked(s, "one", loop.StepDone)
	worked(s, "two", loop.StepEscalated)
	edit := s.Close(summary(loop.OutcomeProposed, iteration("one", loop.VerdictPass, ""), iteration("two", loop.VerdictFail, "")))[0]
	if diff := cmp.Diff([3][]string{nil, {"one", "two"}, nil}, lists(parse(t, edit.Content))); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestAnItemThatAHumanPutBackStaysWhenItsRunIsInterrupted(t *testing.T) {
	s := withState(t, listing("one", "", ""), func(v *engine.View) { v.Steps = []loop.Step{{Key: "one", State: loop.StepEscalated}} })
	worked(s, "one", "")
	edit := s.Close(summary(loop.OutcomeInterrupted, iteration("one", loop.VerdictIntended, "")))[0]
	if got := lists(parse(t, edit.Content)); len(got[0]) != 1 {
		t.Errorf("lists = %v, want it in Priority", got)
	}
}

func TestTheAgentsListsAreAdopted(t *testing.T) {
	state := listing("[P2] one <!-- mine -->\n[P1] two", "three", "four")
	for name, c := range map[string]struct {
		reports []string
		want    [3][]string
		has     string // text that is in the file afterwards
	}{
		"no report":                  {[]string{""}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"a report without lists":     {[]string{`{"outcome":"done"}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, ""},
		"a report nobody can read":   {[]string{`{"state":{"priority":[]}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, ""},
		"a list that is not named":   {[]string{`{"state":{"watch":["new"]}}`}, [3][]string{{"one", "two"}, {"new"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"a list that is null":        {[]string{`{"state":{"priority":null,"watch":null,"noise":["new"]}}`}, [3][]string{{"one", "two"}, {"three"}, {"new"}}, ""},
		"a list that is empty":       {[]string{`{"state":{"priority":[]}}`}, [3][]string{nil, {"three"}, {"four"}}, "## Priority\n- (none yet)\n"},
		"all lists empty":            {[]string{`{"state":{"priority":[],"watch":[],"noise":[]}}`}, [3][]string{}, "Mind the gap.\n"},
		"an item changes its tag":    {[]string{`{"state":{"priority":["[P1] ONE","two"]}}`}, [3][]string{{"one", "two"}, {"three"}, {"four"}}, "- [P1] one <!-- mine -->\n"},
		"an item changes its list":   {[]string{`{"state":{"priority":["two"],"watch":["three","one"]}}`}, [3][]string{{"two"}, {"three", "one"}, {"four"}}, "- [P2] one <!-- mine -->\n"},
		"findings go to Watch":       {[]string{`{"items":["five","THREE","[P1] six"]}`}, [3][]string{{"one", "two"}, {"three", "five", "six"}, {"four"}}, "- [P1] six\n"},
		"findings beside lists":      {[]string{`{"items":["five"],"state":{"noise":[]}}`}, [3][]string{{"one", "two"}, {"three"}, nil}, ""},
		"one report after the other": {[]string{`{"state":{"watch":["new"]}}`, `{"items":["newer"]}`}, [3][]string{{"one", "two"}, {"new", "newer"}, {"four"}}, ""},
		"text that plays tricks": {
			[]string{`{"state":{"watch":["a\n## Noise\n- b","<!-- c","---"]}}`}, [3][]string{{"one", "two"}, {"a ## Noise - b", "<! -- c", "---"}, {"four"}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var its []loop.Iteration
			for _, r := range c.reports {
				its = append(its, iteration("another", loop.VerdictFail, r))
			}
			edit := withState(t, state, nil).Close(summary(loop.OutcomeFailed, its...))[0]
			if diff := cmp.Diff(c.want, lists(parse(t, edit.Content))); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
			if !strings.Contains(edit.Content, c.has) {
				t.Errorf("%q is not in\n%s", c.has, edit.Content)
			}
		})
	}
}

func TestTheAgentsListsGoBeforeTheUsualMoves(t *testing.T) {
	its := []loop.Iteration{iteration("one", loop.VerdictPass, `{"outcome":"done","state":{"priority":["two"],"noise":["one"]}}`)}
	edit := withState(t, listing("one\ntwo", "", ""), nil).Close(summary(loop.OutcomeProposed, its...))[0]
	if diff := cmp.Diff([3][]string{{"two"}, nil, {"one"}}, lists(parse(t, edit.Content))); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestRowsOfItemsThatStandNowhereAreDropped(t *testing.T) {
	var known []loop.Step
	for _, state := range []loop.StepState{
		loop.StepOpen, loop.StepClaimed, loop.StepBlocked, loop.StepFailed, loop.StepWaiting, loop.StepEscalated, loop.StepDone,
	} {
		known = append(known, loop.Step{Key: "gone " + string(state), Title: "x", State: state})
	}
	known = append(known,
		loop.Step{Key: "prio", State: loop.StepFailed}, loop.Step{Key: "watched", State: loop.StepEscalated}, loop.Step{Key: "noisy", State: loop.StepDone},
		loop.Step{Key: goalKey, State: loop.StepDone}, loop.Step{Key: requestKey + "x", State: loop.StepOpen},
		loop.Step{Key: "worked on", State: loop.StepOpen},
	)
	s := withState(t, listing("Prio", "Watched", "Noisy"), func(v *engine.View) { v.Steps = known })
	dropped := map[string]bool{}
	for _, ch := range s.Close(summary(loop.OutcomeFailed, iteration("Worked on", loop.VerdictFail, ""))) {
		if ch.Kind != loop.ChangeStep {
			continue
		}
		if ch.Step.State != loop.StepDropped || ch.Path != "" {
			t.Errorf("change = %+v, want a dropped row", ch)
		}
		dropped[ch.Step.Key] = true
	}
	want := map[string]bool{}
	for _, row := range known {
		if strings.HasPrefix(row.Key, "gone ") && row.State != loop.StepClaimed {
			want[row.Key] = true
		}
	}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	for _, row := range s.v.Steps {
		if row.State == loop.StepDropped {
			t.Errorf("the view was changed: %+v", row)
		}
	}
}

// TestASessionThatSawNothingOfTheRunGivesTheSameAccount is what recovery rests
// on: another process opens the memory again and closes it.
func TestASessionThatSawNothingOfTheRunGivesTheSameAccount(t *testing.T) {
	reports := []string{
		"", `{"outcome":"done","items":["five"]}`, `{"state":{"priority":["two","[P1] six"],"watch":[]}}`, `{"state":{"noise":["one"]}}`, "no report",
	}
	ends := map[loop.Verdict][]loop.StepState{
		loop.VerdictPass: {loop.StepDone}, loop.VerdictPending: {loop.StepWaiting}, loop.VerdictIntended: {""},
		loop.VerdictFail: {loop.StepOpen, loop.StepBlocked, loop.StepFailed, loop.StepEscalated},
	}
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{statePath: rapid.SampledFrom([]string{
			golden, handEdited, listing("one\n[P1] two", "three", "four"), listing("", "two", ""), listing("two", "one", "one"),
		}).Draw(t, "state")}
		before := []loop.Step{
			{ID: "st_2", Key: "two", Title: "two", State: rapid.SampledFrom([]loop.StepState{loop.StepOpen, loop.StepEscalated, loop.StepDone}).Draw(t, "row")},
			{ID: "st_7", Key: "seven", Title: "seven", State: loop.StepFailed},
		}
		saw := opened(t, seen(files, func(v *engine.View) { v.Steps = before }))
		after := map[string]loop.Step{}
		for _, row := range before {
			after[row.Key] = row
		}
		var its []loop.Iteration
		var effects []loop.Effect
		for _, title := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"one", "two", "keep the build green"}), 0, 3, rapid.ID[string]).Draw(t, "steps") {
			verdict := rapid.SampledFrom([]loop.Verdict{loop.VerdictPass, loop.VerdictFail, loop.VerdictPending, loop.VerdictIntended}).Draw(t, "verdict")
			left := rapid.SampledFrom(ends[verdict]).Draw(t, "left")
			worked(saw, title, left)
			row := loop.Step{ID: "st_" + title, Key: ItemKey(title), Title: title, State: left}
			if left == "" {
				row.State = loop.StepClaimed // The run holds it still.
			}
			after[row.Key] = row
			it := iteration(title, verdict, rapid.SampledFrom(reports).Draw(t, "report"))
			if verdict == loop.VerdictPass {
				effects = append(effects, loop.Effect{
					Kind: effect.KindPropose, State: loop.EffectDone, Args: map[string]string{effect.ArgTree: it.Tree},
				})
			}
			its = append(its, it)
		}
		outcomes := []loop.Outcome{}
		for _, m := range loop.Meanings {
			outcomes = append(outcomes, m.Outcome)
		}
		sum := summary(rapid.SampledFrom(outcomes).Draw(t, "outcome"), its...)
		sum.Effects = effects
		later := opened(t, seen(files, func(v *engine.View) {
			for _, key := range []string{"one", "two", "seven", "keep the build green"} {
				if row, ok := after[key]; ok {
					v.Steps = append(v.Steps, row)
				}
			}
			v.Now = noon.Add(time.Hour)
		}))
		if diff := cmp.Diff(byPath(saw.Close(sum)), byPath(later.Close(sum))); diff != "" {
			t.Fatalf("%s: changes (-saw it +did not):\n%s", sum.Run.Outcome, diff)
		}
	})
}

// byPath is the file changes of a list, and the keys of the rows that go.
func byPath(changes []loop.Change) map[string]string {
	all := map[string]string{}
	for _, ch := range changes {
		if ch.Kind == loop.ChangeStep {
			all["row "+ch.Step.Key] = string(ch.Step.State)
			continue
		}
		all[fmt.Sprintf("%s %s", ch.Kind, ch.Path)] = fmt.Sprintf("%s %s", ch.Before, ch.Content)
	}
	return all
}

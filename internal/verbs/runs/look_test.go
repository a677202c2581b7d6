package runs_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func first(v any) any {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return list[0]
	}
	return nil
}

func TestARunPrintsWithExactlyTheKeysThatScriptsRelyOn(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo, "verify", "grep -q two src/a.txt")
	v := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	if v.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %q", v.Outcome, v.Detail)
	}
	o := verbtest.JSONObject(t, v)
	iteration := first(o["iterations"])
	it, _ := iteration.(map[string]any)
	for name, c := range map[string]struct {
		got  any
		want []string
	}{
		"a run": {o, strings.Fields("agent approval approval_state base branch commit cost_usd definition detail ended id iterations loop ms n outcome overrides " +
			"phase protocol readiness reason sandbox schema snapshot started state summary tokens trigger turns")},
		"an iteration": {iteration, strings.Fields("acted changed considered decided feedback gates ms n reason sensed step tokens tree verdict")},
		"a gate":       {first(it["gates"]), strings.Fields("evidence exit kind ms name pass")},
		"tokens":       {o["tokens"], strings.Fields("cache_read cache_write input output source")},
		"time":         {o["ms"], strings.Fields("agent gates overhead total")},
	} {
		if got, want := verbtest.KeysOf(c.got), strings.Join(c.want, " "); got != want {
			t.Errorf("%s has the keys\n%s, want\n%s", name, got, want)
		}
	}
	if o["schema"] != "pawl.run/v1" || o["loop"] != "tidy" || o["n"] != 1.0 || o["state"] != "ended" || o["sandbox"] != "none" || o["cost_usd"] != nil {
		t.Errorf("run = %v", o)
	}
	m := v.MS
	if math.Abs(m.Overhead-(m.Total-m.Agent-m.Gates)) > 1e-6 || m.Agent <= 0 || m.Gates <= 0 || m.Overhead <= 0 {
		t.Errorf("ms = %+v, want overhead to be total without agent and gates", m)
	}
	if v.Tokens.Source != loop.UsageEstimated || v.Tokens.Input == 0 || v.Iterations[0].Tokens == 0 {
		t.Errorf("tokens = %+v, want an estimate that is marked and not zero", v.Tokens)
	}
	if diff := cmp.Diff([]string{"src/a.txt"}, v.Iterations[0].Changed); diff != "" {
		t.Error(diff)
	}
}

func TestListsPrintAsListsAlsoWhenTheyAreEmpty(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	v := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	it, _ := first(verbtest.JSONObject(t, v)["iterations"]).(map[string]any)
	if it == nil {
		t.Fatalf("run %s has no iteration", v.Outcome)
	}
	for _, key := range []string{"changed", "considered", "gates"} {
		if _, ok := it[key].([]any); !ok {
			t.Errorf("%s = %v, want a list", key, it[key])
		}
	}
	// A goal that is met needs no iteration.
	r.RecordMet("u")
	if v, err := r.Runs.Show(t.Context(), "u"); err != nil || verbtest.JSONObject(t, v)["iterations"] == nil {
		t.Errorf("iterations = %v, %v", v.Iterations, err)
	}
}

func TestARunThatNobodyCarriesOnIsSeenAsDeadOrLostAndGetsNoMoreEvents(t *testing.T) {
	r := verbtest.New(t)
	elsewhere := loop.Holder{PID: 1, Host: "far", Boot: "another"}
	for name, c := range map[string]struct {
		by    loop.Holder
		state string
		more  bool
	}{
		"dead": {r.DeadHolder(), "dead", false}, "held elsewhere": {elsewhere, "running", true}, "lost": {elsewhere, "lost", false}, "busy": {r.Self, "running", true}, "due": {loop.Holder{}, "queued", true},
	} {
		run := r.InsertRun(name, c.by)
		if name == "lost" {
			r.EditStore(`UPDATE runs SET lease_until_ms = 1 WHERE id = '` + run.ID + `'`)
		}
		if v, err := r.Runs.Show(t.Context(), run.ID); err != nil || v.State != c.state {
			t.Errorf("%s is %s, %v, want %s", name, v.State, err, c.state)
		}
		if _, more, err := r.Runs.Events(t.Context(), run.ID, 0, 10); err != nil || more != c.more {
			t.Errorf("%s can get more: %v, %v, want %v", name, more, err, c.more)
		}
	}
}

func TestEventsComeInPagesAndTheLastSaysThatItIs(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone)
	id := r.RunLoop(runs.StartRequest{Loop: "tidy"}).ID
	all, more, err := r.Runs.Events(t.Context(), id, 0, 10_000)
	if err != nil || more || len(all) < 5 {
		t.Fatalf("%d events, more %v, %v", len(all), more, err)
	}
	for _, size := range []int{1, 2, len(all) - 1, len(all), len(all) + 1} {
		var paged []loop.Event
		var after int64
		for {
			page, more, err := r.Runs.Events(t.Context(), id, after, size)
			if err != nil || len(page) > size {
				t.Fatalf("page of %d = %d events, %v", size, len(page), err)
			}
			paged = append(paged, page...)
			if !more {
				break
			}
			if len(page) == 0 {
				t.Fatalf("pages of %d never end", size)
			}
			after = page[len(page)-1].Seq
		}
		if diff := cmp.Diff(all, paged); diff != "" {
			t.Errorf("pages of %d (-all +paged):\n%s", size, diff)
		}
	}
	if _, _, err := r.Runs.Events(t.Context(), "run_none", 0, 10); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("events of no run = %v", err)
	}
}

// A run may ask for its own trace, and would wait for its own end.
func TestALiveRunIsShownWithTheCallsThatItHasMade(t *testing.T) {
	r := verbtest.New(t)
	run := r.InsertRun("busy", r.Self)
	const calls = 501 // More than are read at once.
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		rt, err := tx.Enter(t.Context(), run, loop.PhaseAct)
		if err != nil {
			return err
		}
		var events []loop.Event
		for n := range calls {
			events = append(events, loop.Event{Seq: int64(n + 1), Phase: loop.PhaseAct, Kind: loop.EventPawlTool, Text: "loop_trace: ok"})
		}
		return rt.AppendEvents(t.Context(), events)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if v, err := r.Runs.Show(ctx, run.ID); err != nil || len(v.Calls) != calls {
		t.Errorf("%d calls, %v; want %d", len(v.Calls), err, calls)
	}
}

// decides needs a second iteration, because the first does not pass.
const decides = `n=two; grep -q "lacks three" "$PAWL_PROMPT" && n=three; echo $n >src/a.txt; printf '{"outcome":"done"}' >"$PAWL_REPORT"`

func TestWhyTellsEveryDecisionAndEveryAttempt(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("fix", decides, "verify", "grep -q three src/a.txt || { echo a.txt lacks three; exit 7; }")
	v := r.RunLoop(runs.StartRequest{Loop: "fix"})
	w, err := r.Runs.Why(t.Context(), "fix#1")
	if err != nil {
		t.Fatal(err)
	}
	if w.Schema != "pawl.why/v1" || w.Run != "fix#1" || w.ID != v.ID || w.Outcome != loop.OutcomeProposed || w.Exit != 0 {
		t.Errorf("why = %+v", w)
	}
	if len(w.Attempts) != 2 || w.Attempts[0].Verdict != loop.VerdictFail || w.Attempts[0].Reason != loop.ReasonGateFailed ||
		!strings.Contains(w.Attempts[0].Feedback, "a.txt lacks three") || w.Attempts[1].Verdict != loop.VerdictPass {
		t.Errorf("attempts = %+v", w.Attempts)
	}
	if len(w.Decisions) < 2 {
		t.Fatalf("decisions = %+v, want one for each iteration", w.Decisions)
	}
	for i, d := range w.Decisions {
		if d.N != i+1 || len(d.Considered) == 0 {
			t.Errorf("decision %d = %+v, want its candidates", i+1, d)
		}
		for _, c := range d.Considered {
			if c.Reason == "" || c.Step == "" || c.Chosen != (c.Reason == loop.ReasonChosen) {
				t.Errorf("decision %d: %+v, want the step, and the rule for it", d.N, c)
			}
		}
	}
	if want := "look at it: pawl diff fix#1; land it: pawl approve fix#1"; w.Next != want {
		t.Errorf("next = %q, want %q", w.Next, want)
	}
	o := verbtest.JSONObject(t, w)
	if got, want := verbtest.KeysOf(o), "actions attempts decisions detail exit id next outcome reason run schema state"; got != want {
		t.Errorf("keys = %s, want %s", got, want)
	}
}

func TestWhyTellsEachCallThatNoBudgetPaysForOnce(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("fix", decides, "verify", "true")
	v := r.RunLoop(runs.StartRequest{Loop: "fix"})
	const refused = `the run has a budget in money and the model "nobodys-model" has no price`
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		l, err := tx.Number(t.Context(), r.Workspace.ID, v.Protocol, v.Loop)
		if err != nil {
			return err
		}
		run, err := tx.FireClaimed(t.Context(), loop.Run{ID: "run_refused", LoopID: l.ID, N: l.LastN, Key: "k", Trigger: "manual"}, loop.Holder{PID: 1, Host: "a", Start: 7})
		if err != nil {
			return err
		}
		rt, err := tx.Enter(t.Context(), run, loop.PhaseAct)
		if err != nil {
			return err
		}
		return rt.AppendEvents(t.Context(), []loop.Event{
			{Seq: 1, Phase: loop.PhaseAct, Kind: loop.EventRefused, Text: refused},
			{Seq: 2, Phase: loop.PhaseAct, Kind: loop.EventNote, Text: "another"},
			{Seq: 3, Phase: loop.PhaseAct, Kind: loop.EventRefused, Text: refused},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Runs.Why(t.Context(), "run_refused")
	if diff := cmp.Diff([]string{refused}, w.Refused); err != nil || diff != "" {
		t.Errorf("%v, refused (-want +got):\n%s", err, diff)
	}
}

func TestWhyOfARunThatDecidedNothingHasEmptyLists(t *testing.T) {
	r := verbtest.New(t)
	r.RecordMet("u")
	w, err := r.Runs.Why(t.Context(), "u")
	if err != nil || w.Decisions == nil || w.Attempts == nil || len(w.Attempts) != 0 || w.Next != "" || w.Outcome != loop.OutcomeQuiet {
		t.Errorf("why = %+v, %v", w, err)
	}
	_, err = r.Runs.Why(t.Context(), "u#9")
	verbtest.WantFault(t, err, loop.ExitNotFound, "there is no run u#9", "", "pawl runs")
}

func TestNextIsWhatAPersonCanDo(t *testing.T) {
	const base = "0123456789abcdef0123"
	land := loop.PawlCommand("land", "tidy#2")
	pull := land.WithFlag("pr")
	for name, c := range map[string]struct {
		view runs.View
		want string
	}{
		"its process died": {runs.View{State: "dead"}, "`pawl recover` concludes it and keeps its work, as every command does that writes"},
		"its node is lost": {runs.View{State: "lost"}, "`pawl recover` ends it, as every command does that writes; its work is kept where it is"},
		"a proposal":       {runs.View{Outcome: loop.OutcomeProposed, Base: base, Branch: "pawl/tidy/3"}, "look at it: git diff 0123456789ab pawl/tidy/3; take it: git merge pawl/tidy/3"},
		"a proposal with a question": {
			runs.View{Outcome: loop.OutcomeProposed, Branch: "pawl/tidy/3", Approval: "ap_1", Answer: loop.ApprovalOpen},
			"look at it: pawl diff tidy#3; land it: pawl approve tidy#3",
		},
		"a proposal whose question was answered": {
			runs.View{Outcome: loop.OutcomeProposed, Approval: "ap_1", Answer: loop.ApprovalVoid}, "its question is void: pawl approvals ap_1",
		},
		"a question of the agent": {
			runs.View{Outcome: loop.OutcomeWaiting, Answer: loop.ApprovalOpen},
			"`pawl approvals tidy#3` shows what is asked; `pawl approve tidy#3`, or `pawl reject tidy#3`",
		},
		"a pull request": {
			runs.View{Outcome: loop.OutcomeProposed, Answer: loop.ApprovalApproved, Cause: loop.Cause{PullRequest: "https://h/o/n/pull/1"}, Again: &pull},
			"judge the pull request: https://h/o/n/pull/1",
		},
		"landed": {runs.View{Outcome: loop.OutcomeLanded, Again: &land}, ""},
		"a yes that did not land": {
			runs.View{Outcome: loop.OutcomeRefused, Again: &land}, "nothing has landed; once the cause is gone: pawl land tidy#2",
		},
		"a yes that was paused":  {runs.View{Outcome: loop.OutcomePaused, Again: &land}, "`pawl resume tidy`; then `pawl land tidy#2`"},
		"paused":                 {runs.View{Outcome: loop.OutcomePaused, Snapshot: "refs/x"}, "pawl resume tidy"},
		"work that is kept":      {runs.View{Outcome: loop.OutcomeFailed, Snapshot: "refs/x"}, "its work is kept: pawl diff tidy#3; bring it back: git checkout -b rescue refs/x"},
		"its account is limited": {runs.View{Outcome: loop.OutcomeBlocked, Reason: loop.FailureRateLimit}, "it rests; `pawl show tidy` says until when, `pawl resume tidy` lets it try at once"},
		"paused with all":        {runs.View{Outcome: loop.OutcomePaused, Cause: loop.Cause{Switch: loop.KillSwitch{Path: ".loops/PAUSED"}}}, "pawl resume --all"},
		"paused by a label":      {runs.View{Outcome: loop.OutcomePaused, Cause: loop.Cause{Switch: loop.KillSwitch{Label: "https://h/7"}}}, "remove the label from https://h/7"},
		"paused by words":        {runs.View{Outcome: loop.OutcomePaused, Detail: ".loops/PAUSED"}, "pawl resume tidy"},
		"files that are missing": {runs.View{Outcome: loop.OutcomeFailed, Reason: loop.ReasonUnfilled, Cause: loop.Cause{Fetch: "git lfs pull"}}, "git lfs pull; then `pawl run tidy`"},
		"git was configured": {
			runs.View{Outcome: loop.OutcomeRefused, Reason: loop.ReasonGitConfig, Cause: loop.Cause{GitChange: true}},
			"if you made this change: pawl init --accept-git-config; if not, undo it",
		},
		"git may not be configured so": {
			runs.View{Outcome: loop.OutcomeRefused, Reason: loop.ReasonGitConfig}, "take it out of git's configuration; then `pawl run tidy`",
		},
		"handed to a human": {runs.View{Outcome: loop.OutcomeEscalated, Reason: loop.ReasonAgentEscalated}, "decide what the reason asks; then `pawl run tidy --request \"what you decided\"`"},
		"its set-up failed": {
			runs.View{Outcome: loop.OutcomeFailed, Reason: loop.ReasonSetupFailed},
			"`pawl doctor tidy --live` tries it again; setup in the definition names another command, network more hosts",
		},
		"quiet":                     {runs.View{Outcome: loop.OutcomeQuiet}, ""},
		"reported":                  {runs.View{Outcome: loop.OutcomeReported}, ""},
		"done":                      {runs.View{Outcome: loop.OutcomeDone}, ""},
		"failed with nothing left":  {runs.View{Outcome: loop.OutcomeFailed}, "pawl trace tidy#3"},
		"a base that is not a hash": {runs.View{Outcome: loop.OutcomeProposed, Base: "ab", Branch: "b"}, "look at it: git diff ab b; take it: git merge b"},
	} {
		t.Run(name, func(t *testing.T) {
			c.view.Loop, c.view.N = "tidy", 3
			if got := runs.Next(c.view).String(); got != c.want {
				t.Errorf("next = %q, want %q", got, c.want)
			}
		})
	}
}

func TestADiffShowsWhatARunChangedOrKept(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("good", verbtest.WritesTwo)
	r.DefineLoop("bad", verbtest.WritesTwo, "verify", "false", "max_iterations", "1")
	r.DefineLoop("none", verbtest.FindsNone)
	proposed, kept := r.RunLoop(runs.StartRequest{Loop: "good"}), r.RunLoop(runs.StartRequest{Loop: "bad"})
	if proposed.Commit == "" || kept.Commit != "" || kept.Snapshot == "" {
		t.Fatalf("runs = %s %q, %s %q", proposed.Outcome, proposed.Commit, kept.Outcome, kept.Snapshot)
	}
	for _, ref := range []string{"good", "bad#1"} {
		patch, err := r.Runs.Diff(t.Context(), ref)
		if err != nil || !strings.Contains(patch.Patch, "-one\n+two\n") {
			t.Errorf("diff %s = %q, %v", ref, patch, err)
		}
	}
	r.RunLoop(runs.StartRequest{Loop: "none"})
	if patch, err := r.Runs.Diff(t.Context(), "none"); err != nil || patch.Patch != "" {
		t.Errorf("diff of nothing = %q, %v", patch, err)
	}
	// Policy may have removed what was kept.
	gittest.Run(t, r.Root, "update-ref", "-d", kept.Snapshot)
	if patch, err := r.Runs.Diff(t.Context(), "bad"); err != nil || patch.Patch != "" {
		t.Errorf("diff of a snapshot that is gone = %q, %v", patch, err)
	}
	_, err := r.Runs.Diff(t.Context(), "nobody")
	verbtest.WantFault(t, err, loop.ExitNotFound, "nobody", "", "there are: bad, good, none")
}

func TestShowHasTheStepsOfALoop(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	r.RunLoop(runs.StartRequest{Loop: "tidy"})
	row, err := r.Loops.Show(t.Context(), "tidy")
	if err != nil || row.Schema != "pawl.loop/v1" || len(row.Steps) != 1 || row.Steps[0].Attempts != 1 {
		t.Errorf("show = %+v, %v", row, err)
	}
}

func TestRunsOfALoopAreInOrderThoughTheClockWasSetBack(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	var want []string
	for range 3 {
		want = append([]string{r.RunLoop(runs.StartRequest{Loop: "tidy"}).ID}, want...)
	}
	// The clock was two hours ahead when the first run was made.
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.SQLite().ExecContext(t.Context(), `UPDATE runs SET created_ms = created_ms + 7200000 WHERE n = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tidy", ""} {
		views, err := r.Runs.List(t.Context(), name, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range views {
			got = append(got, v.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("runs of %q = %v, want %v", name, got, want)
		}
	}
}

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestKillReturnsWhenTheRunHasEndedAndNamesIt(t *testing.T) {
	for name, target := range map[string]string{"one loop": "slow", "all": loops.All} {
		t.Run(name, func(t *testing.T) {
			r := verbtest.New(t)
			r.DefineLoop("idle", verbtest.FindsNone)
			r.RunLoop(runs.StartRequest{Loop: "idle"})
			ended := r.StartLive("slow")
			if row := r.ShowRow("slow"); row.State != "running" || row.Held == nil {
				t.Errorf("slow is %s", row.State)
			}
			sw, err := r.Loops.Kill(t.Context(), verbtest.Ann, target, "")
			if err != nil || !sw.Paused || !cmp.Equal(sw.Stopped, []string{"slow#1"}) {
				t.Errorf("kill = %+v, %v", sw, err)
			}
			v, err := r.Runs.Show(t.Context(), "slow")
			if err != nil || v.State != "ended" || v.Outcome != loop.OutcomePaused || v.Snapshot == "" {
				t.Errorf("run = %s %s %q, %v, want its work kept", v.State, v.Outcome, v.Snapshot, err)
			}
			<-ended
			again, err := r.Loops.Kill(t.Context(), verbtest.Ann, target, "")
			if err != nil || !again.Was || len(again.Stopped) != 0 {
				t.Errorf("again = %+v, %v", again, err)
			}
		})
	}
}

func TestKillWaitsForARunWhoseDefinitionWasBrokenMeanwhile(t *testing.T) {
	r := verbtest.New(t)
	ended := r.StartLive("slow")
	verbtest.Write(t, r.Root, ".loops/slow/loop.config.yaml", "tier: L9\n")
	if row := r.ShowRow("slow"); row.State != "broken" {
		t.Errorf("slow is %s", row.State)
	}
	sw, err := r.Loops.Kill(t.Context(), verbtest.Ann, "slow", "")
	if err != nil || !cmp.Equal(sw.Stopped, []string{"slow#1"}) {
		t.Errorf("kill = %+v, %v", sw, err)
	}
	if v, err := r.Runs.Show(t.Context(), "slow"); err != nil || v.State != "ended" {
		t.Errorf("run = %s, %v", v.State, err)
	}
	<-ended
}

func TestARunThatIsStoppedEndsInterruptedAndItsLoopMayRunAgain(t *testing.T) {
	r := verbtest.New(t)
	ended := r.StartLive("slow")
	v, err := r.Runs.Stop(t.Context(), verbtest.Ann, "slow", "ann wants it")
	if err != nil || v.State != "ended" || v.Outcome != loop.OutcomeInterrupted || v.Reason != loop.ReasonStopped || v.Detail != "ann wants it" {
		t.Errorf("stopped = %s %s %s %q, %v", v.State, v.Outcome, v.Reason, v.Detail, err)
	}
	if w := <-ended; w.ID != v.ID || w.Outcome != v.Outcome {
		t.Errorf("whoever ran it saw %s %s", w.ID, w.Outcome)
	}
	if patch, err := r.Runs.Diff(t.Context(), "slow"); err != nil || !strings.Contains(patch.Patch, "+half") {
		t.Errorf("kept is %q, %v", patch, err)
	}
	r.DefineLoop("slow", verbtest.FindsNone)
	if v := r.RunLoop(runs.StartRequest{Loop: "slow"}); v.N != 2 || v.Outcome != loop.OutcomeQuiet {
		t.Errorf("next = %s %s", refOf(v), v.Outcome)
	}
}

func TestStoppingWhatHasEndedReturnsItAsItIs(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.WritesTwo)
	want := r.RunLoop(runs.StartRequest{Loop: "tidy"})
	got, err := r.Runs.Stop(t.Context(), verbtest.Ann, "tidy#1", "too late")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stop changed it (-before +after):\n%s", diff)
	}
	_, err = r.Runs.Stop(t.Context(), verbtest.Ann, "tidy#2", "")
	verbtest.WantFault(t, err, loop.ExitNotFound, "there is no run tidy#2", "", "pawl runs")
}

func TestStoppingARunWhoseHolderDiedConcludesIt(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("lost", verbtest.WritesTwo)
	r.InsertRun("lost", r.DeadHolder())
	v, err := r.Runs.Stop(t.Context(), verbtest.Ann, "lost", "ann wants it")
	if err != nil || v.State != "ended" || v.Outcome != loop.OutcomeInterrupted {
		t.Errorf("stopped = %s %s, %v", v.State, v.Outcome, err)
	}
}

func TestWhatDoesNotStopIsNamedWithItsProcessAndWhatToDo(t *testing.T) {
	r := verbtest.New(t)
	alive := fmt.Sprintf("process %d on %s", r.Self.PID, r.Self.Host)
	for name, c := range map[string]struct {
		by       loop.Holder
		why, fix string
	}{
		"here":      {r.Self, alive + " holds it in phase claim and was asked to end it; the process still runs", "kill -KILL " + strconv.Itoa(r.Self.PID)},
		"elsewhere": {loop.Holder{PID: 7, Start: 1, Host: "far"}, "process 7 on far holds it", "end it there (kill -KILL 7 on far), and then run `pawl recover`"},
		"nobody":    {loop.Holder{}, "it is queued in phase trigger, and no process holds it", "run `pawl recover`"},
	} {
		t.Run(name, func(t *testing.T) {
			r.InsertRun(name, c.by)
			// The wait is over before the first look has ended, or after many.
			for _, r.Runs.StopWait = range []time.Duration{1, 60 * time.Millisecond} {
				_, err := r.Runs.Stop(t.Context(), verbtest.Ann, name, "ann wants it")
				verbtest.WantFault(t, err, loop.ExitHeld, "run "+name+"#1 did not stop within "+r.Runs.StopWait.String(), c.why, c.fix)
				if held, ok := errors.AsType[*loop.HeldError](err); !ok || held.Holder != c.by {
					t.Errorf("error = %v, want that %s holds it", err, c.by)
				}
			}
		})
	}
	_, err := r.Loops.Kill(t.Context(), verbtest.Ann, "here", "")
	verbtest.WantFault(t, err, loop.ExitHeld, "run here#1 did not stop", alive, "pawl recover")
}

func TestWhoWaitsForARunToEndIsToldForWhichAndWhoHasIt(t *testing.T) {
	r := verbtest.New(t)
	r.InsertRun("busy", r.Self)
	r.Runs.StopWait = 2500 * time.Millisecond
	told := make(chan string, 9)
	ctx := waiting.With(t.Context(), func(line string) { told <- line })
	_, err := r.Runs.Stop(ctx, verbtest.Ann, "busy", "ann wants it")
	verbtest.WantFault(t, err, loop.ExitHeld, "run busy#1 did not stop within 2.5s", "", "")
	want := fmt.Sprintf("waiting for run busy#1 to end (since 2 s; held by process %d on %s)", r.Self.PID, r.Self.Host)
	select {
	case line := <-told:
		if line != want || len(told) > 0 {
			t.Errorf("told %q and %d more, want %q", line, len(told), want)
		}
	default:
		t.Error("nothing was told")
	}
}

func TestARunThatIsTakenFromAProcessElsewhereDoesNotSayThatItIsGone(t *testing.T) {
	r := verbtest.New(t)
	r.InsertRun("far", loop.Holder{PID: 7, Start: 1, Host: "far"})
	r.LapseLeases()
	found, err := r.Runs.Recover(t.Context())
	by := fmt.Sprintf("process %d on %s took the run over", r.Self.PID, r.Self.Host)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].How, "was taken over in claim (process 7 on far did not extend its lease; "+by) {
		t.Fatalf("recovered = %+v, %v", found, err)
	}
	if run := found[0].Run; run.Reason != loop.ReasonTakenOver || !strings.Contains(run.Detail, by) || strings.Contains(run.Detail, "died") {
		t.Errorf("the run ended %s: %s", run.Reason, run.Detail)
	}
}

func TestWaitingForAHolderEndsWithItsCaller(t *testing.T) {
	r := verbtest.New(t)
	run := r.InsertRun("busy", r.Self)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // Once it is asked for, all that is left is to wait.
		defer cancel()
		for {
			if v, err := r.Runs.Show(t.Context(), run.ID); err != nil || v.Run.Cancel != "" {
				return
			}
		}
	}()
	_, err := r.Runs.Stop(ctx, verbtest.Ann, "busy", "ann wants it")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stop = %v, want the caller's end", err)
	}
	if v, err := r.Runs.Show(t.Context(), run.ID); err != nil || v.Run.Cancel != "ann wants it" {
		t.Errorf("asked for %q, %v", v.Run.Cancel, err)
	}
}

//go:build agents && linux

package agente2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// trouble is what goes wrong with the model's second answer, or with pawl while it
// waits for that.
type trouble struct {
	name  string
	fault fakemodel.Fault
	limit string // max_step_timeout: also on a busy machine the agent has asked its model before
	end   ending // of the run, from outside
	cut   bool   // what was used is known to the model alone

	want loop.Reason
	// but is what some agents come to instead, and why that is right.
	but map[string]loop.Reason
}

// Why a run may come to something else than what went wrong with its model.
const (
	roomMade = loop.ReasonNoChanges  // the agent makes the conversation shorter and goes on, or its next turn has a shorter one
	hidden   = loop.ReasonNoChanges  // the agent takes half an answer, or a refusal, for the end of its work
	wordless = loop.FailureMalformed // the agent says nothing at all then
)

// ending is how somebody ends a run while its model hangs.
type ending int

const (
	byItself ending = iota
	byStop
	byKill
)

const limit = 40 * time.Minute // that a vendor names

var troubles = []trouble{
	{name: "401", fault: fakemodel.Fault{Status: 401}, want: loop.FailureAuth},
	{name: "429 for 40 minutes", fault: fakemodel.Fault{Status: 429, RetryAfter: int(limit.Seconds())}, want: loop.FailureRateLimit},
	{name: "429", fault: fakemodel.Fault{Status: 429}, want: loop.FailureRateLimit},
	{name: "500", fault: fakemodel.Fault{Status: 500}, want: loop.FailureServer},
	{name: "cut stream", fault: fakemodel.Fault{Kind: fakemodel.FaultCut}, cut: true, want: loop.FailureServer},
	{name: "hang", fault: fakemodel.Fault{Kind: fakemodel.FaultHang}, limit: "45s", cut: true, want: loop.ReasonAgentTimeout},
	{name: "overflow", fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow, Times: 2}, want: loop.FailureOverflow, but: map[string]loop.Reason{
		"claude": roomMade, "opencode": roomMade, "acp opencode": roomMade, "goose": roomMade, "acp goose": roomMade,
	}},
	{name: "refusal", fault: fakemodel.Fault{Kind: fakemodel.FaultRefusal}, want: loop.FailureRefusal, but: map[string]loop.Reason{
		"codex": wordless, "acp gemini": wordless, "goose": hidden, "acp goose": hidden, "qwen": hidden, "acp qwen": hidden,
	}},
	{name: "max tokens", fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens}, want: loop.FailureMaxTokens, but: map[string]loop.Reason{
		"gemini": hidden, "acp gemini": hidden, "goose": hidden, "acp goose": hidden, "qwen": hidden, "acp qwen": hidden, "acp opencode": hidden,
	}},
	{name: "pawl stop", fault: fakemodel.Fault{Kind: fakemodel.FaultHang}, end: byStop, cut: true, want: loop.ReasonStopped},
	{name: "kill -9", fault: fakemodel.Fault{Kind: fakemodel.FaultHang}, end: byKill, cut: true, want: loop.ReasonHolderDied},
}

// met is what a run with trouble came to.
type met struct {
	agent, trouble string
	run            runs.View
	exit           int
	because        string
}

func TestEveryTroubleOfEveryAgentIsSaidForWhatItIs(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, s := range subjects {
		for _, w := range troubles {
			keys = append(keys, "| "+s.name+" | "+w.name+" |")
		}
	}
	drawn := newTable(t, "matrix", "| agent | trouble | outcome | reason | exit status | tokens in, out | source | `pawl why` says |\n|---|---|---|---|--:|--:|---|---|\n", keys)
	for _, s := range subjects {
		for _, w := range troubles {
			t.Run(s.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				v := newFixture(t, s, w.script, w.keys()...)
				row := met{agent: s.name, trouble: w.name}
				row.run, row.exit = v.meet(w.end)
				row.because = v.because()
				t.Logf("%s %s: %.1f s, %s %s, exit status %d, %+v: %s", s.name, w.name, row.run.MS.Total/1000, row.run.Outcome, row.run.Reason, row.exit, row.run.Tokens, row.because)
				v.judge(s, w, row)
				if !t.Failed() {
					drawn.add(row.line())
				}
			})
		}
	}
}

// script is a model that looks, and then has the trouble. What follows would be
// the work, for agents that find a way around it.
func (w trouble) script(*fixture) fakemodel.Script {
	look := fakemodel.Shell("cat src/readme.txt")
	return fakemodel.Script{Turns: []fakemodel.Turn{look, fakemodel.Say("The value is two now.").Failing(w.fault)}}
}

func (w trouble) keys() []string {
	if w.limit == "" {
		return nil
	}
	return []string{"max_step_timeout: " + w.limit}
}

// meet makes a run and ends it as the trouble wants it.
func (v *fixture) meet(end ending) (runs.View, int) {
	v.t.Helper()
	if end == byItself {
		return v.run()
	}
	cmd := v.command("run", "fix", "--json")
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // Its exit status says how it went.
		close(ended)
	}()
	v.await(ended)
	if end == byStop {
		v.pawl("stop", "fix")
	} else if err := cmd.Process.Kill(); err != nil {
		v.t.Error(err)
	}
	<-ended
	if end == byKill {
		v.pawl("resume", "fix") // Any command that may write concludes what is dead.
	}
	out, errOut, _ := v.pawl("show", "fix#1", "--json")
	var view runs.View
	if err := json.Unmarshal([]byte(out), &view); err != nil {
		v.t.Fatalf("pawl show: %v\n%s\n%s", err, out, errOut)
	}
	return view, cmd.ProcessState.ExitCode()
}

// await returns when the model hangs.
func (v *fixture) await(ended <-chan struct{}) {
	v.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if v.hung() {
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			v.t.Fatalf("the run ended before its model hung\n%s", v.logs())
		}
	}
}

// hung tells whether the model was asked for the answer that never comes.
func (v *fixture) hung() bool {
	return slices.ContainsFunc(v.model.Log(), func(e fakemodel.Entry) bool { return e.Did == string(fakemodel.FaultHang) })
}

func (v *fixture) because() string {
	out, _, _ := v.pawl("why", "fix#1", "--json")
	var why runs.Why
	if err := json.Unmarshal([]byte(out), &why); err != nil {
		v.t.Errorf("pawl why: %v\n%s", err, out)
	}
	line, _, _ := strings.Cut(why.Detail, "\n")
	return line
}

// judge holds a run with trouble against what must hold for all of them.
func (v *fixture) judge(s subject, w trouble, got met) {
	v.t.Helper()
	want := w.want
	if other, ok := w.but[s.name]; ok {
		want = other
	}
	run := got.run
	if run.Reason != want {
		v.t.Errorf("the reason is %s, want %s\n%s\n%s", run.Reason, want, v.logs(), v.said())
	}
	if run.Outcome.IsSuccess() || run.Branch != "" {
		v.t.Errorf("the run ended %s with branch %q, and no gate has passed", run.Outcome, run.Branch)
	}
	if w.end != byKill && got.exit != run.Outcome.Meaning().Exit {
		v.t.Errorf("pawl run ended with exit status %d, the outcome %s has %d", got.exit, run.Outcome, run.Outcome.Meaning().Exit)
	}
	if w.fault.Kind == fakemodel.FaultHang && !v.hung() {
		v.t.Errorf("the run ended before its model hung\n%s\n%s", v.logs(), v.said())
	}
	v.judgeUsage(w, run.Tokens)
	if w.fault.RetryAfter > 0 {
		v.judgeHold(run)
	}
}

// judgeUsage compares what was charged with what the model knows.
func (v *fixture) judgeUsage(w trouble, got runs.Tokens) {
	v.t.Helper()
	all := v.model.Total()
	switch {
	case got.Input == 0 || got.Output == 0:
		v.t.Errorf("the model answered, and %+v was charged", got)
	case w.end == byKill: // What came after the last save is unknown.
	case w.cut, got.Source == loop.UsageEstimated: // Programs that are ended may be in the middle of a call.
		if got.Input < all.Input || got.Output < all.Output {
			v.t.Errorf("charged were %+v, less than the %+v of the answers that were whole", got, all)
		}
	case got.Source != loop.UsageMetered || got.Input != all.Input || got.Output != all.Output || got.CacheRead != all.CacheRead || got.CacheWrite != all.CacheWrite:
		v.t.Errorf("charged were %+v, the model says %+v\n%s", got, all, v.said())
	}
}

// judgeHold makes sure that the loop rests until the vendor's limit is lifted.
func (v *fixture) judgeHold(run runs.View) {
	v.t.Helper()
	calls := len(v.model.Log())
	next, exit := v.run()
	if next.Reason != loop.FailureRateLimit || next.Outcome != loop.OutcomeBlocked || exit != loop.ExitNoSuccess || len(v.model.Log()) != calls {
		v.t.Errorf("the next run ended %s (%s), exit status %d, with %d calls", next.Outcome, next.Reason, exit, len(v.model.Log())-calls)
	}
	var until time.Time
	for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", ";", " ", ")", " ").Replace(run.Detail)) {
		if at, err := time.Parse(time.RFC3339, word); err == nil && until.IsZero() {
			until = at // The first is the vendor's; the account rests a little longer.
		}
	}
	if wait := until.Sub(*run.Ended); wait < limit-time.Minute || wait > limit+time.Minute {
		v.t.Errorf("the run says that the limit is lifted at %s, %s after its end: %s", until, wait, run.Detail)
	}
}

// line is the row of the matrix.
func (r met) line() string {
	exit, tokens := strconv.Itoa(r.exit), fmt.Sprintf("%d, %d", r.run.Tokens.Input, r.run.Tokens.Output)
	if r.exit < 0 { // What was saved differs from one time to the next: that is done every half second.
		exit, tokens = "killed", "as last saved"
	}
	return line(r.agent, r.trouble, string(r.run.Outcome), string(r.run.Reason), exit, tokens, string(r.run.Tokens.Source), calm(r.because))
}

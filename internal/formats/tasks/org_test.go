package tasks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// organise makes a chief, leads, and members of each lead.
func organise(w *world, leads, members int) (names []string) {
	set := func(name, cadence, superior string, reports ...string) {
		w.add(name, func(d *loop.Definition) {
			d.Cadence, d.Tasks.ReportsTo, d.Tasks.Reports, d.Tasks.Chief = cadence, superior, reports, "chief"
		})
		names = append(names, name)
	}
	var all []string
	for l := range leads {
		lead := fmt.Sprintf("lead%d", l+1)
		all = append(all, lead)
		var team []string
		for m := range members {
			team = append(team, fmt.Sprintf("member%d%d", l+1, m+1))
		}
		set(lead, "10m", "chief", team...)
		for _, m := range team {
			set(m, "15m", lead)
		}
	}
	set("chief", "5m", "", all...)
	return names
}

// live lets the agents come for a time as their cadence says, and at once where an urgent
// message came.
func (w *world) live(tb testing.TB, names []string, d time.Duration, act func(name string, s loop.Step) orgsim.Attempt) (runs map[string]int) {
	tb.Helper()
	runs = map[string]int{}
	due := map[string]time.Time{}
	next := func(name string, after time.Time) time.Time {
		f, err := schedule.Next(w.Agents[name].Definition, morning, after)
		if err != nil {
			tb.Fatal(err)
		}
		return f.Planned
	}
	for _, name := range names {
		due[name] = next(name, morning)
	}
	for end := morning.Add(d); ; {
		at, who := end.Add(time.Hour), ""
		for _, name := range names {
			if w.fired[name] {
				at, who = w.Now, name
				break
			}
			if due[name].Before(at) {
				at, who = due[name], name
			}
		}
		if at.After(end) {
			return runs
		}
		w.Now = at
		if w.fired[who] {
			delete(w.fired, who)
		} else {
			due[who] = next(who, at)
			runs[who]++
		}
		w.cycle(who, func(s loop.Step) orgsim.Attempt { return act(who, s) })
	}
}

func TestAChiefThreeLeadsAndNineMembersWorkForEightHours(t *testing.T) {
	w := newWorld(t)
	names := organise(w, 3, 3)
	for i, name := range names {
		var list []string
		for n := range 6 {
			list = append(list, fmt.Sprintf("%s %d\nPriority: %s", name, n, taskfile.Priorities[(i+n)%4]))
		}
		w.Write(name, taskfile.TasksFile, stepsOf(list...))
	}
	runs := w.live(t, names, 8*time.Hour, func(_ string, s loop.Step) orgsim.Attempt {
		if s.Attempts == 0 && strings.HasSuffix(s.Title, "3") {
			return orgsim.Blocked("not yet")
		}
		return orgsim.Done("ok")
	})
	for _, name := range names {
		want := map[byte]int{'c': 96, 'l': 48, 'm': 32}[name[0]]
		if runs[name] != want {
			t.Errorf("%s had %d runs, want %d", name, runs[name], want)
		}
		for n := range 6 {
			key := fmt.Sprintf("step-%d", n+1)
			if got := w.ended[name][key]; got != 1 || w.step(name, key).Status != "done" {
				t.Errorf("%s of %s ended %d times, and is %s", key, name, got, w.step(name, key).Status)
			}
		}
	}
	w.wantDeliveredOnce(t)
}

// wantDeliveredOnce fails unless each message is in the inbox of its recipient at most once,
// none is missing that was taken, and nobody has a case twice.
func (w *world) wantDeliveredOnce(t interface{ Errorf(string, ...any) }) {
	had := map[string]int{}
	for _, m := range w.Messages {
		inbox, _ := taskfile.ParseInbox(w.Text(m.To, taskfile.InboxFile))
		n := 0
		for _, e := range append(inbox.Pending(), inbox.Processed()...) {
			if e.Delivery == m.Key {
				n++
			}
		}
		if want := map[bool]int{true: 1}[m.Taken]; n != want && (m.Kind != "alert" || n > want) { // An alert is there once a day.
			t.Errorf("message %s is %d times in the inbox of %s, want %d", m.Key, n, m.To, want)
		}
		if m.Topic != "" {
			had[m.From+" "+m.Topic+" "+m.To]++
		}
	}
	for _, d := range w.Told {
		if d.Topic != "" {
			had[d.From+" "+d.Topic+" "+d.To]++
		}
	}
	for topic, n := range had {
		if n > 1 {
			t.Errorf("%s was told %d times", topic, n)
		}
	}
}

// The same for any organisation: whatever comes to pass, an agent works on one step a cycle,
// in the order of priority, no earlier than its dependencies and its retry age allow, each step
// ends once, and nobody is told a case twice.
func TestAnyOrganisationKeepsTheRules(t *testing.T) {
	sample.Checks(t, 50)
	rapid.Check(t, func(rt *rapid.T) {
		for range sample.Size(1, 100) {
			anyOrganisation(t, rt)
		}
	})
}

func anyOrganisation(t *testing.T, rt *rapid.T) {
	t.Helper()
	w := newWorld(t)
	names := organise(w, rapid.IntRange(1, 2).Draw(rt, "leads"), rapid.IntRange(0, 3).Draw(rt, "members"))
	retry := int64(rapid.IntRange(1, 4).Draw(rt, "retry_blocked_after"))
	for _, name := range names {
		m := w.Agents[name]
		m.Definition.RetryBlockedAfter = int(retry)
		m.Definition.OnBlocked = rapid.SampledFrom([]string{"log_and_skip", "escalate", "retry_next_cycle"}).Draw(rt, "on_blocked")
		m.Definition.OnFailure = rapid.SampledFrom([]string{"log_skip_continue", "escalate_and_skip", "retry_once"}).Draw(rt, "on_failure")
		var list []string
		for n := range rapid.IntRange(0, 5).Draw(rt, "steps") {
			text := fmt.Sprintf("%s\nPriority: %s", name, rapid.SampledFrom(taskfile.Priorities).Draw(rt, "priority"))
			if n > 0 && rapid.Bool().Draw(rt, "depends") {
				text += fmt.Sprintf("\nDepends on: Step %d", rapid.IntRange(1, n).Draw(rt, "on"))
			}
			list = append(list, text)
		}
		w.Write(name, taskfile.TasksFile, stepsOf(list...))
	}
	blockedIn := map[string]int{} // cycles of the agent when a step was blocked
	cycles := map[string]int{}
	for range rapid.IntRange(5, 25).Draw(rt, "cycles") {
		name := rapid.SampledFrom(names).Draw(rt, "who")
		m := w.Agents[name]
		if m.Paused = rapid.IntRange(0, 9).Draw(rt, "paused") == 0; !m.Paused {
			cycles[name]++
		}
		before, _ := taskfile.ParseTasks(w.Text(name, taskfile.TasksFile))
		_, key := w.cycle(name, func(s loop.Step) orgsim.Attempt {
			a := rapid.SampledFrom([]orgsim.Attempt{orgsim.Done("ok"), orgsim.Blocked("no key"), orgsim.Failed("boom")}).Draw(rt, "attempt")
			if a.Verdict == loop.VerdictPass && rapid.Bool().Draw(rt, "message") {
				a.Report = fmt.Sprintf(`{"outcome":"done","messages":[{"to":%q,"kind":"task","content":"help"}]}`, rapid.SampledFrom(append(names, "reports_to", "nobody")).Draw(rt, "to"))
			}
			return a
		})
		w.Now = w.Now.Add(5 * time.Minute)
		if key == "" {
			continue
		}
		at := name + " " + key
		if c, was := blockedIn[at]; was {
			wait := int(retry)
			if m.Definition.OnBlocked == "retry_next_cycle" {
				wait = 1
			}
			if cycles[name] < c+wait {
				rt.Fatalf("%s was blocked in cycle %d and worked on in cycle %d, %d have to pass", at, c, cycles[name], wait)
			}
			delete(blockedIn, at)
		}
		for _, st := range before.Steps() {
			if st.Key != key {
				continue
			}
			if st.Status == taskfile.StatusDone || st.Status == taskfile.StatusFailed || st.Status == taskfile.StatusCancelled {
				rt.Fatalf("%s was %s, and is worked on", at, st.Status)
			}
			for _, dep := range st.DependsOn {
				if w.step(name, dep).Status != taskfile.StatusDone {
					rt.Fatalf("%s was worked on before %s", at, dep)
				}
			}
			for _, other := range before.Steps() {
				open := other.Status == taskfile.StatusOpen && len(other.DependsOn) == 0 && m.Steps[other.Key].State != loop.StepBlocked
				if open && other.Key != key && slices.Index(taskfile.Priorities, other.Priority) < slices.Index(taskfile.Priorities, st.Priority) {
					rt.Fatalf("%s was worked on before %s, which is %s", at, other.Key, other.Priority)
				}
			}
		}
		if st := w.step(name, key); st.Status == taskfile.StatusBlocked {
			blockedIn[at] = cycles[name]
		}
		if w.ended[name][key] > 1 {
			rt.Fatalf("%s ended %d times", at, w.ended[name][key])
		}
	}
	w.wantDeliveredOnce(rt)
}

func TestWorkStartsFromTheResultsOnWhichItDepends(t *testing.T) {
	w := alone(t, "a", "b\nDepends on: Step 1", "c\nDepends on: Step 2", "d\nDepends on: Step 1\nPriority: low", "e\nDepends on: Step 3, Step 4\nPriority: low")
	id := func(key string) string { return engine.StepID("lp_dev", key) }
	below := []loop.Lower{{Branch: "pawl/dev/1", Commit: "c1", Onto: "c0"}}
	w.cycle("dev", always(orgsim.Done("ok")))
	w.Results[id("step-1")] = engine.StepResult{State: engine.ResultWaits, Stack: below}
	w.cycle("dev", always(orgsim.Done("ok")))
	if got := w.stacks["dev/step-2"]; !slices.Equal(got, below) {
		t.Errorf("step 2 starts from %v", got)
	}
	w.Results[id("step-2")] = engine.StepResult{State: engine.ResultWaits, Stack: append(slices.Clone(below), loop.Lower{Branch: "pawl/dev/2", Commit: "c2", Onto: "c1"})}
	w.cycle("dev", always(orgsim.Done("ok")))
	if got := w.stacks["dev/step-3"]; len(got) != 2 || got[1].Commit != "c2" {
		t.Errorf("step 3 starts from %v", got)
	}
	w.Results[id("step-3")] = engine.StepResult{State: engine.ResultWaits, Stack: append(slices.Clone(w.Results[id("step-2")].Stack), loop.Lower{Branch: "pawl/dev/3", Commit: "c3", Onto: "c2"})}
	w.cycle("dev", always(orgsim.Done("ok")))
	w.Results[id("step-4")] = engine.StepResult{State: engine.ResultWaits, Stack: append(slices.Clone(below), loop.Lower{Branch: "pawl/dev/4", Commit: "c4", Onto: "c1"})}
	if _, key := w.cycle("dev", always(orgsim.Done("ok"))); key != "" {
		t.Errorf("%s began although it depends on two proposals that are not on one line", key)
	}
	w.Results[id("step-4")] = engine.StepResult{State: engine.ResultLanded}
	if _, key := w.cycle("dev", always(orgsim.Done("ok"))); key != "step-5" {
		t.Errorf("worked on %q, want step-5 after one of them has landed", key)
	}
}

func TestAResultThatIsRejectedHasFailedAndWhatBuildsOnItIsOpenAgain(t *testing.T) {
	w := alone(t, "a", "b\nDepends on: Step 1")
	w.cycles("dev", 2, always(orgsim.Done("ok")))
	rejected := loop.Approval{State: loop.ApprovalRejected, By: "ann", Note: "not so", Action: loop.Action{Branch: "pawl/dev/1"}}
	void := loop.Approval{State: loop.ApprovalVoid, Note: "it builds on pawl/dev/1, which ann rejected", Action: loop.Action{Branch: "pawl/dev/2"}}
	w.Results[engine.StepID("lp_dev", "step-1")] = engine.StepResult{State: engine.ResultRejected, Approval: rejected}
	w.Results[engine.StepID("lp_dev", "step-2")] = engine.StepResult{State: engine.ResultVoid, Approval: void}
	wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "-")
	if st := w.step("dev", "step-1"); st.Status != "failed" || !strings.Contains(st.Result, "rejected by ann: not so") {
		t.Errorf("step 1 = %+v", st)
	}
	if st := w.step("dev", "step-2"); st.Status != "open" || !strings.Contains(st.Result, "builds on pawl/dev/1") {
		t.Errorf("step 2 = %+v", st)
	}
	w.Write("dev", taskfile.TasksFile, strings.Replace(w.Text("dev", taskfile.TasksFile), "Status: failed", "Status: open", 1))
	wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "step-1")
}

func TestWhatAPersonWroteOfAStepStaysWhenItsResultIsRejected(t *testing.T) {
	for status, worked := range map[string]string{
		taskfile.StatusOpen: "step-1", taskfile.StatusInProgress: "step-1", taskfile.StatusBlocked: "-", taskfile.StatusCancelled: "-", taskfile.StatusDone: "-",
	} {
		t.Run(status, func(t *testing.T) {
			w := alone(t, "a")
			wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "step-1")
			w.Results[engine.StepID("lp_dev", "step-1")] = engine.StepResult{
				State: engine.ResultRejected, Approval: loop.Approval{State: loop.ApprovalRejected, By: "ann", Note: "not so", Action: loop.Action{Branch: "pawl/dev/1"}},
			}
			w.Write("dev", taskfile.TasksFile, strings.Replace(w.Text("dev", taskfile.TasksFile), "Status: done", "Status: "+status, 1))
			wantKeys(t, w.cycles("dev", 1, always(orgsim.Blocked("no key"))), worked)
			want := status
			switch {
			case worked != "-":
				want = taskfile.StatusBlocked
				if got := w.Agents["dev"].Steps["step-1"]; got.Attempts != 1 {
					t.Errorf("the step has %d attempts, want it to begin anew", got.Attempts)
				}
			case status == taskfile.StatusDone: // That is pawl's own word.
				want = taskfile.StatusFailed
			}
			if st := w.step("dev", "step-1"); st.Status != want {
				t.Errorf("the file says %s, want %s", st.Status, want)
			}
		})
	}
}

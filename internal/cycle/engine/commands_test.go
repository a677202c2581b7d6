package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// logged is a board that writes down what the runtime runs for its agent.
type logged struct {
	boardLike
	log *commandLog
}

type commandLog struct {
	planned [][]loop.PlannedCommand
	ran     [][]loop.CommandResult
}

type loggedSession struct {
	engine.Session
	log *commandLog
}

func (l logged) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s, err := l.boardLike.Open(ctx, v)
	return loggedSession{s, l.log}, err
}

func (s loggedSession) Planned(plan []loop.PlannedCommand) []loop.Change {
	s.log.planned = append(s.log.planned, plan)
	return []loop.Change{{Kind: loop.ChangeAppend, Path: "plan.log", Content: fmt.Sprintf("planned %d", len(plan))}}
}

func (s loggedSession) Ran(results []loop.CommandResult) []loop.Change {
	s.log.ran = append(s.log.ran, results)
	return []loop.Change{{Kind: loop.ChangeAppend, Path: "plan.log", Content: fmt.Sprintf("ran %d", len(results))}}
}

// commander is a board with one task whose agent may have programs of its own run.
func (r *rig) commander(tier loop.Tier, capabilities ...[]string) (engine.Target, *commandLog) {
	r.t.Helper()
	log := &commandLog{}
	def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: tier, Scope: []string{"src/**"}, AgentCommand: "x", MaxIterations: 3, Capabilities: capabilities}
	return r.target("w", logged{boardLike{nil, []string{"the task"}}, log}, def), log
}

// program makes an executable outside of any tree, and returns its name.
func program(t *testing.T, name, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	gittest.WriteFile(t, file, "#!/bin/sh\n"+script)
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// wants makes a report with commands.
func wants(t *testing.T, outcome string, more string, commands ...string) string {
	t.Helper()
	return fmt.Sprintf(`{"outcome":%q%s,"commands":[%s]}`, outcome, more, strings.Join(commands, ","))
}

// order writes one command of a report.
func order(t *testing.T, argv ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"argv": argv, "why": "to see it"})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// storedEvents are the events of a run of these kinds, as the store has them.
func (r *rig) storedEvents(run string, kinds ...string) (texts []string) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		events, err := rd.Events(r.t.Context(), run, 0, 1000)
		for _, e := range events {
			if slices.Contains(kinds, e.Kind) {
				texts = append(texts, e.Kind+" "+e.Text)
			}
		}
		return err
	})
	return texts
}

func TestCommandsRunInTheirOrderOnTheTreeOfTheTurnAndThePlanIsDurableBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		trace := filepath.Join(t.TempDir(), "trace")
		first := program(t, "first", "cat src/a.txt; echo made >src/made.txt; echo first >>"+trace+"\n")
		second := program(t, "second", "echo second >>"+trace+"; cat src/made.txt; exit 3\n")
		target, log := r.commander(loop.TierAssisted, []string{first}, []string{second})
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "from the turn\n")
			return says(t, req, wants(t, "done", "", order(t, first), `{"argv":["`+second+`"],"expect":{"exit":3,"output":"made"}}`, order(t, "cat", "src/made.txt")))
		}
		before := 0
		plan := (&fault.Plan{}).Do("engine.command.before", 1, func(context.Context) error {
			var live loop.Run
			r.view(func(rd *store.Reader) (err error) { live, err = rd.Live(t.Context(), "lp_w"); return err })
			before = len(r.storedEvents(live.ID, loop.EventCommands, loop.EventCommand))
			if got := read(t, trace); got != "" {
				t.Errorf("before the first command: %q", got)
			}
			if got := read(t, filepath.Join(r.root, "plan.log")); got != "planned 3\n" {
				t.Errorf("the protocol's own plan before the first command = %q", got)
			}
			return nil
		})
		run, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"})
		if err != nil || run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %s %q, %v", run.Outcome, run.Reason, run.Detail, err)
		}
		if before != 2 {
			t.Errorf("%d events of commands were durable before the first one ran, want the plan and its start", before)
		}
		if got := read(t, trace); got != "first\nsecond\n" {
			t.Errorf("ran %q", got)
		}
		if got := gittest.Run(t, r.root, "show", run.Branch+":src/made.txt"); got != "made" {
			t.Errorf("proposed made.txt = %q: what commands do is part of the work", got)
		}
		if len(log.planned) != 1 || len(log.ran) != 1 || len(log.ran[0]) != 3 || log.planned[0][0].Answer != loop.CommandRun {
			t.Fatalf("the session was told %+v", log)
		}
		if got := log.ran[0]; got[0].Output != "from the turn\n" || got[1].Exit != 3 || got[1].State != loop.CommandMet || got[2].Output != "made\n" {
			t.Errorf("results = %+v", got)
		}
		if got := read(t, filepath.Join(r.root, "plan.log")); got != "planned 3\nran 3\n" {
			t.Errorf("the protocol's own log = %q", got)
		}
		if events := r.storedEvents(run.ID, loop.EventCommands, loop.EventCommand); len(events) != 7 {
			t.Errorf("events = %q, want the plan, and of each command its start and its end", events)
		}
		if its := r.iterations(run.ID); len(its) != 1 || !strings.Contains(its[0].Acted, "ran 3 commands as expected") {
			t.Errorf("iterations = %+v", its)
		}
	})
}

func TestAnAgentGoesOnWithWhatItsCommandsSaid(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target, _ := r.commander(loop.TierAssisted)
	var prompts []string
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if prompts = append(prompts, req.Prompt); len(prompts) == 1 {
			return says(t, req, wants(t, "continue", "", order(t, "grep", "-c", "one", "src/a.txt"), order(t, "grep", "nothing", "src/a.txt"), order(t, "pwd")))
		}
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || len(prompts) != 2 {
		t.Fatalf("run = %s %s %q after %d turns", run.Outcome, run.Reason, run.Detail, len(prompts))
	}
	for _, want := range []string{"What the commands said", "$ grep -c one src/a.txt\n1\n[exit status 0]", "$ grep nothing src/a.txt\n[exit status 1; not as expected: exit status 0 was expected]", "$ pwd\n[not run]"} {
		if !strings.Contains(prompts[1], want) {
			t.Errorf("the second prompt lacks %q:\n%s", want, prompts[1])
		}
	}
	if its := r.iterations(run.ID); its[0].Verdict != loop.VerdictFail || its[0].Reason != loop.ReasonContinues {
		t.Errorf("the first iteration = %s %s", its[0].Verdict, its[0].Reason)
	}
}

func TestToGoOnIsBoundedByTheIterationsOfTheRun(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target, _ := r.commander(loop.TierAssisted)
	turns := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		turns++
		return says(t, req, wants(t, "continue", "", order(t, "echo", fmt.Sprint("turn ", turns))))
	}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonMaxIterations || turns != 3 {
		t.Fatalf("run = %s %s %q after %d turns, want 3", run.Outcome, run.Reason, run.Detail, turns)
	}
	if s := r.step(); s.State != loop.StepOpen || !strings.Contains(s.Feedback, "turn 3") {
		t.Errorf("step = %s %q, want it open with what the last commands said", s.State, s.Feedback)
	}
}

func TestDoneWithACommandThatEndsOtherwiseIsNotDone(t *testing.T) {
	for name, c := range map[string]struct {
		command, says string
		reason        loop.Reason
	}{
		"another exit status": {`{"argv":["grep","two","README.md"]}`, "exit status 0 was expected", loop.ReasonCommandFailed},
		"it did not fail":     {`{"argv":["grep","hello","README.md"],"expect":{"exit":1}}`, "exit status 1 was expected", loop.ReasonCommandFailed},
		"another output":      {`{"argv":["cat","README.md"],"expect":{"output":"goodbye"}}`, `the output does not contain "goodbye"`, loop.ReasonCommandFailed},
		"no such program":     {`{"argv":["npm","run","x"]}`, "", loop.ReasonCommandFailed},
		"what is not allowed": {`{"argv":["node","x.js"]}`, "not among the commands", loop.ReasonCommandRefused},
		"out of the tree":     {`{"argv":["cat","/etc/passwd"]}`, "outside of the tree", loop.ReasonCommandRefused},
		"out of the scope":    {`{"argv":["sh","-c","echo x >README.md"]}`, "outside scope", loop.ReasonCommandRefused},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			target, log := r.commander(loop.TierAssisted)
			var prompts []string
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
				if prompts = append(prompts, req.Prompt); len(prompts) > 1 {
					return says(t, req, `{"outcome":"done"}`)
				}
				return says(t, req, wants(t, "done", "", c.command, order(t, "pwd")))
			}
			run := r.run(target, engine.Firing{})
			its := r.iterations(run.ID)
			if run.Outcome != loop.OutcomeProposed || len(its) != 2 || its[0].Verdict != loop.VerdictFail || its[0].Reason != c.reason {
				t.Fatalf("run = %s %s, iterations %+v", run.Outcome, run.Detail, its)
			}
			if !strings.Contains(prompts[1], c.says) || !strings.Contains(prompts[1], "$ pwd\n[not run]") {
				t.Errorf("the second prompt lacks %q:\n%s", c.says, prompts[1])
			}
			if got := log.ran[0]; got[0].State == loop.CommandMet || got[1].State != loop.CommandSkipped {
				t.Errorf("results = %+v", got)
			}
		})
	}
}

func TestACommandIsBoundInTimeAndOutputAndTellsNoSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.SQLite(t))
	r.deps.CommandTime = 5 * time.Second // In which the long one ends on a busy machine, too.
	const secret = "sk-live-abcdefghijklmnopqrstuvwx"
	r.deps.Environ = append(slices.Clone(r.deps.Environ), "SOME_API_KEY="+secret)
	r.engine = engine.New(r.deps)
	long := program(t, "long", "i=0; while [ $i -lt 4000 ]; do echo line $i; i=$((i+1)); done; echo "+secret+"\n")
	slow := program(t, "slow", "echo begins; sleep 60\n")
	target, log := r.commander(loop.TierAssisted, []string{long}, []string{slow})
	turns := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if turns++; turns > 1 {
			return says(t, req, `{"outcome":"blocked","reason":"enough"}`)
		}
		return says(t, req, wants(t, "continue", "", order(t, long), order(t, slow), order(t, "pwd")))
	}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeBlocked || len(log.ran) != 1 {
		t.Fatalf("run = %s %s %q, told %+v", run.Outcome, run.Reason, run.Detail, log.ran)
	}
	got := log.ran[0]
	if n := len(got[0].Output); n < engine.CommandOutput-200 || n > engine.CommandOutput+200 || !strings.HasPrefix(got[0].Output, "line 0\n") || !strings.Contains(got[0].Output, "line 3999") {
		t.Errorf("%d bytes are kept: %.80q…", n, got[0].Output)
	}
	if !strings.Contains(got[0].Output, "bytes") {
		t.Error("nothing says that the output is cut")
	}
	if got[1].State != loop.CommandUnmet || !strings.Contains(got[1].Detail, "stopped after 5s") || got[1].Output != "begins\n" || got[2].State != loop.CommandSkipped {
		t.Errorf("the slow one = %+v, then %+v", got[1], got[2])
	}
	for _, text := range append(r.storedEvents(run.ID, loop.EventCommand, loop.EventPrompt), got[0].Output, r.iterations(run.ID)[0].Feedback) {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is kept: …%.200s", text)
		}
	}
}

func TestACommandThatNeedsAPersonRunsOnceOnTheTreeThatWasShown(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, log := r.commander(loop.TierAssisted)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			if strings.Contains(req.Prompt, "said yes") {
				return says(t, req, `{"outcome":"done","summary":"cleaned"}`)
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/half.txt"), "half way\n")
			return says(t, req, wants(t, "done", "", order(t, "cat", "src/half.txt"), order(t, "rm", "src/a.txt"), order(t, "pwd")))
		}
		first := r.run(target, engine.Firing{})
		if first.Outcome != loop.OutcomeWaiting || first.Approval == "" || first.Snapshot == "" {
			t.Fatalf("run = %s %s %q", first.Outcome, first.Reason, first.Detail)
		}
		a := r.approval(first.Approval)
		if a.Action.Kind != loop.ActionCommand || !slices.Equal(a.Action.Argv, []string{"rm", "src/a.txt"}) || a.Tree != r.iterations(first.ID)[0].Tree || !strings.Contains(a.Action.Why, "to see it") {
			t.Errorf("approval = %+v", a)
		}
		if got := log.ran[0]; got[0].State != loop.CommandMet || got[1].State != loop.CommandAsked || got[2].State != loop.CommandSkipped {
			t.Errorf("results = %+v", got)
		}
		if left := left(t, r.home); len(left) > 0 {
			t.Errorf("a waiting step holds %v", left)
		}
		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		second := r.run(target, firing)
		if second.Outcome != loop.OutcomeProposed {
			t.Fatalf("run after the yes = %s %s %q", second.Outcome, second.Reason, second.Detail)
		}
		if files := gittest.Run(t, r.root, "ls-tree", "-r", "--name-only", second.Branch); files != "README.md\nsrc/half.txt" {
			t.Errorf("proposed files = %q", files)
		}
		if _, err := r.engine.Run(t.Context(), target, firing); !errors.Is(err, loop.ErrDuplicateKey) {
			t.Errorf("firing the answer twice = %v, want ErrDuplicateKey", err)
		}
	})
}

func TestAnApprovedCommandThatIsNotThereIsSensedAndFailsNoRun(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target, _ := r.commander(loop.TierAssisted)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if strings.Contains(req.Prompt, `ann said yes; "no-such-program delete x" could not be started`) {
			return says(t, req, `{"outcome":"blocked","reason":"it is missing"}`)
		}
		return says(t, req, wants(t, "continue", "", order(t, "no-such-program", "delete", "x")))
	}
	first := r.run(target, engine.Firing{})
	_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if second := r.run(target, firing); second.Outcome != loop.OutcomeBlocked || second.Detail != "it is missing" {
		t.Errorf("run after a yes = %s %s %q, want blocked", second.Outcome, second.Reason, second.Detail)
	}
}

func TestANoToACommandIsSensed(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target, _ := r.commander(loop.TierAssisted)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if strings.Contains(req.Prompt, `ann said no to "rm src/a.txt": leave it`) {
			return says(t, req, `{"outcome":"blocked","reason":"not allowed"}`)
		}
		return says(t, req, wants(t, "continue", "", order(t, "rm", "src/a.txt")))
	}
	first := r.run(target, engine.Firing{})
	_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{By: "ann", Note: "leave it"})
	if err != nil {
		t.Fatal(err)
	}
	if second := r.run(target, firing); second.Outcome != loop.OutcomeBlocked || second.Detail != "not allowed" {
		t.Errorf("run after a no = %s %q, want blocked", second.Outcome, second.Detail)
	}
}

func TestALoopThatReportsHasCommandsRunThatOnlyRead(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	target, log := r.commander(loop.TierReport, []string{"touch"})
	var prompts []string
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		switch prompts = append(prompts, req.Prompt); len(prompts) {
		case 1:
			return says(t, req, wants(t, "continue", "", order(t, "cat", "src/a.txt"), order(t, "touch", "src/b.txt")))
		case 2:
			return says(t, req, wants(t, "continue", "", order(t, "rm", "src/a.txt")))
		}
		return says(t, req, `{"outcome":"done","summary":"one is there"}`)
	}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeReported || run.Approval != "" || len(prompts) != 3 {
		t.Fatalf("run = %s %s %q after %d turns", run.Outcome, run.Reason, run.Detail, len(prompts))
	}
	if log.ran[0][0].State != loop.CommandMet || log.ran[0][1].State != loop.CommandRefused || log.ran[1][0].State != loop.CommandRefused {
		t.Errorf("results = %+v", log.ran)
	}
	if !strings.Contains(prompts[1], "this loop only reports") {
		t.Errorf("the second prompt does not say why:\n%s", prompts[1])
	}
}

func TestTheKillSwitchIsHonouredBetweenTwoCommands(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	pause := program(t, "pause", "mkdir -p '"+r.root+"/.loops'; : >'"+r.root+"/.loops/PAUSED'\n")
	marker := filepath.Join(t.TempDir(), "ran")
	next := program(t, "next", ": >"+marker+"\n")
	target, log := r.commander(loop.TierAssisted, []string{pause}, []string{next})
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, wants(t, "done", "", order(t, pause), order(t, next)))
	}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch {
		t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command ran after the switch was set")
	}
	if len(log.ran) != 0 {
		t.Errorf("the session was told %+v of a plan that was cut", log.ran)
	}
	if s := r.step(); s.State != loop.StepOpen || !strings.Contains(s.Feedback, "pause") || !strings.Contains(s.Feedback, "[not run]") {
		t.Errorf("step = %s %q, want it told what ran", s.State, s.Feedback)
	}
}

func TestCommandsAreNotRunTwiceUnknowinglyAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		point string
		hit   int
		want  []string
	}{
		"between two commands": {"engine.act.commit.before", 2, []string{"$ FIRST\n[it was started, and how it ended is not known]", "$ SECOND\n[not run]"}},
		"before the second":    {"engine.command.before", 2, []string{"$ FIRST\n[exit status 0]", "$ SECOND\n[it was started, and how it ended is not known]"}},
		"after the second":     {"engine.command.after", 2, []string{"$ FIRST\n[exit status 0]", "$ SECOND\n[it was started, and how it ended is not known]"}},
		"in gather":            {"engine.gather.before", 1, []string{"$ FIRST\n[exit status 0]", "$ SECOND\n[it was started, and how it ended is not known]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			trace := filepath.Join(t.TempDir(), "trace")
			first := program(t, "first", "echo first >>"+trace+"\n")
			second := program(t, "second", "echo second >>"+trace+"\n")
			target, _ := r.commander(loop.TierAssisted, []string{first}, []string{second})
			gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host}
			deps := r.deps
			deps.HolderState = deadIf(gone)
			r.engine = engine.New(deps)
			var prompts []string
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				if prompts = append(prompts, req.Prompt); len(prompts) > 1 {
					return says(t, req, `{"outcome":"blocked","reason":"enough"}`)
				}
				return says(t, req, wants(t, "continue", "", order(t, first), order(t, second)))
			}
			plan := (&fault.Plan{}).Do(c.point, c.hit, func(context.Context) error {
				r.steal("lp_w", gone)
				return loop.ErrLeaseLost
			})
			if run, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"}); err == nil {
				t.Fatalf("run = %+v, want it lost", run)
			}
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			ran := read(t, trace)
			if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeBlocked {
				t.Fatalf("run = %s %q", run.Outcome, run.Detail)
			}
			if got := read(t, trace); got != ran {
				t.Errorf("after recovery ran %q, before it %q", got, ran)
			}
			for _, want := range c.want {
				want = strings.NewReplacer("FIRST", first, "SECOND", second).Replace(want)
				if !strings.Contains(prompts[1], want) {
					t.Errorf("the next attempt is not told %q:\n%s", want, prompts[1])
				}
			}
		})
	}
}

func TestCommandsOfATurnThatDidNotEndWellAreNotRun(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	marker := filepath.Join(t.TempDir(), "ran")
	mark := program(t, "mark", ": >"+marker+"\n")
	target, log := r.commander(loop.TierAssisted, []string{mark})
	turns := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if turns++; turns > 1 {
			return says(t, req, `{"outcome":"blocked","reason":"enough"}`)
		}
		res, err := says(t, req, wants(t, "continue", "", order(t, mark)))
		res.Exit = 2
		return res, err
	}
	r.run(target, engine.Firing{})
	if _, err := os.Stat(marker); err == nil || len(log.planned) != 0 {
		t.Errorf("a command of a failed turn ran, plans %+v", log.planned)
	}
}

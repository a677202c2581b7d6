package runs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func refOf(v runs.View) string { return fmt.Sprintf("%s#%d", v.Loop, v.N) }

func TestWhatCannotRunIsRefusedBeforeItStarts(t *testing.T) {
	r := verbtest.New(t)
	for name, c := range map[string]struct {
		keys           []string
		exit           int
		what, why, fix string
	}{
		"no agent":          {[]string{"agent", "", "agent_command", ""}, loop.ExitMissing, "x cannot run", "no agent is named", "--agent-command"},
		"no program for it": {[]string{"agent_command", ""}, loop.ExitMissing, "x cannot run", "no agent is named", "agent_command"},
		"an agent without a driver": {
			[]string{"agent", "nobody", "agent_command", ""}, loop.ExitMissing, "x cannot run", `agent "nobody" is neither a driver nor in the roster`, "pawl agent create @nobody --driver D",
		},
		"tier L3 that nothing confines": {
			[]string{"tier", "L3"}, loop.ExitNotReady, "x is not ready to run", "none is never allowed at L3", "correct .loops/x/loop.config.yaml",
		},
		"a definition with an error": {
			[]string{"tier", "L9"}, loop.ExitNotReady, "x is not ready to run", "must be L1, L2 or L3", "correct .loops/x/loop.config.yaml",
		},
		"another protocol": {[]string{"protocol", "board"}, loop.ExitMissing, "x cannot run", `protocol "board" is not part of this version`, "protocol spine"},
		"a scope that is not a glob": {
			[]string{"scope", `["src/[a"]`}, loop.ExitNotReady, "x is not ready to run", "src/[a", "correct .loops/x/loop.config.yaml",
		},
		"a branch that is not there": {[]string{"base", "mian"}, loop.ExitNotFound, `there is no branch "mian"`, "", "use one of: main"},
		"a program of the agent":     {[]string{"agent_command", "nope-1 -p"}, loop.ExitMissing, `agent_command: program "nope-1"`, "not on PATH", "agent_command"},
		"a program of verify":        {[]string{"verify", "nope-2"}, loop.ExitMissing, `verify: program "nope-2"`, "not on PATH", "correct verify"},
		"a program of guard":         {[]string{"guard", "CI=1 nope-3 x"}, loop.ExitMissing, `guard: program "nope-3"`, "not on PATH", "correct guard"},
		"several of them": {
			[]string{"agent_command", "nope-1", "verify", "nope-2"}, loop.ExitMissing, `agent_command: program "nope-1"`, "", "agent_command",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.DefineLoop("x", "true", c.keys...)
			_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "x"})
			verbtest.WantFault(t, err, c.exit, c.what, c.why, c.fix)
		})
	}
	if row := r.ShowRow("x"); row.LastN != 0 {
		t.Errorf("a refused run got number %d", row.LastN)
	}
}

func TestPreparingRefusesWhatFilesDoNotSay(t *testing.T) {
	r := verbtest.New(t)
	for name, c := range map[string]struct {
		req            runs.StartRequest
		exit           int
		what, why, fix string
	}{
		"until without an agent": {runs.StartRequest{Until: "true"}, loop.ExitMissing, "cannot run", "no agent is named", "--agent-command"},
		"until without its program": {
			runs.StartRequest{Until: "nope-4", Overrides: loop.Overrides{AgentCommand: "true"}}, loop.ExitMissing, `--until: program "nope-4"`, "not on PATH", "correct --until",
		},
		"an agent of the command line": {
			runs.StartRequest{Until: "true", Overrides: loop.Overrides{AgentCommand: "nope-5"}}, loop.ExitMissing, `agent_command: program "nope-5"`, "", "install it",
		},
		"a scope that is not a glob": {
			runs.StartRequest{Until: "true", Scope: []string{"[a"}, Overrides: loop.Overrides{AgentCommand: "true"}},
			loop.ExitNotReady, "cannot run", "scope: ", "correct the glob",
		},
		"a tier of confinement that there is not": {
			runs.StartRequest{Until: "true", Overrides: loop.Overrides{AgentCommand: "true", Sandbox: "ful"}}, loop.ExitUsage, `no sandbox "ful"`, "", "use one of: full, landlock",
		},
		"an unknown loop": {runs.StartRequest{Loop: "nobody"}, loop.ExitNotFound, `"nobody"`, "", "--until"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Runs.Prepare(t.Context(), c.req)
			verbtest.WantFault(t, err, c.exit, c.what, c.why, c.fix)
		})
	}
	r.DefineLoop("alone", "true", "tier", "L3", "sandbox", "full")
	_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "alone", Overrides: loop.Overrides{Sandbox: "none"}})
	verbtest.WantFault(t, err, loop.ExitRefused, "alone cannot run", "sandbox: none confines nothing", "set sandbox: full")
	verbtest.Write(t, r.Root, ".loops/a..b/loop.config.yaml", "")
	r.DefineLoop("a..b", "true")
	_, err = r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "a..b"})
	verbtest.WantFault(t, err, loop.ExitNotReady, `"a..b"`, "cannot be part of a branch's name", "lower-case words")
}

func TestCommandsThatTheShellUnderstandsAreNotRefused(t *testing.T) {
	r := verbtest.New(t)
	verbtest.Write(t, r.Root, "bin/tool", "#!/bin/sh\n")
	for name, command := range map[string]string{
		"a builtin":                      "cd src && ls",
		"a colon":                        ": nothing",
		"a reserved word":                "if test -d src; then true; fi",
		"a program on PATH":              "git status",
		"variables before it":            "CI=1 GOFLAGS=-mod=mod git status",
		"a subshell":                     "(nope-in-parentheses)",
		"a group":                        "{ nope-in-braces; }",
		"a negation":                     "! nope-negated",
		"an absolute path":               "/nowhere/nope x",
		"a relative path":                "./bin/tool",
		"a path in the copy":             "node_modules/.bin/eslint .",
		"a quoted word":                  `"nope quoted" x`,
		"a variable":                     "$NOPE x",
		"a variable that holds words":    `FLAGS="-a b c" git status`,
		"a variable in single quotes":    "FLAGS='-a b c' git status",
		"a variable with an escape":      `FLAGS=a\ b git status`,
		"a variable that a command sets": "D=$(date -u +%s now) git status",
		"a function":                     "check () { test -d src; }; check",
		"a comment above it":             "# nope is checked\ntrue",
		"nothing":                        "",
	} {
		t.Run(name, func(t *testing.T) {
			d := loop.Definition{Name: "x", Tier: loop.TierAssisted, AgentCommand: "true", Verify: command, Guard: command}.WithDefaults()
			if err := r.Runs.Runnable(t.Context(), d); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		})
	}
}

func TestProgramsAreLookedForOnThePathOfTheCaller(t *testing.T) {
	r := verbtest.New(t)
	bin := t.TempDir()
	d := loop.Definition{Name: "x", Tier: loop.TierAssisted, Sandbox: "none", AgentCommand: "tool-of-mine"}.WithDefaults()
	r.Runs.Environ = []string{"HOME=/nowhere", "PATH=" + bin + string(os.PathListSeparator) + "/usr/bin:/bin"}
	verbtest.WantFault(t, r.Runs.Runnable(t.Context(), d), loop.ExitMissing, `"tool-of-mine"`, "", "install it")
	verbtest.Write(t, bin, "tool-of-mine", "#!/bin/sh\n")
	verbtest.WantFault(t, r.Runs.Runnable(t.Context(), d), loop.ExitMissing, `"tool-of-mine"`, "", "install it")
	if err := os.Chmod(filepath.Join(bin, "tool-of-mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Runs.Runnable(t.Context(), d); err != nil {
		t.Error(err)
	}
}

func TestARepairIsFoundAgainByItsNameAndNumberedOn(t *testing.T) {
	r := verbtest.New(t)
	req := runs.StartRequest{Until: "test -f src/fixed", Overrides: loop.Overrides{AgentCommand: strings.ReplaceAll(verbtest.WritesTwo, "src/a.txt", "src/fixed"), Sandbox: "none"}}
	first := r.RunLoop(req)
	if first.Outcome != loop.OutcomeProposed || first.Loop != runs.UntilName(req.Until, []string{"**/*"}) || first.Protocol != loop.ProtocolSpec {
		t.Fatalf("run = %s %s %s %q", first.Loop, first.Protocol, first.Outcome, first.Detail)
	}
	if second := r.RunLoop(req); second.Loop != first.Loop || second.N != 2 || second.Reason != loop.ReasonStepWaiting {
		t.Errorf("again = %s %s, want %s#2, which waits for the answer to the first", refOf(second), second.Reason, first.Loop)
	}
	if _, err := r.Approvals.Reject(t.Context(), first.Approval, loop.Answer{By: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if third := r.RunLoop(runs.StartRequest{Loop: first.Loop}); third.N != 3 || third.Reason != loop.ReasonRejected {
		t.Errorf("after a no = %s %s %q", refOf(third), third.Outcome, third.Detail)
	}
	if fourth := r.RunLoop(runs.StartRequest{Loop: first.Loop, Request: "without a sleep"}); fourth.N != 4 || fourth.Outcome != loop.OutcomeProposed {
		t.Errorf("by its name = %s %s %q", refOf(fourth), fourth.Outcome, fourth.Detail)
	}
}

func TestWarningsComeWithThePlanAndStopNothing(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("tidy", verbtest.FindsNone, "tierr", "L1")
	p, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "tidy", Request: "be quick", Overrides: loop.Overrides{MaxIterations: 2}})
	if err != nil || len(p.Warnings) == 0 || !strings.Contains(strings.Join(p.Warnings, "\n"), "tierr") {
		t.Errorf("warnings = %q, %v, want the unknown key", p.Warnings, err)
	}
	if p.Firing.Request != "be quick" || p.Firing.Overrides.MaxIterations != 2 || p.Firing.Trigger != "manual" || p.Target.Definition.Name != "tidy" {
		t.Errorf("plan = %+v", p.Firing)
	}
}

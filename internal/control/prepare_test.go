package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/loop"
)

func refOf(v RunView) string { return fmt.Sprintf("%s#%d", v.Loop, v.N) }

func TestWhatCannotRunIsRefusedBeforeItStarts(t *testing.T) {
	r := newRig(t)
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
		"a scope that is no glob": {
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
			r.define("x", "true", c.keys...)
			_, err := r.Prepare(t.Context(), RunRequest{Loop: "x"})
			wantFault(t, err, c.exit, c.what, c.why, c.fix)
		})
	}
	if row := r.row("x"); row.LastN != 0 {
		t.Errorf("a refused run got number %d", row.LastN)
	}
}

func TestPreparingRefusesWhatFilesDoNotSay(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		req            RunRequest
		exit           int
		what, why, fix string
	}{
		"until without an agent": {RunRequest{Until: "true"}, loop.ExitMissing, "cannot run", "no agent is named", "--agent-command"},
		"until without its program": {
			RunRequest{Until: "nope-4", Overrides: loop.Overrides{AgentCommand: "true"}}, loop.ExitMissing, `--until: program "nope-4"`, "not on PATH", "correct --until",
		},
		"an agent of the command line": {
			RunRequest{Until: "true", Overrides: loop.Overrides{AgentCommand: "nope-5"}}, loop.ExitMissing, `agent_command: program "nope-5"`, "", "install it",
		},
		"a scope that is no glob": {
			RunRequest{Until: "true", Scope: []string{"[a"}, Overrides: loop.Overrides{AgentCommand: "true"}},
			loop.ExitNotReady, "cannot run", "scope: ", "correct the glob",
		},
		"a tier of confinement that there is not": {
			RunRequest{Until: "true", Overrides: loop.Overrides{AgentCommand: "true", Sandbox: "ful"}}, loop.ExitUsage, `no sandbox "ful"`, "", "use one of: full, landlock",
		},
		"an unknown loop": {RunRequest{Loop: "nobody"}, loop.ExitNotFound, `"nobody"`, "", "--until"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Prepare(t.Context(), c.req)
			wantFault(t, err, c.exit, c.what, c.why, c.fix)
		})
	}
	r.define("alone", "true", "tier", "L3", "sandbox", "full")
	_, err := r.Prepare(t.Context(), RunRequest{Loop: "alone", Overrides: loop.Overrides{Sandbox: "none"}})
	wantFault(t, err, loop.ExitRefused, "alone cannot run", "sandbox: none confines nothing", "set sandbox: full")
	write(t, r.Root(), ".loops/a..b/loop.config.yaml", "")
	r.define("a..b", "true")
	_, err = r.Prepare(t.Context(), RunRequest{Loop: "a..b"})
	wantFault(t, err, loop.ExitNotReady, `"a..b"`, "cannot be part of a branch's name", "lower-case words")
}

func TestCommandsThatTheShellUnderstandsAreNotRefused(t *testing.T) {
	r := newRig(t)
	write(t, r.Root(), "bin/tool", "#!/bin/sh\n")
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
			if err := r.runnable(t.Context(), d); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		})
	}
}

func TestProgramsAreLookedForOnThePathOfTheCaller(t *testing.T) {
	r := newRig(t)
	bin := t.TempDir()
	d := loop.Definition{Name: "x", Tier: loop.TierAssisted, Sandbox: "none", AgentCommand: "tool-of-mine"}.WithDefaults()
	r.Environ = []string{"HOME=/nowhere", "PATH=" + bin + string(os.PathListSeparator) + "/usr/bin:/bin"}
	wantFault(t, r.runnable(t.Context(), d), loop.ExitMissing, `"tool-of-mine"`, "", "install it")
	write(t, bin, "tool-of-mine", "#!/bin/sh\n")
	wantFault(t, r.runnable(t.Context(), d), loop.ExitMissing, `"tool-of-mine"`, "", "install it")
	if err := os.Chmod(filepath.Join(bin, "tool-of-mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.runnable(t.Context(), d); err != nil {
		t.Error(err)
	}
}

func TestTheFirstWordIsTheProgramOrNothing(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a program":                   {"go test ./...", "go"},
		"space around it":             {"  \n go\ttest", "go"},
		"signs in its name":           {"clang++-18.1_x -c", "clang++-18.1_x"},
		"a variable":                  {"CI=1 npm test", "npm"},
		"an empty variable":           {"CI= npm test", "npm"},
		"several":                     {"A=1 B=x=y,z npm", "npm"},
		"only variables":              {"A=1 B=2", ""},
		"a value in quotes":           {`A="x y z" npm`, ""},
		"a value in quotes, one word": {`A="x" npm`, ""},
		"a value of a command":        {"A=$(b c d) npm", ""},
		"a value of backquotes":       {"A=`b c d` npm", ""},
		"a value with an escape":      {`A=x\ y npm`, ""},
		"a path":                      {"./x y", ""},
		"an absolute path":            {"/bin/sh", ""},
		"a path with a folder":        {"a/b c", ""},
		"a subshell":                  {"(cd x && y)", ""},
		"a semicolon":                 {"a; b", ""},
		"quotes":                      {"'a' b", ""},
		"a pipe":                      {"a|b", ""},
		"a function":                  {"f () { :; }; f", ""},
		"a function without a space":  {"f() { :; }; f", ""},
		"a home":                      {"~/x", ""},
		"other letters":               {"prüfe x", ""},
		"nothing":                     {"", ""},
		"an equals sign alone":        {"= x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := firstWord(c.line); got != c.want {
				t.Errorf("firstWord(%q) = %q, want %q", c.line, got, c.want)
			}
		})
	}
}

func TestTheFirstWordIsAlwaysAPlainWordOfTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("ab =/'\"\\$(`);-.\n\t"))),
		).Draw(t, "line")
		got := firstWord(line)
		if strings.ContainsAny(got, "/'\"\\$`();|&<>= \t\n") {
			t.Fatalf("firstWord(%q) = %q", line, got)
		}
		if got != "" && !slices.Contains(strings.Fields(line), got) {
			t.Fatalf("firstWord(%q) = %q, which is no word of it", line, got)
		}
	})
}

func TestARepairHasOneNameForOneCommandAndScope(t *testing.T) {
	if a, b := untilName("go test", []string{"a", "b"}), untilName("go test", []string{"a", "b"}); a != b {
		t.Errorf("names %s and %s differ", a, b)
	}
	// Runs are found by this name, so that another version must make it, too.
	if got := untilName("go test ./...", []string{"**/*"}); got != "until-14mzv9i" {
		t.Errorf("name = %s", got)
	}
	seen := map[string]string{}
	for _, c := range []struct {
		command string
		scope   []string
	}{
		{"go test", nil},
		{"go test ", nil},
		{"go test", []string{"a"}},
		{"go test", []string{"a", "b"}},
		{"go test", []string{"b", "a"}},
		{"go test", []string{"ab"}},
		{"go", []string{"test", "a"}},
		{"go test a", nil},
	} {
		name, what := untilName(c.command, c.scope), fmt.Sprintf("%q", c)
		if seen[name] != "" {
			t.Errorf("%s and %s are both %s", what, seen[name], name)
		}
		seen[name] = what
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s is no name for a branch", name)
		}
	}
}

func TestARepairIsFoundAgainByItsNameAndNumberedOn(t *testing.T) {
	r := newRig(t)
	req := RunRequest{Until: "test -f src/fixed", Overrides: loop.Overrides{AgentCommand: strings.ReplaceAll(writesTwo, "src/a.txt", "src/fixed"), Sandbox: "none"}}
	first := r.run(req)
	if first.Outcome != loop.OutcomeProposed || first.Loop != untilName(req.Until, []string{"**/*"}) || first.Protocol != loop.ProtocolSpec {
		t.Fatalf("run = %s %s %s %q", first.Loop, first.Protocol, first.Outcome, first.Detail)
	}
	if second := r.run(req); second.Loop != first.Loop || second.N != 2 || second.Reason != loop.ReasonStepWaiting {
		t.Errorf("again = %s %s, want %s#2, which waits for the answer to the first", refOf(second), second.Reason, first.Loop)
	}
	if _, err := r.Reject(t.Context(), first.Approval, loop.Answer{By: "Ada"}); err != nil {
		t.Fatal(err)
	}
	if third := r.run(RunRequest{Loop: first.Loop}); third.N != 3 || third.Reason != loop.ReasonRejected {
		t.Errorf("after a no = %s %s %q", refOf(third), third.Outcome, third.Detail)
	}
	if fourth := r.run(RunRequest{Loop: first.Loop, Request: "without a sleep"}); fourth.N != 4 || fourth.Outcome != loop.OutcomeProposed {
		t.Errorf("by its name = %s %s %q", refOf(fourth), fourth.Outcome, fourth.Detail)
	}
}

func TestWarningsComeWithThePlanAndStopNothing(t *testing.T) {
	r := newRig(t)
	r.define("tidy", findsNone, "tierr", "L1")
	p, err := r.Prepare(t.Context(), RunRequest{Loop: "tidy", Request: "be quick", Overrides: loop.Overrides{MaxIterations: 2}})
	if err != nil || len(p.Warnings) == 0 || !strings.Contains(strings.Join(p.Warnings, "\n"), "tierr") {
		t.Errorf("warnings = %q, %v, want the unknown key", p.Warnings, err)
	}
	if p.Firing.Request != "be quick" || p.Firing.Overrides.MaxIterations != 2 || p.Firing.Trigger != "manual" || p.Target.Definition.Name != "tidy" {
		t.Errorf("plan = %+v", p.Firing)
	}
}

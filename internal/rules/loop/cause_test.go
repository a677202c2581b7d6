package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each switch with its words, and what clears it for the loop fix.
var switches = map[string]struct {
	set    KillSwitch
	words  string
	clears string
	all    bool // it stops all loops
}{
	"the file of all loops":     {KillSwitch{Path: ".loops/PAUSED"}, ".loops/PAUSED", "pawl resume --all", true},
	"one that cannot be read":   {KillSwitch{Path: ".loops/PAUSED", Unread: "x: (y)"}, ".loops/PAUSED (cannot be read: x: (y))", "pawl resume --all", true},
	"the file of the loop":      {KillSwitch{Path: ".loops/fix/PAUSED"}, ".loops/fix/PAUSED", "pawl resume fix", false},
	"the file of another loop":  {KillSwitch{Path: ".loops/b/PAUSED"}, ".loops/b/PAUSED", "pawl resume b", false},
	"a path of the definition":  {KillSwitch{Path: "ops/off"}, "ops/off", "remove ops/off, or take it out of kill_switch", false},
	"the label":                 {KillSwitch{Label: "https://x.test/7"}, "the label loop-pause is on https://x.test/7", "remove the label from https://x.test/7", false},
	"a label that is not known": {KillSwitch{Unread: "no login"}, "the label loop-pause cannot be asked for, which counts as set at L3: no login", "gh auth status", false},
	"that of the loop":          {KillSwitch{Scope: SwitchLoop}, "pawl pause", "pawl resume fix", false},
	"that of the workspace":     {KillSwitch{Scope: SwitchWorkspace}, "`pawl pause --all`", "pawl resume --all", true},
	"that of the store":         {KillSwitch{Scope: SwitchStore}, "`pawl pause --everywhere`", "pawl resume --everywhere", true},
	"none":                      {KillSwitch{}, "", "pawl resume fix", false},
}

func TestASwitchIsNamedAndReadByItsName(t *testing.T) {
	for name, c := range switches {
		if got := c.set.String(); got != c.words {
			t.Errorf("%s: %q, want %q", name, got, c.words)
		}
		if got := c.set.ClearedBy("fix").String(); got != c.clears {
			t.Errorf("%s is cleared by %q, want %q", name, got, c.clears)
		}
		if d := cmp.Diff(c.set, switchNamed(c.words)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if c.set.StopsAll() != c.all {
			t.Errorf("%s stops all: %v", name, c.set.StopsAll())
		}
	}
	row := Switch{Scope: SwitchStore, By: Actor{Who: "ann"}, At: time.Unix(0, 0), Why: "see ops/off"}
	if got := row.KillSwitch().String(); got != row.String() || switchNamed(got) != (KillSwitch{Scope: SwitchStore}) {
		t.Errorf("a row of the store is named %q, which reads as %+v", got, switchNamed(got))
	}
}

func TestARowWithoutACauseIsReadByItsWords(t *testing.T) {
	for name, c := range map[string]struct {
		run     Run
		subject string
		want    Cause
	}{
		"nothing":                    {Run{Outcome: OutcomeQuiet, Reason: ReasonSensedNothing}, "", Cause{}},
		"a pull request":             {Run{Outcome: OutcomeProposed, Reason: ReasonApproved}, "pr=https://h/1", Cause{PullRequest: "https://h/1"}},
		"a pull request of an agent": {Run{Outcome: OutcomeProposed, Reason: ReasonGatesPass}, "pr=31", Cause{Item: "pr=31"}},
		"a push that failed":         {Run{Outcome: OutcomeDone, Reason: ReasonGatesPass}, "unpushed=main", Cause{Unpushed: "main"}},
		"a push without gates":       {Run{Outcome: OutcomeDone, Reason: ReasonGatesPass}, "ungated=origin/main", Cause{Ungated: "origin/main"}},
		"an item":                    {Run{Outcome: OutcomeLanded, Reason: ReasonApproved}, "a thing", Cause{Item: "a thing"}},
		"files that are missing": {
			Run{Outcome: OutcomeFailed, Reason: ReasonUnfilled, Detail: "sub is not there; fetch them in the checkout: git submodule update --init --recursive sub && git lfs pull"},
			"",
			Cause{Fetch: "git submodule update --init --recursive sub && git lfs pull"},
		},
		"git's configuration changed": {
			Run{Outcome: OutcomeRefused, Reason: ReasonGitConfig, Detail: "the repository's git configuration changed since it was registered: hook x; undo it"},
			"reason=git_config",
			Cause{GitChange: true, Item: "reason=git_config"},
		},
		"git's configuration is refused": {
			Run{Outcome: OutcomeRefused, Reason: ReasonGitConfig, Detail: "the repository's git configuration is refused: include x; take it out"},
			"reason=git_config",
			Cause{Item: "reason=git_config"},
		},
		"words of an agent": {Run{Outcome: OutcomeEscalated, Reason: ReasonAgentEscalated, Detail: "is .loops/PAUSED set?"}, "", Cause{}},
	} {
		if d := cmp.Diff(c.want, CauseOf(c.run, c.subject)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		c.run.Cause = c.want
		if got := c.run.Subject(); got != c.subject && c.run.Outcome != OutcomeEscalated {
			t.Errorf("%s: its subject is %q, want %q", name, got, c.subject)
		}
	}
}

// What details of paused runs said, beside the names of switches.
func TestTheDetailOfAPausedRunNamesItsSwitch(t *testing.T) {
	file, all := KillSwitch{Path: ".loops/fix/PAUSED"}, KillSwitch{Path: ".loops/PAUSED"}
	for detail, want := range map[string]KillSwitch{
		"`pawl pause`": {Scope: SwitchLoop},
		"land: the kill switch is set: .loops/fix/PAUSED":                                          file,
		"land: the kill switch is set: ops/off (cannot be read: lstat ops/off: not a directory)":   {Path: "ops/off", Unread: "lstat ops/off: not a directory"},
		"land: the kill switch is set: the label loop-pause is on https://x.test/7":                {Label: "https://x.test/7"},
		"land: the kill switch is set: the loop is paused: .loops/PAUSED":                          all,
		"land: the kill switch is set: apply run_1/land: the loop is paused by `pawl pause`":       {Scope: SwitchLoop},
		"land: the kill switch is set: apply run_1/land: the loop is paused by `pawl pause --all`": {Scope: SwitchWorkspace},
		"push: the kill switch was set: .loops/PAUSED: signal: killed":                             all,
		"push: the kill switch was set: `pawl pause --everywhere`: signal: killed":                 {Scope: SwitchStore},
		"push: the kill switch was set: pawl was asked to end: signal: killed":                     {},
		"agents/dev has enabled: false; set it to true to let it work":                             {},
	} {
		got := CauseOf(Run{Outcome: OutcomePaused, Reason: ReasonKillSwitch, Detail: detail}, "").Switch
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", detail, d)
		}
	}
}

func TestTheSubjectOfARunFollowsFromItsOutcome(t *testing.T) {
	item, pushed := Cause{Item: "the thing"}, Cause{Item: "the thing", Ungated: "origin/main"}
	for name, c := range map[string]struct {
		run  Run
		want string
	}{
		"an item":                      {Run{Outcome: OutcomeDone, Reason: ReasonGatesPass, Cause: item}, "the thing"},
		"what was pushed goes before":  {Run{Outcome: OutcomeDone, Reason: ReasonGatesPass, Cause: pushed}, "ungated=origin/main"},
		"a pull request":               {Run{Outcome: OutcomeProposed, Reason: ReasonApproved, Cause: Cause{PullRequest: "https://h/1"}}, "pr=https://h/1"},
		"a refusal, whatever its item": {Run{Outcome: OutcomeRefused, Reason: ReasonScope, Cause: item}, "reason=scope"},
		"left to a person":             {Run{Outcome: OutcomeGaveUp, Reason: ReasonGateFailed}, "reason=gate_failed"},
		"left to a person, an item":    {Run{Outcome: OutcomeEscalated, Reason: ReasonGateFailed, Cause: item}, "the thing"},
		"it has not ended":             {Run{Cause: item}, "the thing"},
	} {
		if got := c.run.Subject(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

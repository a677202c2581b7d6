package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/definitions/guidance"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// quietly is a run of an engine that says nothing to anybody.
func quietly(t *testing.T) *cycle {
	t.Helper()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	e := New(Deps{Home: t.TempDir(), Now: func() time.Time { return now }})
	c := e.newCycle(Target{}, Firing{}, loop.Definition{})
	c.run, c.id = loop.Run{ID: "run_1"}, loop.Run{ID: "run_1"}
	c.said = e.newTranscript(c.run.ID)
	return c
}

func TestARunIsOverWhenItsIterationsAre(t *testing.T) {
	fail := plan.Attempt{Verdict: loop.VerdictFail}
	again := plan.Settlement{Outcome: loop.OutcomeFailed, Reason: loop.ReasonGateFailed, Detail: "verify failed:\nline 2", Halt: true, Again: true}
	last := again
	last.Again = false
	single := ending{outcome: loop.OutcomeFailed, reason: loop.ReasonGateFailed, detail: "verify failed", halt: true}
	all := single
	all.reason, all.detail = loop.ReasonMaxIterations, "3 of 3 iterations are used (2 times: a gate failed; the agent's program failed); the last one: verify failed"
	passed := single
	passed.outcome = loop.OutcomeProposed
	for name, c := range map[string]struct {
		most, worked int64
		s            plan.Settlement
		success      loop.Outcome
		want         ending
	}{
		"all are used":               {3, 3, again, "", all},
		"some are left":              {3, 2, again, "", single},
		"the step is over anyway":    {3, 3, last, "", single},
		"there is but one":           {1, 1, again, "", single},
		"an earlier item has passed": {3, 1, last, loop.OutcomeProposed, passed},
		"two of two":                 {2, 2, last, "", single},
	} {
		run := progress{worked: int(c.worked), success: c.success}
		run.its = []loop.Iteration{{Reason: loop.ReasonGateFailed}, {Reason: loop.ReasonAgentExit}, {Reason: loop.ReasonGateFailed}}
		if end := run.endAfter(c.s, fail, false, false, int(c.most)); end == nil || *end != c.want {
			t.Errorf("%s: %+v, want %+v", name, end, c.want)
		}
	}
}

// sources is a memory that only says what to look at.
type sources struct {
	Session
	list []Source
}

func (s sources) Sources() []Source { return s.list }

func TestARunFindsNothingToDoWhenEverySourceThatDecidesSaysSo(t *testing.T) {
	known, empty := Source{Name: "known", Text: "x"}, Source{Name: "diff", Quiet: QuietOnEmpty}
	change := Source{Name: "change", Text: "2 files", Quiet: QuietOnEmpty}
	passes := Source{Name: "passes", Text: "ok", Quiet: QuietOnPass}
	for name, c := range map[string]struct {
		list []Source
		want loop.Reason
	}{
		"none decides":        {[]Source{known}, ""},
		"there is none":       {nil, ""},
		"one finds nothing":   {[]Source{known, empty}, loop.ReasonSensedNothing},
		"one finds something": {[]Source{known, change}, ""},
		"one of two does":     {[]Source{empty, change}, ""},
		"one passes":          {[]Source{passes}, loop.ReasonSensedNothing},
		"both find nothing":   {[]Source{passes, empty}, loop.ReasonSensedNothing},
	} {
		run := quietly(t)
		run.memory.session = sources{list: c.list}
		if end, err := run.sensed.readSources(t.Context()); end != nil || err != nil || run.sensed.Nothing != c.want || len(run.sensed.Observations) != len(c.list) {
			t.Errorf("%s: %+v, %v, %+v, want %q", name, end, err, run.sensed, c.want)
		}
	}
	run := quietly(t)
	if got := sensedText(run.sensed.Observations); got != "the loop's memory" {
		t.Errorf("without a look: %q", got)
	}
	run.sensed.Observations = []Observation{{Source: "a", Text: "x"}, {Source: "b", Exit: 1}}
	if got, want := sensedText(run.sensed.Observations), "a (exit 0): x\nb (exit 1): no output"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTurnsThatWereOnlyNotedAreCountedOnce(t *testing.T) {
	row := func(n int, ended string, input int64) loop.Turn {
		return loop.Turn{RunID: "run_1", N: n, Ended: ended, Usage: loop.Usage{Input: input}}
	}
	other := row(2, "exited", 5)
	other.RunID = "run_2"
	for name, c := range map[string]struct {
		saved, noted, want []loop.Turn
	}{
		"nothing was noted":             {[]loop.Turn{row(1, "exited", 5)}, nil, []loop.Turn{row(1, "exited", 5)}},
		"one more":                      {[]loop.Turn{row(2, "exited", 5)}, []loop.Turn{row(1, "exited", 7)}, []loop.Turn{row(1, "exited", 7), row(2, "exited", 5)}},
		"the end of one":                {[]loop.Turn{row(1, "", 9)}, []loop.Turn{row(1, "exited", 7)}, []loop.Turn{row(1, "exited", 7)}},
		"one that used more":            {[]loop.Turn{row(1, "", 5)}, []loop.Turn{row(1, "", 7)}, []loop.Turn{row(1, "", 7)}},
		"one that used less":            {[]loop.Turn{row(1, "", 9)}, []loop.Turn{row(1, "", 7)}, []loop.Turn{row(1, "", 9)}},
		"one whose end is known":        {[]loop.Turn{row(1, "exited", 5)}, []loop.Turn{row(1, "exited", 7)}, []loop.Turn{row(1, "exited", 5)}},
		"one of another run":            {[]loop.Turn{row(1, "exited", 5)}, []loop.Turn{other}, []loop.Turn{row(1, "exited", 5)}},
		"one without a number, and one": {nil, []loop.Turn{row(0, "exited", 7), row(1, "exited", 7)}, []loop.Turn{row(1, "exited", 7)}},
	} {
		run := quietly(t)
		if c.noted != nil {
			text, err := json.Marshal(c.noted)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(run.writeNotes(append(text, []byte("        ")...)), run.turns.file.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(c.want, run.withNoted(c.saved)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		// A row is written again unless its end is saved already.
		writes := 0
		for _, row := range c.want {
			if !slices.ContainsFunc(c.saved, func(s loop.Turn) bool { return s.N == row.N && s.Ended != "" }) {
				writes++
			}
		}
		if run.countDead(c.saved); len(run.staged) != writes || run.money.turns != len(c.want) {
			t.Errorf("%s: %d rows are written and %d turns counted, want %d of %d", name, len(run.staged), run.money.turns, writes, len(c.want))
		}
	}
	run := quietly(t)
	if err := errors.Join(run.writeNotes([]byte("[]")), run.turns.file.Close()); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{filepath.Dir(run.notesFile("run_1")): 0o700, run.notesFile("run_1"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want it for its owner only", name, info.Mode(), err)
		}
	}
	run = quietly(t)
	long, short := []byte(`[{"RunID":"run_1","N":1,"Ended":"exited"},{"RunID":"run_1","N":2}]`), []byte(`[]`)
	if err := errors.Join(run.writeNotes(long), run.writeNotes(short), run.turns.file.Close()); err != nil {
		t.Fatal(err)
	}
	if got := run.withNoted(nil); len(got) != 0 {
		t.Errorf("behind what was noted last there is more: %+v", got)
	}
	if info, err := os.Stat(run.notesFile("run_1")); err != nil || info.Size() != int64(len(long)) {
		t.Errorf("the notes became shorter: %v, %v", info, err)
	}
}

func TestThePhaseOfADeadRunIsTheOneThatItMarked(t *testing.T) {
	run := quietly(t)
	dead := loop.Run{ID: "run_1", Phase: loop.PhaseDecide}
	if got := run.markedPhase(dead); got != loop.PhaseDecide {
		t.Errorf("without a mark: %s", got)
	}
	run.openMarks()
	for _, phase := range loop.Phases { // A shorter one overwrites a longer one.
		run.enterPhase(phase)
		if got := run.markedPhase(dead); got != phase {
			t.Errorf("marked %s, read %s", phase, got)
		}
	}
	if _, err := run.marks.WriteAt([]byte("nothing that is  "), 0); err != nil {
		t.Fatal(err)
	}
	if got := run.markedPhase(dead); got != loop.PhaseDecide {
		t.Errorf("of a mark that says nothing: %s", got)
	}
	run.closeMarks()
	if err := run.dropMarks(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(run.markFile("run_1")); err != nil {
		t.Errorf("of a run without a copy the mark is removed: %v", err)
	}
	run.tree.copied = true
	if err := run.dropMarks(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(run.Home, "runs")); err != nil || len(left) != 0 {
		t.Errorf("files stay behind: %v, %v", left, err)
	}
}

func TestASecretThatAChangeAddsIsNamedAndNotShown(t *testing.T) {
	const secret = "tk-9f8e7d6c5b4a3210ffee"
	secrets := redact.New(redact.Secret{Name: "API_KEY", Value: secret})
	file := func(text string) policy.File { return policy.File{Mode: 0o100644, Text: text, Size: int64(len(text))} }
	for name, c := range map[string]struct {
		change policy.Change
		want   []string
	}{
		"nothing secret":      {policy.Change{Path: "a", New: file("x\n")}, nil},
		"in a new file":       {policy.Change{Path: "a", New: file("x\n" + secret + "\n")}, []string{"a: line 2 holds a secret (API_KEY)"}},
		"where it stood":      {policy.Change{Path: "a", Old: file(secret), New: file("x\n" + secret + "\n")}, nil},
		"once more":           {policy.Change{Path: "a", Old: file(secret), New: file(secret + "\nx\n" + secret + "\n")}, []string{"a: line 3 holds a secret (API_KEY)"}},
		"in a file that goes": {policy.Change{Path: "a", Old: file(secret)}, nil},
	} {
		if diff := cmp.Diff(c.want, findLeaks(secrets, []policy.Change{c.change})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, old := range []policy.File{{}, file("x")} {
		got := findLeaks(secrets, []policy.Change{{Path: "a-" + secret, Old: old, New: file("x")}})
		if (old.Mode == 0) != (len(got) == 1 && strings.HasSuffix(got[0], ": its name holds a secret")) || strings.Contains(strings.Join(got, ""), secret) {
			t.Errorf("in a name, with a file there before %v: %q", old.Mode != 0, got)
		}
	}
}

func TestALongConversationIsLeftAtItsBounds(t *testing.T) {
	talk := func(turns int, tokens int64) loop.Session {
		return loop.Session{ID: "s", Turns: turns, Totals: []loop.ModelUsage{{Usage: loop.Usage{Input: tokens - 10}}, {Usage: loop.Usage{Output: 10}}}}
	}
	for name, c := range map[string]struct {
		s    loop.Session
		goes bool
	}{
		"short":           {talk(1, 100), true},
		"just not long":   {talk(19, 299_999), true},
		"of many turns":   {talk(20, 100), false},
		"of many tokens":  {talk(1, 300_000), false},
		"of both of them": {talk(30, 900_000), false},
	} {
		run := quietly(t)
		run.agent.talk = &loop.Session{ID: "old"}
		if run.agent.resumeSession(c.s); (run.agent.talk != nil) != c.goes || c.goes && run.agent.talk.ID != "s" {
			t.Errorf("%s: the next turn continues conversation %+v", name, run.agent.talk)
		}
	}
}

func TestARunIsTakenOnlyFromAHolderThatWritesNoMore(t *testing.T) {
	one, self := loop.Holder{PID: 1, Host: "a"}, loop.Holder{PID: 2, Host: "a"}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	held, lapsed := now.Add(time.Second), now.Add(-time.Second)
	stubborn := errors.New("it cannot be ended")
	for name, c := range map[string]struct {
		holder loop.Holder
		state  loop.HolderState
		lease  time.Time
		drives bool
		end    error
		dead   loop.Holder
		take   bool
		ended  bool
		err    error
	}{
		"its process is gone":             {holder: one, state: loop.HolderDead, lease: held, dead: one, take: true},
		"it runs":                         {holder: one, state: loop.HolderRunning, lease: held},
		"it runs, and its lease lapsed":   {holder: one, state: loop.HolderRunning, lease: lapsed},
		"it is stopped for a moment":      {holder: one, state: loop.HolderStopped, lease: held},
		"it is stopped for long":          {holder: one, state: loop.HolderStopped, lease: lapsed, dead: one, take: true, ended: true},
		"it is stopped and cannot be hit": {holder: one, state: loop.HolderStopped, lease: lapsed, end: stubborn, dead: one, take: true, ended: true, err: stubborn},
		"it is elsewhere":                 {holder: one, state: loop.HolderElsewhere, lease: held},
		"it is elsewhere, for long":       {holder: one, state: loop.HolderElsewhere, lease: lapsed, take: true},
		"it is elsewhere, to the moment":  {holder: one, state: loop.HolderElsewhere, lease: now},
		"this process drives it":          {holder: self, state: loop.HolderRunning, lease: lapsed, drives: true, dead: self},
		"this process left it":            {holder: self, state: loop.HolderRunning, lease: held, dead: self, take: true},
	} {
		t.Run(name, func(t *testing.T) {
			ended := false
			e := New(Deps{
				Now: func() time.Time { return now }, Self: self, HolderState: func(loop.Holder) loop.HolderState { return c.state },
				EndHolder: func(_ context.Context, h loop.Holder) error { ended = h == one; return c.end },
			})
			if c.drives {
				e.driving.Store("run_1", true)
			}
			dead, take, err := e.findDeadHolder(t.Context(), loop.Run{ID: "run_1", Holder: c.holder, LeaseUntil: c.lease})
			if dead != c.dead || take != c.take || ended != c.ended || !errors.Is(err, c.err) {
				t.Errorf("dead = %v, %v, %v, ended %v", dead, take, err, ended)
			}
		})
	}
}

func TestARecoveryThatCannotGoOnSaysHowAPersonHelps(t *testing.T) {
	why := errors.New("disk full")
	f, ok := errors.AsType[*loop.Fault](RecoverFault("fix", why))
	if !ok || f.What != "recover fix" || f.Why != "disk full" || f.Fix == "" || f.Exit != loop.ExitError || !errors.Is(f, why) {
		t.Errorf("an error without a fix becomes %+v", f)
	}
	own := &loop.Fault{Exit: loop.ExitMissing, What: "open", Why: "no git", Fix: "install git"}
	err := RecoverFault("fix", own)
	if got, ok := errors.AsType[*loop.Fault](err); !ok || got != own || !strings.HasPrefix(err.Error(), "recover fix: ") {
		t.Errorf("one with a fix becomes %v", err)
	}
}

func TestInstructionsThatAProgramAttachesByItselfAreUnseenBelowTheTop(t *testing.T) {
	c := unstarted(loop.Definition{})
	c.agent.guidedPaths = []string{"AGENTS.md", "a/AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md"}
	c.login.actor.Profile.Attaches = []string{"AGENTS.md"}
	if got := strings.Join(c.agent.attachedFiles(), " "); got != "a/AGENTS.md a/b/AGENTS.md" {
		t.Errorf("unseen are %q", got)
	}
}

func TestInstructionsOfTheBaseAreReadOnceForEachBase(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"AGENTS.md": "be brief\n", "src/AGENTS.md": "be kind\n", "src/a.txt": "one\n"})
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	c := unstarted(loop.Definition{Scope: []string{"src/**"}})
	c.target.Repo, c.said = repo, c.newTranscript("run_1")
	c.run.BaseCommit = gittest.Run(t, root, "rev-parse", "HEAD")
	for range 2 {
		if err := c.agent.readGuidance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := c.agent.guidedPaths, []string{"AGENTS.md", "src/AGENTS.md"}; !slices.Equal(got, want) {
		t.Errorf("files = %q, want %q", got, want)
	}
	if !strings.Contains(c.agent.guidance, "be brief") || !strings.Contains(c.agent.guidance, "be kind") {
		t.Errorf("guidance = %q, want the text of both files", c.agent.guidance)
	}
	c.run.BaseCommit = strings.Repeat("0", 40)
	if err := c.agent.readGuidance(t.Context()); err == nil {
		t.Error("the instructions of a commit that is missing were read")
	}
}

func TestTheRepositorysInstructionsStandInBlocksThatTheyCannotEnd(t *testing.T) {
	if got := guidanceText(nil); got != "" {
		t.Errorf("of no file: %q", got)
	}
	unseen := guidance.File{Path: "b/AGENTS.md", Note: "too large"}
	if got := guidanceText([]guidance.File{unseen}); got != "" {
		t.Errorf("of a file that is not given: %q", got)
	}
	one := guidance.File{Path: "AGENTS.md", Given: 3, Text: "be brief"}
	cut := guidance.File{Path: "a/AGENTS.md", Given: 3, Text: "x", Note: "the first 3 bytes"}
	got := guidanceText([]guidance.File{one, unseen, cut})
	_, rest, _ := strings.Cut(got, "\n<<GUIDANCE ")
	word, _, _ := strings.Cut(rest, "\n")
	want := "\n# Project guidance\n" + belowRules + "\n\n## AGENTS.md\n<<GUIDANCE " + word + "\nbe brief\nGUIDANCE " + word +
		"\n\n## a/AGENTS.md (the first 3 bytes)\n<<GUIDANCE " + word + "\nx\nGUIDANCE " + word + "\n"
	if got != want || len(word) != 12 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if other := guidanceText([]guidance.File{cut}); strings.Contains(other, word) {
		t.Error("other files have the same word")
	}
}

func TestTheSwitchOfAllLoopsIsNotClearedByResumingOne(t *testing.T) {
	for sw, c := range map[string]struct {
		set loop.KillSwitch
		all bool
	}{
		".loops/PAUSED":                               {loop.KillSwitch{Path: ".loops/PAUSED"}, true},
		".loops/PAUSED (cannot be read: x)":           {loop.KillSwitch{Path: ".loops/PAUSED", Unread: "x"}, true},
		".loops/fix/PAUSED":                           {loop.KillSwitch{Path: ".loops/fix/PAUSED"}, false},
		".loops/PAUSED2/PAUSED":                       {loop.KillSwitch{Path: ".loops/PAUSED2/PAUSED"}, false},
		"`pawl pause fix`":                            {loop.KillSwitch{Scope: loop.SwitchLoop}, false},
		"ops/off (cannot be read: x)":                 {loop.KillSwitch{Path: "ops/off", Unread: "x"}, false},
		"the label loop-pause is on https://x.test/7": {loop.KillSwitch{Label: "https://x.test/7"}, false},
	} {
		set, all := c.set, c.all
		if set.StopsAll() != all {
			t.Errorf("%s stops all: %v", sw, !all)
		}
		f, ok := errors.AsType[*loop.Fault](PausedFault("fix", set))
		want := "`pawl resume fix` (or `pawl resume --all`) clears it"
		switch {
		case all:
			want = "`pawl resume --all` clears it; `pawl resume fix` does not"
		case strings.Contains(sw, "PAUSED2"): // The switch of another loop, which the definition names.
			want = "`pawl resume PAUSED2`; `pawl check fix` lists what stops the loop"
		case strings.HasPrefix(sw, "ops"):
			want = "remove ops/off, or take it out of kill_switch; `pawl check fix` lists what stops the loop"
		case strings.HasSuffix(sw, "/7"):
			want = "remove the label from https://x.test/7; `pawl check fix` lists what stops the loop"
		}
		if !ok || f.Advice().String() != want || f.Exit != loop.ExitPaused || f.What != "fix is paused" || f.Why != "the kill switch is set: "+sw {
			t.Errorf("%s: %+v", sw, f)
		}
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAnErrorThatMayPassLeavesARunToALaterTry(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"anything":                    {t.Context(), errors.New("no"), false},
		"the process ends":            {stopped, errors.New("no"), true},
		"somebody else has the run":   {t.Context(), fmt.Errorf("save: %w", loop.ErrLeaseLost), true},
		"the disk is full":            {t.Context(), &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, true},
		"the disk fails":              {t.Context(), &os.PathError{Op: "write", Path: "x", Err: syscall.EIO}, false},
		"a program is missing":        {t.Context(), &loop.Fault{Exit: loop.ExitMissing}, true},
		"a fault of another kind":     {t.Context(), &loop.Fault{Exit: loop.ExitError}, false},
		"a fault without a status":    {t.Context(), &loop.Fault{}, false},
		"a program that is not found": {t.Context(), os.ErrNotExist, false},
	} {
		if got := quietly(t).tree.mayPassLater(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatWasLostIsSaidOnceForEachThing(t *testing.T) {
	c := quietly(t)
	c.tree.noteLoss("one thing is lost")
	c.tree.noteLoss("another, too")
	if want := "one thing is lost; another, too"; c.tree.unkept != want {
		t.Errorf("it says %q, want %q", c.tree.unkept, want)
	}
}

func TestTheEndOfALongTextIsKeptWhole(t *testing.T) {
	if text := strings.Repeat("x", mostWords); lastOf(text) != text {
		t.Errorf("a text of %d bytes was cut", mostWords)
	}
	if got, want := lastOf("a"+strings.Repeat("x", mostWords)), "[…] "+strings.Repeat("x", mostWords); got != want {
		t.Errorf("%q", got)
	}
	if got, want := lastOf("ä"+strings.Repeat("x", mostWords-1)), "[…] "+strings.Repeat("x", mostWords-1); got != want {
		t.Errorf("half a character is left: %q", got)
	}
}

func TestATurnWithoutAReportIsToldByItsLastWordsAndWhatWasSensed(t *testing.T) {
	c := quietly(t)
	if got, want := c.tree.wordsOf(turnResult{}, c.sensed.Observations), loop.WordsMark+" none"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.sensed.Observations = []Observation{{Source: "ls", Text: "a file"}}
	if got, want := c.tree.wordsOf(turnResult{printed: " printed\n"}, c.sensed.Observations), loop.WordsMark+" printed\n"+loop.SensedMark+" ls (exit 0): a file"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := c.tree.wordsOf(turnResult{Result: agent.Result{Message: "said"}}, c.sensed.Observations); !strings.HasPrefix(got, loop.WordsMark+" said\n") {
		t.Errorf("%q", got)
	}
}

func TestTheReasonInTheRunLogIsOneWordAndHasAnEnd(t *testing.T) {
	for _, c := range []struct {
		reason loop.Reason
		detail string
		want   string
	}{
		{loop.ReasonAgentEscalated, "no  key\nfor it", "no_key_for_it"},
		{loop.ReasonAgentBlocked, "no key", "no_key"},
		{loop.ReasonAgentBlocked, "", string(loop.ReasonAgentBlocked)},
		{loop.ReasonGateFailed, "no key", string(loop.ReasonGateFailed)},
		{loop.ReasonAgentBlocked, strings.Repeat("ä", 100), strings.Repeat("ä", 100)},
		{loop.ReasonAgentBlocked, strings.Repeat("ä", 101), strings.Repeat("ä", 100)},
	} {
		run := loop.Run{Outcome: loop.OutcomeEscalated, Reason: c.reason, Detail: c.detail}
		if got := run.Subject(); got != "reason="+c.want {
			t.Errorf("%s %q: %q, want %q", c.reason, c.detail, got, c.want)
		}
	}
}

func TestLinesThatCouldReportForTestsAreShownCutAndCounted(t *testing.T) {
	change := func(lines ...string) []policy.Change {
		return []policy.Change{{
			Path: "src/a.go", Old: policy.File{Mode: 0o100644, Text: "package a\n"}, New: policy.File{Mode: 0o100644, Text: "package a\n" + strings.Join(lines, "\n") + "\n"},
		}}
	}
	const line = `w("/dev/stdout")`
	if flags := suspectsIn(change(line)); len(flags) != 1 || !strings.HasPrefix(flags[0], "look at src/a.go:2, ") || !strings.HasSuffix(flags[0], fmt.Sprintf(": %+q", line)) {
		t.Errorf("flags = %q", flags)
	}
	long := line + " // " + strings.Repeat("x", 100-len(line)-4)
	if flags := suspectsIn(change(long)); len(flags) != 1 || !strings.HasSuffix(flags[0], fmt.Sprintf(": %+q", long)) {
		t.Errorf("a line of %d characters: %q", len(long), flags)
	}
	if flags := suspectsIn(change(long + "y")); len(flags) != 1 || !strings.HasSuffix(flags[0], `x\u2026"`) {
		t.Errorf("a longer line: %q", flags)
	}
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprint(line, i))
	}
	if flags := suspectsIn(change(many...)); len(flags) != 10 {
		t.Errorf("ten lines: %q", flags)
	}
	if flags := suspectsIn(change(append(many, line, long)...)); len(flags) != 11 || flags[10] != "and 2 more lines like these" {
		t.Errorf("twelve lines: %q", flags)
	}
}

func TestARunThatIsLostSaysWhoHasIt(t *testing.T) {
	c := quietly(t)
	c.run.N, c.target.Loop.Name = 3, "fix"
	if err := errors.New("no"); !errors.Is(c.lostRunFault(t.Context(), err), err) || c.lostRunFault(t.Context(), nil) != nil {
		t.Error("another error was changed")
	}
	lost := fmt.Errorf("run run_1: %w", &awayError{since: 20 * time.Second, err: errors.New("no route")})
	f, ok := errors.AsType[*loop.Fault](c.lostRunFault(t.Context(), lost))
	if !ok || f.Exit != loop.ExitHeld || f.What != "run fix#3 could not be concluded" || !strings.Contains(f.Why, "did not answer for 20s") || !strings.Contains(f.Advice().String(), "pawl recover") || !errors.Is(f, loop.ErrLeaseLost) {
		t.Errorf("it says %+v", f)
	}
}

func TestOnlyFilesThatCanHoldATestAreLookedAt(t *testing.T) {
	root := t.TempDir()
	files := map[string]int{"a_test.go": 10, "run.sh": 20, "most.txt": maxSource, "more.txt": maxSource + 1}
	for name, size := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(strings.Repeat("x", size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(root, "run.sh"), 0o755), os.Symlink("a_test.go", filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, root, "init", "-q", "-b", "main")
	gittest.Run(t, root, "add", "-A")
	gittest.Run(t, root, "commit", "-q", "-m", "first")
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	read := &treeFiles{ctx: t.Context(), repo: repo}
	if err := read.close(); err != nil {
		t.Errorf("close before anything was read: %v", err)
	}
	base, err := repo.Base(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tree, err := read.readTree(base.Tree)
		if err != nil || strings.Join(tree.Paths, " ") != "a_test.go most.txt run.sh" {
			t.Fatalf("paths = %q, %v", tree.Paths, err)
		}
		if body, err := tree.Read("run.sh"); err != nil || len(body) != files["run.sh"] {
			t.Errorf("run.sh has %d bytes, %v", len(body), err)
		}
	}
	if err := read.close(); err != nil {
		t.Error(err)
	}
	if _, err := (&treeFiles{ctx: t.Context(), repo: repo}).readTree("no-such-tree"); err == nil {
		t.Error("a tree that is not there was read")
	}
}

func TestWhatATurnSaysInTheEndCountsMoreThanWhatItSaidSoFar(t *testing.T) {
	usage := func(input int64) loop.Usage { return loop.Usage{Input: input, Source: loop.UsageReported} }
	for name, c := range map[string]struct {
		res  agent.Result
		want int64
	}{
		"nothing":            {agent.Result{}, 5},
		"a sum":              {agent.Result{Usage: usage(100)}, 100},
		"a sum of one model": {agent.Result{Usage: usage(100), Models: []loop.ModelUsage{{Model: "m", Usage: usage(100)}}}, 100},
	} {
		account := new(spend.Account)
		n := &counter{reported: account.OpenReported("m"), model: "m"}
		n.used(t.Context())(usage(5))
		n.end(c.res)
		if got, _ := account.Total(); got.Input != c.want {
			t.Errorf("%s: %d tokens are booked, want %d", name, got.Input, c.want)
		}
	}
}

func TestALabelThatStopsNothingIsNotSpokenOf(t *testing.T) {
	named := Target{Definition: loop.Definition{Tier: loop.TierUnattended, KillSwitch: "the loop-pause label"}}
	for name, label := range map[string]func(context.Context, *git.Repo) (string, error){
		"nobody asks":      nil,
		"it is not set":    func(context.Context, *git.Repo) (string, error) { return "", nil },
		"there is no host": func(context.Context, *git.Repo) (string, error) { return "", fmt.Errorf("origin: %w", ErrNoCodeHost) },
	} {
		c := quietly(t)
		c.Label = label
		if sw, warning := c.askLabel(t.Context(), named); !sw.IsZero() || warning != "" {
			t.Errorf("%s: switch %q, warning %q", name, sw, warning)
		}
	}
}

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/surface/cli"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

const (
	matrixFile = "testdata/matrix.golden"
	patternDoc = "../../../docs/patterns.md"
)

// scaffolded is what check and doctor report about a definition that pawl new made.
type scaffolded struct {
	Pattern, Tier           string
	Score, Errors, Warnings int
	Check, Doctor           int // exit statuses
}

// scaffoldAll makes every pattern at every tier with the real commands.
func scaffoldAll(t *testing.T) []scaffolded {
	t.Helper()
	var all []scaffolded
	for _, p := range pattern.All() {
		for _, tier := range []string{"L1", "L2", "L3"} {
			dir := t.TempDir()
			if status, _ := pawl(t, dir, "new", "made", "--pattern", p.Name, "--tier", tier); status != 0 {
				t.Fatalf("new --pattern %s --tier %s exits with %d", p.Name, tier, status)
			}
			status, out := pawl(t, dir, "check", "made", "--json")
			var report struct {
				Meta struct{ Score, Errors, Warnings int }
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Fatalf("check --json of %s %s: %v\n%s", p.Name, tier, err, out)
			}
			doctor, _ := pawl(t, dir, "doctor", "made")
			m := report.Meta
			all = append(all, scaffolded{p.Name, tier, m.Score, m.Errors, m.Warnings, status, doctor})
		}
	}
	return all
}

// pawl runs one command in a folder that is not a repository.
func pawl(t *testing.T, dir string, args ...string) (status int, out []byte) {
	t.Helper()
	var stdout bytes.Buffer
	env := outsideEnv(dir, args)
	env.Out = &stdout
	return cli.Run(t.Context(), env), stdout.Bytes()
}

// outsideEnv is a process in a folder that is not a repository.
func outsideEnv(dir string, args []string) cli.Env {
	return cli.Env{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Args: args, Environ: []string{"HOME=" + dir, "PAWL_HOME=" + dir + "/pawl"},
		Dir: dir, Program: "pawl", Width: func() int { return 80 }, Now: time.Now, Exit: func(int) {},
	}
}

func TestEveryPatternStartsReadyToReport(t *testing.T) {
	t.Parallel()
	for _, s := range scaffoldAll(t) {
		if s.Tier != "L1" || s.Pattern == pattern.Custom {
			continue
		}
		if want := (scaffolded{Pattern: s.Pattern, Tier: "L1", Score: 100}); s != want {
			t.Errorf("%s at L1 is %+v, want 100 points, nothing found and exit status 0 twice", s.Pattern, s)
		}
	}
}

func TestTheReadinessOfEveryScaffoldIsAsDrawn(t *testing.T) {
	t.Parallel()
	drawn.File(t, matrixFile, drawMatrix(scaffoldAll(t)))
}

func drawMatrix(all []scaffolded) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-17s %-5s %5s %6s %8s %5s %6s\n", "pattern", "tier", "score", "errors", "warnings", "check", "doctor")
	for _, s := range all {
		fmt.Fprintf(&b, "%-17s %-5s %5d %6d %8d %5d %6d\n", s.Pattern, s.Tier, s.Score, s.Errors, s.Warnings, s.Check, s.Doctor)
	}
	return b.String()
}

func TestThePageOfPatternsIsAsDrawn(t *testing.T) {
	t.Parallel()
	drawn.Sections(t, patternDoc, map[string]string{
		"patterns":                drawPatterns(),
		"readiness of a scaffold": drawReadiness(scaffoldAll(t)),
	})
}

func drawPatterns() string {
	var b strings.Builder
	b.WriteString("| pattern | trigger | locus | recommended | tokens of one run (in / out / agents) | what it does |\n|---|---|---|---|---|---|\n")
	for _, p := range pattern.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %d / %d / %d | %s |\n", p.Name, joinOrDash(p.Triggers, " or "), joinOrDash([]string{p.Locus}, ""),
			joinOrDash(p.Tiers, "/"), p.Tokens.Input, p.Tokens.Output, p.Tokens.Subagents, p.Does)
	}
	return b.String()
}

// joinOrDash joins texts; a dash is an empty list.
func joinOrDash(list []string, by string) string {
	if text := strings.Join(list, by); text != "" {
		return text
	}
	return "–"
}

func drawReadiness(all []scaffolded) string {
	var b strings.Builder
	b.WriteString("| pattern | L1 | L2 | L3 |\n|---|---|---|---|")
	for _, s := range all {
		if s.Tier == "L1" {
			fmt.Fprintf(&b, "\n| `%s` |", s.Pattern)
		}
		fmt.Fprintf(&b, " %s |", s.cell())
	}
	return b.String() + "\n"
}

// cell is the score and what keeps the loop from running.
func (s scaffolded) cell() string {
	text := fmt.Sprintf("%d", s.Score)
	switch {
	case s.Check != 0:
		text += ", to fill in"
	case s.Warnings > 0:
		text += ", warned"
	}
	if s.Doctor != 0 {
		text += ", doctor refuses"
	}
	return text
}

// TestThePageOfCommandsShowsWhatTheyPrint runs its session again.
func TestThePageOfCommandsShowsWhatTheyPrint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "```console\n")
	session, _, ends := strings.Cut(rest, "```\n")
	if !begins || !ends {
		t.Fatal("docs/commands.md has lost its session")
	}
	dir := t.TempDir()
	var got bytes.Buffer
	for line := range strings.Lines(session) {
		command, is := strings.CutPrefix(line, "$ pawl ")
		if !is {
			continue
		}
		got.WriteString(line)
		env := outsideEnv(dir, strings.Fields(command))
		env.Out, env.Err = &got, &got
		if status := cli.Run(t.Context(), env); status != 0 {
			t.Errorf("%s exits with %d", strings.TrimSpace(line), status)
		}
	}
	if diff := cmp.Diff(session, got.String()); diff != "" {
		t.Errorf("the session of docs/commands.md is stale (-document +now)\n%s", diff)
	}
}

package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/acp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

// wire is what went between pawl and a real program, in both directions: lines
// that begin with > went to the program, those with < came from it.
type wire struct {
	Command  string `json:"command"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Session  string `json:"session"`

	lines  []string
	prompt string
}

func readWire(t *testing.T, file, dir string) wire {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	var w wire
	if err := json.Unmarshal([]byte(strings.TrimPrefix(head, "# ")), &w); err != nil {
		t.Fatal(err)
	}
	w.lines = strings.Split(strings.TrimSpace(strings.ReplaceAll(rest, "$DIR", filepath.ToSlash(dir))), "\n")
	for _, line := range w.lines {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Prompt []struct {
					Text string `json:"text"`
				} `json:"prompt"`
			} `json:"params"`
		}
		if json.Unmarshal([]byte(line[2:]), &m) == nil && m.Method == "session/prompt" {
			w.prompt = m.Params.Prompt[0].Text
		}
	}
	return w
}

// player plays the program's side of a wire. It waits for each line that went
// to the program, and compares it with what comes.
type player struct {
	t     *testing.T
	wire  wire
	chunk int
	spec  proc.Spec
}

// Run plays the program.
func (p *player) Run(_ context.Context, s proc.Spec) (proc.Result, error) {
	p.spec = s
	in := bufio.NewReader(s.Stdin)
	for i, line := range p.wire.lines {
		if line[0] == '>' {
			got, err := in.ReadBytes('\n')
			if err != nil {
				p.t.Errorf("line %d: nothing came where the program was told %s", i, line[2:])
				break
			}
			if diff := cmp.Diff(decoded(p.t, []byte(line[2:])), decoded(p.t, got)); diff != "" {
				p.t.Errorf("line %d: the program is told something else than it was (-recorded +told):\n%s", i, diff)
			}
			continue
		}
		for rest := []byte(line[2:] + "\n"); len(rest) > 0; {
			n := len(rest)
			if p.chunk > 0 {
				n = min(n, p.chunk)
			}
			_, _ = s.Stdout.Write(rest[:n])
			rest = rest[n:]
		}
	}
	var more bytes.Buffer
	if _, err := in.WriteTo(&more); err != nil || more.Len() > 0 {
		p.t.Errorf("the program is told more than it was: %s %v", more.String(), err)
	}
	return proc.Result{Ended: proc.Exited, Took: time.Millisecond}, nil
}

func decoded(t *testing.T, line []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Errorf("%q is not JSON: %v", line, err)
	}
	return v
}

// judged is what a run's guard says: every file of the tree may be changed.
func judged(t *testing.T, dir string) func(context.Context, policy.Call) policy.Answer {
	t.Helper()
	scope, err := policy.NewScope([]string{"**/*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := policy.Guard{Scope: scope, Root: filepath.ToSlash(dir)}
	return func(_ context.Context, c policy.Call) policy.Answer { return g.Judge(c) }
}

func play(t *testing.T, file string, chunk int) (agenttest.Turn, string) {
	t.Helper()
	dir := t.TempDir()
	w := readWire(t, file, dir)
	p := &player{t: t, wire: w, chunk: chunk}
	r := agenttest.NewRequest(t, p)
	r.Dir, r.Prompt, r.Command, r.Model, r.Models.Provider = filepath.ToSlash(dir), w.prompt, w.Command, w.Model, w.Provider
	r.Keep, r.Judge = true, judged(t, dir)
	if w.Session != "" {
		r.Session = &loop.Session{ID: w.Session, Turns: 1}
	}
	turn := agenttest.TakeTurn(t, acp.Driver{}, r)
	if turn.Err != nil {
		t.Fatal(turn.Err)
	}
	agenttest.CheckTurn(t, turn)
	shown := agenttest.FormatTurn(turn) + fmt.Sprintf("asks %+v\n", turn.Result.Asks)
	return turn, strings.ReplaceAll(shown, filepath.ToSlash(dir), "$DIR")
}

func TestTheTalkWithARealProgramIsAsDrawn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.wire"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d recordings in testdata: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wire")
		t.Run(name, func(t *testing.T) {
			_, whole := play(t, file, 0)
			if _, pieces := play(t, file, 7); pieces != whole {
				t.Errorf("in pieces of seven bytes it is\n%s\nand whole\n%s", pieces, whole)
			}
			drawn.File(t, filepath.Join("testdata", name+".golden"), whole)
		})
	}
}

func TestEveryTriedProgramAsksBeforeItWritesAndBeforeItRuns(t *testing.T) {
	for name, want := range map[string][]policy.CallKind{
		"claude": {policy.CallEdit, policy.CallRun}, "gemini": {policy.CallEdit, policy.CallRun}, "opencode": {policy.CallEdit, policy.CallRun},
		"qwen": {policy.CallEdit, policy.CallRun}, "goose": {policy.CallEdit, policy.CallRun},
		"codex": {policy.CallRun}, // It writes by commands.
	} {
		turn, _ := play(t, filepath.Join("testdata", name+"-work.wire"), 0)
		var got []policy.CallKind
		for _, e := range turn.Events {
			if e.Kind == agent.EventPermission {
				got = append(got, e.Wanted.Kind)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s asks for other things (-want +got):\n%s", name, diff)
		}
		if turn.Result.Failure != nil || turn.Result.Message != "all done" {
			t.Errorf("%s: %+v", name, turn.Result)
		}
	}
}

func TestAnErrorThatAProgramSwallowsIsAFailure(t *testing.T) {
	for name, want := range map[string]loop.FailureClass{
		"codex-rate-limit": loop.FailureRateLimit, "codex-overflow": loop.FailureOverflow, "goose-unauthorized": loop.FailureAuth,
		"gemini-unauthorized": loop.FailureAuth, "claude-rate-limit": loop.FailureRateLimit, "claude-refusal": loop.FailureRefusal,
	} {
		turn, _ := play(t, filepath.Join("testdata", name+".wire"), 0)
		if f := turn.Result.Failure; f == nil || f.Class != want {
			t.Errorf("%s: failure %+v, want %s", name, f, want)
		}
	}
}

func TestACallForWhichAHumanIsNeededIsAskedForAndNoFailure(t *testing.T) {
	for _, name := range []string{"codex-ask", "opencode-ask"} {
		turn, _ := play(t, filepath.Join("testdata", name+".wire"), 0)
		want := [][]string{{"/bin/sh", "-c", "git push origin main"}}
		var got [][]string
		for _, a := range turn.Result.Asks {
			got = append(got, a.Argv)
		}
		if diff := cmp.Diff(want, got); diff != "" || turn.Result.Failure != nil {
			t.Errorf("%s: failure %+v, asks (-want +got):\n%s", name, turn.Result.Failure, diff)
		}
	}
}

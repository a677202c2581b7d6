//go:build unix

package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// output is what a turn printed. Both streams write into it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	on   func(all string) // called with all that came so far
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if o.on != nil {
		o.on(o.text.String())
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func request(t *testing.T, script string) (agent.Request, *output) {
	t.Helper()
	out := &output{}
	return agent.Request{
		Purpose: "act", Prompt: "# Goal\nkeep things right\n", Command: script, Dir: t.TempDir(),
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Timeout: time.Minute, Output: out,
	}, out
}

func turn(t *testing.T, r agent.Request) agent.Result {
	t.Helper()
	res, err := turnOn(t.Context(), proc.Tree{}, r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestThePromptComesOnStandardInputWholeAndEnds(t *testing.T) {
	for name, prompt := range map[string]string{
		"a short one":            "# Goal\nkeep things right\n",
		"none":                   "",
		"a megabyte":             strings.Repeat("0123456789abcde\n", 64<<10),
		"one that looks special": "$(rm -rf /)\x00`id`\n'\"\\\r\n\u2028",
	} {
		t.Run(name, func(t *testing.T) {
			r, out := request(t, "cat")
			r.Prompt = prompt
			res := turn(t, r)
			if out.String() != prompt {
				t.Errorf("the agent read %d bytes, want the %d of the prompt", len(out.String()), len(prompt))
			}
			if res.Exit != 0 || res.Ended != proc.Exited || res.Usage.Output != 1+int64(len(prompt))/4 {
				t.Errorf("result = %+v", res)
			}
		})
	}
}

func TestAnAgentThatNeverReadsItsPromptEndsAllTheSame(t *testing.T) {
	r, out := request(t, "echo ready")
	r.Prompt = strings.Repeat("x", 4<<20) // More than any pipe holds.
	if res := turn(t, r); res.Exit != 0 || out.String() != "ready\n" {
		t.Errorf("result = %+v, output %q", res, out)
	}
}

func TestOutputIsPassedOnWhileTheAgentWorks(t *testing.T) {
	r, out := request(t, "echo one; until [ -e seen ]; do sleep 0.01; done; echo two >&2")
	r.Timeout = 20 * time.Second
	out.on = func(all string) {
		if all == "one\n" {
			if err := os.WriteFile(filepath.Join(r.Dir, "seen"), nil, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	res := turn(t, r)
	if res.Ended != proc.Exited || out.String() != "one\ntwo\n" || res.Usage.Output != 3 {
		t.Errorf("result = %+v, output %q; want both streams, the first line at once", res, out)
	}
}

func TestWhatGoesToBothStreamsKeepsItsOrder(t *testing.T) {
	r, out := request(t, "i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done")
	turn(t, r)
	var want strings.Builder
	for i := range 400 {
		fmt.Fprintln(&want, i)
	}
	if out.String() != want.String() {
		t.Errorf("output = %q", out)
	}
}

func TestHowTheAgentEndedIsPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		exit   int
		ended  proc.Ended
	}{
		"well":                   {"exit 0", 0, proc.Exited},
		"badly":                  {"exit 3", 3, proc.Exited},
		"not found":              {"no-such-agent --do", 127, proc.Exited},
		"by a signal":            {"kill -KILL $$", 128 + 9, proc.Signaled},
		"with a word of its own": {"exit 124", 124, proc.Exited},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := request(t, c.script)
			if res := turn(t, r); res.Exit != c.exit || res.Ended != c.ended || res.Took <= 0 {
				t.Errorf("result = %+v, want exit %d, %s", res, c.exit, c.ended)
			}
		})
	}
}

func TestUsageIsEstimatedAndNeverZero(t *testing.T) {
	for name, c := range map[string]struct {
		prompt, script string
		input, output  int64
	}{
		"nothing in, nothing out":    {"", "true", 1, 1},
		"four bytes are one token":   {"12345678", "printf 1234567812345678", 3, 5},
		"an agent that dies at once": {"1234", "kill -KILL $$", 2, 1},
		"both streams count":         {"", "printf 1234; printf 1234 >&2", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := request(t, c.script)
			r.Prompt = c.prompt
			want := loop.Usage{Input: c.input, Output: c.output, Source: loop.UsageEstimated}
			if res := turn(t, r); res.Usage != want {
				t.Errorf("usage = %+v, want %+v", res.Usage, want)
			}
		})
	}
}

// A budget in money would otherwise never be spent by such an agent.
func TestTheEstimateIsOfTheModelThatIsNamed(t *testing.T) {
	r, _ := request(t, "echo hi")
	if res := turn(t, r); res.Models != nil {
		t.Errorf("models = %+v, and none was named", res.Models)
	}
	r.Model = "claude-sonnet-4-5"
	res := turn(t, r)
	if len(res.Models) != 1 || res.Models[0].Model != r.Model || res.Models[0].Usage != res.Usage {
		t.Errorf("models = %+v, want all of %+v for %s", res.Models, res.Usage, r.Model)
	}
}

func TestAnAgentIsStoppedWhenItsTimeIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		script, last string
		exit         int
	}{
		"it is asked first":   {"trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.05; done", "saved", 5},
		"and killed if deaf":  {"trap '' TERM; echo up; while :; do sleep 0.05; done", "", 128 + 9},
		"also while it reads": {"echo up; sleep 60 < /dev/null", "", 128 + 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, out := request(t, c.script)
			r.Timeout = 500 * time.Millisecond
			res := turn(t, r)
			for out.String() == "" && r.Timeout < time.Minute { // A busy machine has not even begun with it.
				r.Timeout *= 2
				res = turn(t, r)
			}
			if res.Ended != proc.TimedOut || res.Exit != c.exit {
				t.Errorf("result = %+v, want a time-out with exit %d", res, c.exit)
			}
			if first, _, _ := strings.Cut(out.String(), "\n"); first != "up" || !strings.Contains(out.String(), c.last) {
				t.Errorf("output = %q, want up first and %q", out, c.last)
			}
			if res.Usage.Output < 1 || res.Usage.Source != loop.UsageEstimated {
				t.Errorf("usage = %+v, want an estimate", res.Usage)
			}
		})
	}
}

func TestARunThatIsCanceledEndsItsAgent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, out := request(t, "echo up; sleep 60")
	out.on = func(string) { cancel() }
	res, err := turnOn(ctx, proc.Tree{}, r)
	if err != nil || res.Ended != proc.Canceled {
		t.Errorf("Turn = %+v, %v; want canceled", res, err)
	}
}

func TestTheAgentWorksInItsFolderWithItsVariablesOnly(t *testing.T) {
	t.Setenv("PAWL_TEST_SECRET", "s3cret")
	r, out := request(t, `echo "$PAWL_STEP|$PAWL_TEST_SECRET|$HOME"; echo made > file`)
	r.Env = append(r.Env, "PAWL_STEP=st_1 a title", "PAWL_RUN=r1")
	r.Tag = "PAWL_RUN=r1"
	turn(t, r)
	if want := "st_1 a title||\n"; out.String() != want {
		t.Errorf("output = %q, want %q", out, want)
	}
	if made, err := os.ReadFile(filepath.Join(r.Dir, "file")); err != nil || string(made) != "made\n" {
		t.Errorf("file = %q, %v", made, err)
	}
}

func TestAnAgentThatCannotBeStartedIsAnError(t *testing.T) {
	for name, change := range map[string]func(*agent.Request){
		"its folder is gone":          func(r *agent.Request) { r.Dir = filepath.Join(r.Dir, "gone") },
		"its tag is not in its world": func(r *agent.Request) { r.Tag = "PAWL_RUN=r1" },
		"its command holds a NUL":     func(r *agent.Request) { r.Command = "echo\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := request(t, "true")
			change(&r)
			res, err := turnOn(t.Context(), proc.Tree{}, r)
			if err == nil || !strings.Contains(err.Error(), "start the agent's shell") || res.Ended != proc.NotStarted {
				t.Errorf("Turn = %+v, %v; want not started and an error that says so", res, err)
			}
		})
	}
	lost := errors.New("the host is out of processes")
	r, _ := request(t, "true")
	if _, err := turnOn(t.Context(), execFunc(func() error { return lost }), r); !errors.Is(err, lost) {
		t.Errorf("Turn = %v, want the cause", err)
	}
}

type execFunc func() error

func (f execFunc) Run(context.Context, proc.Spec) (proc.Result, error) {
	return proc.Result{Ended: proc.NotStarted}, f()
}

func turnOn(ctx context.Context, exec proc.Runner, r agent.Request) (agent.Result, error) {
	r.Exec = exec
	return command.Driver{}.Turn(ctx, r)
}

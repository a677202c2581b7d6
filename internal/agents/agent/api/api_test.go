package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// TestMain makes the test binary the agent, as pawl would be.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		os.Exit(Main(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// here runs the agent in the process of the test.
type here struct{}

func (here) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	return proc.Result{Exit: Main(ctx, s.Stdin, s.Stdout), Ended: proc.Exited}, nil
}

// providers are the shapes that are spoken, by the names that the stand-in has
// for them.
var providers = map[string]string{anthropic: "anthropic", openai: "chat", gemini: "gemini"}

// serve plays a script.
func serve(t *testing.T, turns ...fakemodel.Turn) (*fakemodel.Server, string) {
	t.Helper()
	s := fakemodel.New(fakemodel.Script{Turns: turns})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// request is a turn on a tree with one file, against a model.
func request(t *testing.T, provider, url string) agent.Request {
	t.Helper()
	r := agenttest.NewRequest(t, here{})
	r.Models = agent.Endpoint{URL: url, Key: "no-key", Provider: provider}
	put(t, filepath.Join(r.Dir, "main.go"), "package main\n\nfunc main() { println(1) }\n")
	return r
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quick retries without long pauses.
var quick = Driver{Self: "pawl", backoff: time.Millisecond}

func take(t *testing.T, d Driver, r agent.Request) agenttest.Turn {
	t.Helper()
	turn := agenttest.TakeTurn(t, d, r)
	if turn.Err != nil {
		t.Fatal(turn.Err)
	}
	agenttest.CheckTurn(t, turn)
	return turn
}

func TestATurnWorksInEveryShape(t *testing.T) {
	for provider, shape := range providers {
		t.Run(provider, func(t *testing.T) {
			used := fakemodel.Usage{Input: 700, Output: 60, CacheRead: 500}
			s, url := serve(t,
				fakemodel.Read("main.go").Using(used), fakemodel.Edit("main.go", "println(1)", "println(2)").Using(used),
				fakemodel.Write("new/a.txt", "hello\n").Using(used), fakemodel.Shell("cat new/a.txt; echo beside >&2").Using(used),
				fakemodel.Tool("search", `{"pattern":"println\\(2\\)"}`).Using(used), fakemodel.Tool("list", `{"path":"."}`).Using(used),
				fakemodel.Say("All is done.").Using(used),
			)
			r := request(t, provider, url)
			turn := take(t, quick, r)
			if got := turn.Result; got.Failure != nil || got.Message != "All is done." || got.Exit != 0 {
				t.Errorf("the turn came to %+v, failure %+v", got, got.Failure)
			}
			if got := content(t, filepath.Join(r.Dir, "main.go")); !strings.Contains(got, "println(2)") {
				t.Errorf("main.go is %q", got)
			}
			if got := content(t, filepath.Join(r.Dir, "new", "a.txt")); got != "hello\n" {
				t.Errorf("new/a.txt is %q", got)
			}
			sum := s.Total()
			want := loop.Usage{Input: sum.Input, Output: sum.Output, CacheRead: sum.CacheRead, CacheWrite: sum.CacheWrite, Source: loop.UsageReported}
			if got := turn.Result.Usage; got != want || got.Input != 7*700 {
				t.Errorf("usage is %+v, want %+v", got, want)
			}
			returns := returned(turn.Events)
			for i, want := range []string{"1\tpackage main", "edited main.go", "wrote 6 bytes", "hello\nbeside\n[exit status 0]", "main.go:3:", "main.go\nnew/"} {
				if !strings.Contains(returns[i], want) {
					t.Errorf("tool %d returned %q, want %q in it", i, returns[i], want)
				}
			}
			for _, e := range s.Log() {
				if e.Shape != shape || !e.Stream || len(e.Auth) != 1 || e.Model != r.Model {
					t.Errorf("a request was %+v", e)
				}
			}
		})
	}
}

func returned(all []agent.Event) []string {
	var out []string
	for _, e := range all {
		if e.Kind == agent.EventReturn {
			out = append(out, e.Text)
		}
	}
	return out
}

func count(all []agent.Event, kind agent.EventKind) int {
	n := 0
	for _, e := range all {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestTheAgentRunsAsAProgramOfItsOwn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, url := serve(t, fakemodel.Shell("echo $PAWL_STEP"), fakemodel.Tool("report", `{"outcome":"done","summary":"it works"}`), fakemodel.Say("done"))
	r := request(t, anthropic, url)
	r.Exec = proc.Plain{}
	file := filepath.Join(t.TempDir(), "report.json")
	r.Env = append(r.Env, "PAWL_STEP=the step", "PAWL_REPORT="+file, "GOCOVERDIR="+t.TempDir())
	turn := take(t, Driver{Self: self}, r)
	if got := turn.Result; got.Failure != nil || got.Message != "done" || got.Exit != 0 || turn.Output != "" {
		t.Fatalf("the turn came to %+v, failure %+v, and %q", got, got.Failure, turn.Output)
	}
	if got := returned(turn.Events)[0]; !strings.HasPrefix(got, "the step\n") {
		t.Errorf("the command printed %q", got)
	}
	if got := content(t, file); got != `{"outcome":"done","summary":"it works"}` {
		t.Errorf("the report is %s", got)
	}
}

func TestNothingIsChangedWithoutLeave(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.txt")
	put(t, outside, "the secret\n")
	turns := []fakemodel.Turn{
		fakemodel.Write("a.txt", "x"), fakemodel.Edit("main.go", "println(1)", "x"), fakemodel.Shell("touch b.txt"), fakemodel.Read(outside), fakemodel.Say("I could not."),
	}
	_, url := serve(t, turns...)
	r := request(t, anthropic, url)
	var asked []policy.Call
	r.Judge = func(_ context.Context, c policy.Call) policy.Answer {
		asked = append(asked, c)
		return policy.Answer{Rule: "test", Words: "not today", Ask: c.Kind == policy.CallRun}
	}
	turn := take(t, quick, r)
	if len(asked) != 4 || asked[0].Paths[0] != "a.txt" || asked[1].Kind != policy.CallEdit || asked[2].Command != "touch b.txt" || asked[3].Paths[0] != outside {
		t.Errorf("asked for %+v", asked)
	}
	for i, text := range returned(turn.Events) {
		if text != "denied (test): not today" {
			t.Errorf("call %d returned %q", i, text)
		}
	}
	names, err := os.ReadDir(r.Dir)
	if err != nil || len(names) != 1 || !strings.Contains(content(t, filepath.Join(r.Dir, "main.go")), "println(1)") {
		t.Errorf("the tree has %v, %v", names, err)
	}
	if n := count(turn.Events, agent.EventPermission); n != 4 {
		t.Errorf("%d events of leave, want 4", n)
	}
	if asks := turn.Result.Asks; len(asks) != 1 || asks[0].Argv[2] != "touch b.txt" || asks[0].Why != "not today" {
		t.Errorf("what is still to be asked is %+v", asks)
	}
}

func TestTheStableBeginningIsCached(t *testing.T) {
	s, url := serve(t, fakemodel.Read("main.go"), fakemodel.Say("done"))
	take(t, quick, request(t, anthropic, url))
	type block struct {
		Text  string          `json:"text"`
		Cache json.RawMessage `json:"cache_control"`
	}
	for i, e := range s.Log() {
		var body struct {
			System   []block `json:"system"`
			Messages []struct {
				Content []block `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.System[0].Text != systemPrompt || body.System[0].Cache == nil {
			t.Errorf("call %d: the system prompt is not cached", i)
		}
		for n, m := range body.Messages {
			if last := n == len(body.Messages)-1; (m.Content[len(m.Content)-1].Cache != nil) != last {
				t.Errorf("call %d: message %d of %d is cached: %t", i, n, len(body.Messages), !last)
			}
		}
	}
}

func TestATurnThatCannotBeginSaysWhatToDo(t *testing.T) {
	for name, change := range map[string]func(r *agent.Request){
		"no model":            func(r *agent.Request) { r.Model = "" },
		"no endpoint":         func(r *agent.Request) { r.Models.URL = "" },
		"an unknown provider": func(r *agent.Request) { r.Models.Provider = "mistral" },
	} {
		r := request(t, anthropic, "http://127.0.0.1:1")
		change(&r)
		turn := agenttest.TakeTurn(t, quick, r)
		f, ok := errors.AsType[*loop.Fault](turn.Err)
		if !ok || f.Fix == "" || f.Exit != loop.ExitUsage {
			t.Errorf("%s: %v, want a fault with a fix", name, turn.Err)
		}
	}
}

func TestAnExecutableThatIsNotKnownIsAnError(t *testing.T) {
	if turn := agenttest.TakeTurn(t, Driver{}, request(t, anthropic, "http://127.0.0.1:1")); turn.Err == nil {
		t.Errorf("the turn came to %+v", turn.Result)
	}
}

func TestWhatIsNoLineOfTheAgentIsShown(t *testing.T) {
	for _, text := range []string{"hello", `{"kind":"permission"}`, `{"kind":"error"}`, `{"kind":"ask"}`, `{"a":1}`, `[1]`} {
		d := &decoder{}
		if events, ok := d.DecodeLine([]byte(text)); ok || len(events) > 0 {
			t.Errorf("%s makes %v", text, events)
		}
	}
}

func TestACommandOfTheDefinitionStartsTheAgent(t *testing.T) {
	r := request(t, anthropic, "http://127.0.0.1:1")
	rec := &agenttest.Recording{Stdout: []byte(`{"kind":"text","text":"hi"}` + "\n" + `{"kind":"end"}` + "\n")}
	r.Exec, r.Command = rec, "nice pawl"
	take(t, Driver{Self: "/usr/bin/pawl"}, r)
	if got, want := rec.Spec().Argv, []string{"/bin/sh", "-c", "nice pawl __agent"}; !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
}

const (
	anthropic = modelapi.Anthropic
	openai    = modelapi.OpenAI
	gemini    = modelapi.Gemini
)

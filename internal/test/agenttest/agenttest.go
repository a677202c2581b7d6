// Package agenttest is the suite that every driver passes: recorded streams of
// the real programs, replayed without them, and what must hold for any turn
// whatever the program. It is for tests only.
package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

// Driver is what the suite tests.
type Driver interface {
	Profile() agent.Profile
	Turn(ctx context.Context, r agent.Request) (agent.Result, error)
}

// Recording replays what a program printed instead of starting it. It records how the
// program was started, and its input.
type Recording struct {
	Stdout, Stderr []byte
	Exit           int
	Ended          proc.Ended // empty: Exited
	Chunk          int        // bytes that are written at once; 0: all

	mu    sync.Mutex
	spec  proc.Spec
	input bytes.Buffer
}

// Run replays the recording.
func (p *Recording) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	p.mu.Lock()
	p.spec = s
	p.mu.Unlock()
	var reading sync.WaitGroup
	if s.Stdin != nil {
		reading.Go(func() {
			var all bytes.Buffer
			_, _ = io.Copy(&all, s.Stdin)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.input = all
		})
	}
	_, _ = s.Stderr.Write(p.Stderr)
	size := p.Chunk
	if size == 0 {
		size = max(1, len(p.Stdout))
	}
	for rest := p.Stdout; len(rest) > 0 && ctx.Err() == nil; {
		n := min(size, len(rest))
		_, _ = s.Stdout.Write(rest[:n])
		rest = rest[n:]
	}
	if c, ok := s.Stdin.(io.Closer); ok {
		_ = c.Close()
	}
	reading.Wait()
	ended := p.Ended
	if ended == "" {
		ended = proc.Exited
	}
	return proc.Result{Exit: p.Exit, Ended: ended, Took: time.Millisecond}, nil
}

// Spec returns how the program was started.
func (p *Recording) Spec() proc.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec
}

// Input returns the program's standard input.
func (p *Recording) Input() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.input.String()
}

// NewRecording returns a program that prints the recording testdata/name.jsonl and ends
// with the status exit.
func NewRecording(t *testing.T, name string, exit int) *Recording {
	t.Helper()
	stdout, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return &Recording{Stdout: stdout, Exit: exit}
}

// WantEnviron fails unless the program was started with all of these variables.
func (p *Recording) WantEnviron(t *testing.T, want ...string) {
	t.Helper()
	for _, kv := range want {
		if !slices.Contains(p.Spec().Env, kv) {
			t.Errorf("the environment lacks %s", kv)
		}
	}
}

// Folder is a home in a directory of the test.
type Folder struct{ Dir string }

// Path is the directory.
func (f Folder) Path() string { return f.Dir }

// Write writes a file below it.
func (f Folder) Write(name string, content []byte) error {
	path := filepath.Join(f.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Read reads a file below it.
func (f Folder) Read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.Dir, filepath.FromSlash(name)))
}

// Turn is everything that one turn returned and reported.
type Turn struct {
	Result agent.Result
	Events []agent.Event
	Output string // beside the events
	Err    error
}

// NewRequest returns the request of one turn on exec, with its own home and everything
// allowed.
func NewRequest(t *testing.T, exec proc.Runner) agent.Request {
	t.Helper()
	return agent.Request{
		Purpose: "act", Prompt: "Repair what is broken.\n", Model: "model-1", Exec: exec, Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, Timeout: time.Minute, Home: Folder{t.TempDir()},
		Models: agent.Endpoint{URL: "http://127.0.0.1:3129", Key: "pawl"},
		Judge: func(context.Context, policy.Call) policy.Answer {
			return policy.Answer{Allow: true, Rule: "test", Words: "everything is allowed"}
		},
	}
}

// TakeTurn lets a driver take a turn and records it.
func TakeTurn(t *testing.T, d Driver, r agent.Request) Turn {
	t.Helper()
	var turn Turn
	var out strings.Builder
	var mu sync.Mutex
	r.Output = writer(func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		out.Write(p)
	})
	r.OnEvent = func(e agent.Event) { turn.Events = append(turn.Events, e) }
	turn.Result, turn.Err = d.Turn(t.Context(), r)
	turn.Output = out.String()
	return turn
}

// TakeTurnWith takes a turn with the request that change has changed, and returns both.
// If the driver returns an error, the test fails.
func TakeTurnWith(t *testing.T, d Driver, exec proc.Runner, change func(*agent.Request)) (agent.Request, Turn) {
	t.Helper()
	r := NewRequest(t, exec)
	change(&r)
	turn := TakeTurn(t, d, r)
	if turn.Err != nil {
		t.Fatal(turn.Err)
	}
	return r, turn
}

type writer func(p []byte)

// Write calls the function.
func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// how has the other data of a recording NAME.jsonl, from NAME.json.
type how struct {
	Exit   int        `json:"exit"`
	Ended  proc.Ended `json:"ended"`
	Stderr string     `json:"stderr"`
}

// Replay tests a driver with every recording testdata/*.jsonl, whole and in pieces of
// seven bytes, and compares the turn with NAME.golden. The exit status and similar data
// are in NAME.json, if it exists.
func Replay(t *testing.T, d Driver) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings of %s in testdata: %v", d.Profile().Name, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			stdout, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var h how
			if text, err := os.ReadFile(strings.TrimSuffix(file, "l")); err == nil {
				if err := json.Unmarshal(text, &h); err != nil {
					t.Fatal(err)
				}
			}
			whole := replayTurn(t, d, stdout, h, 0)
			if pieces := replayTurn(t, d, stdout, h, 7); pieces != whole {
				t.Errorf("in pieces of seven bytes it is\n%s\nand whole\n%s", pieces, whole)
			}
			drawn.File(t, strings.TrimSuffix(file, ".jsonl")+".golden", whole)
			badNumbers(t, d, stdout, h)
		})
	}
}

// number matches a member of an object that is a number, like a count.
var number = regexp.MustCompile(`"[A-Za-z_]+": ?([0-9]+)[],} ]`)

// mostMembers is how many numbers of a recording are tested.
const mostMembers = 8

// badNumbers replaces each of the last numbers of a recording by an invalid count: it has
// no effect, or the turn fails or is only estimated. Nothing may silently count as less.
func badNumbers(t *testing.T, d Driver, stdout []byte, h how) {
	t.Helper()
	take := func(text []byte) agent.Result {
		return TakeTurn(t, d, NewRequest(t, &Recording{Stdout: text, Stderr: []byte(h.Stderr), Exit: h.Exit, Ended: h.Ended})).Result
	}
	good := take(stdout)
	if good.Failure != nil || d.Profile().Own {
		return // The turn failed; or the meter counts it, whatever the program reports.
	}
	members := number.FindAllSubmatchIndex(stdout, -1)
	for _, m := range members[max(0, len(members)-mostMembers):] {
		for _, bad := range []string{"-7", `"NaN"`} {
			got := take(slices.Concat(stdout[:m[2]], []byte(bad), stdout[m[3]:]))
			if got.Failure == nil && got.Usage != good.Usage && got.Usage.Source != loop.UsageEstimated {
				t.Errorf("with %s for %s the usage is %+v, and was %+v", bad, stdout[m[0]:m[1]], got.Usage, good.Usage)
			}
		}
	}
}

// AddSeeds adds the recordings in testdata whose names match the patterns. A pattern that
// matches nothing fails the test.
func AddSeeds(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

// Fuzz feeds a driver anything that a program could print, with the recordings
// testdata/*.jsonl as seeds, and checks every turn.
func Fuzz(f *testing.F, d Driver) {
	f.Helper()
	AddSeeds(f, "*.jsonl")
	f.Fuzz(func(t *testing.T, stdout []byte) {
		turn := TakeTurn(t, d, NewRequest(t, &Recording{Stdout: stdout}))
		if turn.Err != nil {
			t.Fatal(turn.Err)
		}
		CheckTurn(t, turn)
	})
}

func replayTurn(t *testing.T, d Driver, stdout []byte, h how, chunk int) string {
	t.Helper()
	turn := TakeTurn(t, d, NewRequest(t, &Recording{Stdout: stdout, Stderr: []byte(h.Stderr), Exit: h.Exit, Ended: h.Ended, Chunk: chunk}))
	if turn.Err != nil {
		t.Fatal(turn.Err)
	}
	CheckTurn(t, turn)
	return FormatTurn(turn)
}

// FormatTurn returns a turn as text, for people and golden files.
func FormatTurn(turn Turn) string {
	var b strings.Builder
	for _, e := range turn.Events {
		fmt.Fprintln(&b, eventText(e))
	}
	r := turn.Result
	fmt.Fprintf(&b, "---\nexit %d %s\nmessage %q\nusage %+v\n", r.Exit, r.Ended, r.Message, r.Usage)
	for _, m := range r.Models {
		fmt.Fprintf(&b, "model %s %+v\n", m.Model, m.Usage)
	}
	if r.Failure != nil {
		fmt.Fprintf(&b, "failure %s status %d reset %s typed %t: %s\n", r.Failure.Class, r.Failure.Status, stamp(r.Failure.Reset), r.Failure.Typed, r.Failure.Text)
	}
	if r.Session != nil {
		fmt.Fprintf(&b, "session %s totals %+v\n", r.Session.ID, r.Session.Totals)
	}
	if turn.Output != "" {
		fmt.Fprintf(&b, "beside it %q\n", turn.Output)
	}
	// Counts of the meter are left out if they are zero.
	return strings.ReplaceAll(b.String(), " Reasoning:0 WebSearches:0 FileSearches:0", "")
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func eventText(e agent.Event) string {
	var text strings.Builder
	text.WriteString(string(e.Kind))
	for _, part := range []struct{ name, value string }{
		{"id", e.ID}, {"tool", e.Tool}, {"model", e.Model}, {"text", e.Text}, {"input", string(e.Input)},
	} {
		if part.value != "" {
			fmt.Fprintf(&text, " %s=%q", part.name, part.value)
		}
	}
	if e.Bad {
		text.WriteString(" bad")
	}
	if e.Usage != (loop.Usage{}) {
		fmt.Fprintf(&text, " usage=%+v", e.Usage)
	}
	if !e.Reset.IsZero() {
		text.WriteString(" reset=" + stamp(e.Reset))
	}
	if e.Kind == agent.EventPermission {
		fmt.Fprintf(&text, " wanted=%+v answer=%+v", e.Wanted, e.Answer)
	}
	if e.Failure != nil {
		fmt.Fprintf(&text, " failure=%+v", *e.Failure)
	}
	return text.String()
}

// CheckTurn checks what must be true of every turn of every driver.
func CheckTurn(t *testing.T, turn Turn) {
	t.Helper()
	calls := map[string]bool{}
	for i, e := range turn.Events {
		switch e.Kind {
		case agent.EventCall:
			if e.Tool == "" || calls[e.ID] {
				t.Errorf("event %d: a call without a tool, or with an id that another has: %s", i, eventText(e))
			}
			calls[e.ID] = true
		case agent.EventReturn:
			if !calls[e.ID] {
				t.Errorf("event %d: a return to no call: %s", i, eventText(e))
			}
		case agent.EventError:
			if e.Failure == nil || e.Failure.Class == "" {
				t.Errorf("event %d: an error without a class: %s", i, eventText(e))
			}
		case agent.EventEnd:
			if i != len(turn.Events)-1 {
				t.Errorf("event %d of %d is the end", i, len(turn.Events))
			}
		case agent.EventText, agent.EventReasoning, agent.EventPermission, agent.EventUsage, agent.EventLimit, agent.EventRetry:
		default:
			t.Errorf("event %d: kind %q is none", i, e.Kind)
		}
		if u := e.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
			t.Errorf("event %d: a negative usage: %s", i, eventText(e))
		}
	}
	r := turn.Result
	if r.Usage.Zero() || r.Usage.Source == "" {
		t.Errorf("usage is %+v: zero, or of no source", r.Usage)
	}
	if r.Ended == proc.Exited && r.Failure == nil && r.Message == "" && len(calls) == 0 {
		t.Error("in a turn that ended well nothing was said and nothing done")
	}
}

//go:build agents && linux

package agente2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// subject is one agent, as a definition names it.
type subject struct {
	name  string
	agent string
	model string
	base  string   // of the model's URL
	keys  []string // more lines of the definition
}

var subjects = []subject{
	{name: "claude", agent: "claude", model: "claude-haiku-4-5"},
	{name: "codex", agent: "codex", model: "fake-1", base: "/v1"},
	{name: "gemini", agent: "gemini", model: "fake-1"},
	{name: "opencode", agent: "opencode", model: "fake-1", base: "/v1", keys: []string{"provider: openai"}},
	{name: "qwen", agent: "qwen", model: "fake-1", base: "/v1"},
	{name: "goose", agent: "goose", model: "fake-1", base: "/v1"},
	{name: "acp gemini", agent: "acp", model: "fake-1", keys: []string{"agent_command: gemini --acp", "provider: gemini"}},
	{name: "acp opencode", agent: "acp", model: "fake-1", base: "/v1", keys: []string{"agent_command: opencode acp", "provider: openai"}},
	{name: "acp qwen", agent: "acp", model: "fake-1", base: "/v1", keys: []string{"agent_command: qwen --acp", "provider: openai"}},
	{name: "acp goose", agent: "acp", model: "fake-1", base: "/v1", keys: []string{"agent_command: goose acp", "provider: openai"}},
	{name: "api anthropic", agent: "api", model: "claude-haiku-4-5", keys: []string{"provider: anthropic"}},
	{name: "api openai", agent: "api", model: "fake-1", base: "/v1", keys: []string{"provider: openai"}},
	{name: "api gemini", agent: "api", model: "fake-1", keys: []string{"provider: gemini"}},
}

// look is what the model has every agent do first: write down all that can be
// seen of keys, and knock at a door that is not the model's.
const look = `{ env; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\0' '\n' < $f; echo; done
cat $HOME/.*/*.json $HOME/.*/*.toml $HOME/.*/*/*.json $HOME/.config/*/*; } > src/seen.txt 2>/dev/null
(exec 3<>/dev/tcp/$(cat decoy | tr : / )) 2>> src/seen.txt
true
`

// TestEveryAgentTakesAWholeRun measures the seconds of its table: it runs one agent
// at a time, before the tests that run side by side.
func TestEveryAgentTakesAWholeRun(t *testing.T) {
	drawn := newTable(t, "agents", "| agent | version | calls | tokens in, out | seconds | key seen | other hosts |\n|---|---|--:|--:|--:|---|---|\n", subjectKeys())
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			v := newFixture(t, s, func(v *fixture) fakemodel.Script {
				return fakemodel.Script{Turns: []fakemodel.Turn{
					fakemodel.Shell("bash look.sh"),
					fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"),
					fakemodel.Say("The value is two now."),
				}}
			})
			run, exit := v.run()
			if os.Getenv("SHOW") != "" {
				t.Log(v.logs(), v.said())
			}
			if run.Outcome != loop.OutcomeProposed || exit != 0 {
				t.Fatalf("the run ended %s (%s), exit status %d: %s\n%s\nthe model's log:\n%s", run.Outcome, run.Reason, exit, run.Detail, v.logs(), v.said())
			}
			if got := v.git("show", run.Branch+":src/answer.txt"); got != "two" {
				t.Errorf("the branch has the value %q", got)
			}
			want := v.model.Total()
			got := run.Tokens
			if got.Source != loop.UsageMetered || got.Input != want.Input || got.Output != want.Output || got.CacheRead != want.CacheRead || got.CacheWrite != want.CacheWrite {
				t.Errorf("pawl counted %+v, the model says %+v\n%s", got, want, v.said())
			}
			seen := v.git("show", run.Branch+":src/seen.txt")
			if strings.Contains(seen, key) || !strings.Contains(seen, "PAWL_LOOP=fix") {
				t.Errorf("inside there was to be seen:\n%s", seen)
			}
			if n := v.knocks.Load(); n != 0 {
				t.Errorf("another host was reached %d times", n)
			}
			for _, e := range v.model.Log() {
				for name, value := range e.Auth {
					if !strings.Contains(value, key) {
						t.Errorf("the model was called with %s: %s", name, value)
					}
				}
			}
			t.Logf("%s: %d calls, %d in, %d out, %.1f s", s.name, len(v.model.Log()), got.Input, got.Output, run.MS.Agent/1000)
			if !t.Failed() {
				drawn.add(line(s.name, v.version(s), strconv.Itoa(len(v.model.Log())),
					fmt.Sprintf("%d, %d", got.Input, got.Output), fmt.Sprintf("%.1f", run.MS.Agent/1000), "no", "none"))
			}
		})
	}
}

var versions = regexp.MustCompile(`\d+\.\d+\.\d+\S*`)

// version is what the subject's program says of itself; the api driver's is pawl.
func (v *fixture) version(s subject) string {
	name := s.agent
	if s.agent == "api" {
		return "pawl"
	}
	for _, k := range s.keys {
		if command, ok := strings.CutPrefix(k, "agent_command: "); ok {
			name, _, _ = strings.Cut(command, " ")
		}
	}
	cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, name), "--version")
	cmd.Env = v.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Errorf("%s --version: %v\n%s", name, err, out)
	}
	return versions.FindString(string(out))
}

// said is the log of the model on a line for each request.
func (v *fixture) said() string {
	var b strings.Builder
	for _, e := range v.model.Log() {
		fmt.Fprintf(&b, "%s %s %d %s step %d side %t did %q result %.300q usage %+v whole %t\n", e.Method, e.Path, e.Status, e.Model, e.Step, e.Side, e.Did, e.Result, e.Usage, e.Whole)
	}
	return b.String()
}

package goose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/goose"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

const finished = `{"type":"message","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Do"}]}}
{"type":"message","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"ne."}]}}
{"type":"complete","total_tokens":110,"input_tokens":100,"output_tokens":10}
`

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) {
	agenttest.Replay(t, goose.Driver{})
}

func FuzzNoOutputBreaksATurn(f *testing.F) { agenttest.Fuzz(f, goose.Driver{}) }

// take is a turn of which the program printed stdout.
func take(t *testing.T, stdout string, change func(*agent.Request)) (*agenttest.Recording, agent.Request, agenttest.Turn) {
	t.Helper()
	rec := &agenttest.Recording{Stdout: []byte(stdout)}
	r, turn := agenttest.TakeTurnWith(t, goose.Driver{}, rec, change)
	agenttest.CheckTurn(t, turn)
	return rec, r, turn
}

func asItIs(*agent.Request) {}

func TestCommandLineSaysWhatTheTurnIs(t *testing.T) {
	first := []string{
		"run", "--instructions", "-", "--output-format", "stream-json", "--quiet", "--no-profile", "--with-builtin", "developer",
	}
	cases := map[string]struct {
		change func(*agent.Request)
		want   []string
	}{
		"a turn leaves nothing behind": {asItIs, slices.Concat([]string{"goose"}, first, []string{"--no-session"})},
		"a conversation goes on by its name": {
			func(r *agent.Request) { r.Session = &loop.Session{ID: "pawl-x"} },
			slices.Concat([]string{"goose"}, first, []string{"--name", "pawl-x", "--resume"}),
		},
		"servers are extensions": {
			func(r *agent.Request) {
				r.Servers = []loop.Server{{Name: "files", Command: "node x.js --a"}, {Name: "docs", URL: "https://mcp.example/v1"}}
			},
			slices.Concat([]string{"goose"}, first, []string{"--with-extension", "node x.js --a", "--with-streamable-http-extension", "https://mcp.example/v1", "--no-session"}),
		},
		"a command of the definition stands before it": {
			func(r *agent.Request) { r.Command = "env X=1 my-goose" },
			slices.Concat([]string{"/bin/sh", "-c", `exec env X=1 my-goose "$@"`, "sh"}, first, []string{"--no-session"}),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rec, _, _ := take(t, finished, c.change)
			if diff := cmp.Diff(c.want, rec.Spec().Argv); diff != "" {
				t.Error(diff)
			}
			if got := rec.Input(); got != "Repair what is broken.\n" {
				t.Errorf("standard input is %q", got)
			}
		})
	}
}

func TestAConversationThatIsKeptHasANameOfItsOwn(t *testing.T) {
	keep := func(r *agent.Request) { r.Keep = true }
	rec, _, first := take(t, finished, keep)
	argv := rec.Spec().Argv
	if got := first.Result.Session; got == nil || got.Turns != 1 || !slices.Equal(argv[len(argv)-2:], []string{"--name", got.ID}) {
		t.Fatalf("the session is %+v of %v", got, argv)
	}
	if _, _, other := take(t, finished, keep); other.Result.Session.ID == first.Result.Session.ID {
		t.Errorf("two conversations are %s", other.Result.Session.ID)
	}
	if _, _, once := take(t, finished, asItIs); once.Result.Session != nil {
		t.Errorf("a turn that is not to be kept has the session %+v", once.Result.Session)
	}
}

func TestAConversationIsCountedOnce(t *testing.T) {
	_, _, first := take(t, finished, func(r *agent.Request) { r.Keep = true })
	_, _, second := take(t, strings.ReplaceAll(finished, `"total_tokens":110,"input_tokens":100,"output_tokens":10`, `"total_tokens":275,"input_tokens":250,"output_tokens":25`),
		func(r *agent.Request) { r.Keep, r.Session = true, first.Result.Session })
	want := loop.Usage{Input: 150, Output: 15, Source: loop.UsageReported}
	if second.Result.Usage != want {
		t.Errorf("the second turn used %+v, want %+v", second.Result.Usage, want)
	}
	totals := []loop.ModelUsage{{Model: "model-1", Usage: loop.Usage{Input: 250, Output: 25}}}
	if diff := cmp.Diff(&loop.Session{ID: first.Result.Session.ID, Totals: totals, Turns: 2}, second.Result.Session); diff != "" {
		t.Error(diff)
	}
}

func TestEverythingOfTheProgramLiesInItsHome(t *testing.T) {
	rec, r, _ := take(t, finished, func(r *agent.Request) { r.Env = append(r.Env, "GOOSE_MODE=chat", "XDG_CONFIG_HOME=/host") })
	got := map[string]string{}
	for _, v := range rec.Spec().Env {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	home := r.Home.Path()
	want := map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home + "/.config", "XDG_DATA_HOME": home + "/.local/share", "XDG_CACHE_HOME": home + "/.cache",
		"XDG_STATE_HOME": home + "/.local/state", "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "model-1", "GOOSE_MODE": "auto",
		"GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false", "GOOSE_TELEMETRY_OFF": "1",
		"GOOSE_DISABLE_SESSION_NAMING": "true", "CONTEXT_FILE_NAMES": "[]",
		"OPENAI_HOST": "http://127.0.0.1:3129", "OPENAI_API_KEY": "pawl",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	text, err := r.Home.Read(".config/goose/config.yaml")
	if err != nil || !strings.Contains(string(text), "GOOSE_TELEMETRY_ENABLED: false\n") || !strings.Contains(string(text), "extensions: {}\n") {
		t.Errorf("the settings are %q, %v", text, err)
	}
}

func TestTheModelIsReachedThroughTheEndpointAlone(t *testing.T) {
	rec, _, _ := take(t, finished, func(r *agent.Request) { r.Models.Provider = "anthropic" })
	rec.WantEnviron(t, "GOOSE_PROVIDER=anthropic", "ANTHROPIC_HOST=http://127.0.0.1:3129", "ANTHROPIC_API_KEY=pawl")
	rec, _, _ = take(t, finished, func(r *agent.Request) { r.Models = agent.Endpoint{} })
	if i := slices.IndexFunc(rec.Spec().Env, func(v string) bool { return strings.Contains(v, "_HOST=") || strings.Contains(v, "_KEY=") }); i >= 0 {
		t.Errorf("with the login in the home, %s is set", rec.Spec().Env[i])
	}
	r := agenttest.NewRequest(t, &agenttest.Recording{})
	r.Models.Provider = "other"
	if turn := agenttest.TakeTurn(t, goose.Driver{}, r); turn.Err == nil || !strings.Contains(turn.Err.Error(), `"other"`) {
		t.Errorf("a provider that is unknown gives %v", turn.Err)
	}
}

func TestATurnThatIsCutShortIsEstimated(t *testing.T) {
	said, _, _ := strings.Cut(finished, `{"type":"complete"`)
	rec := &agenttest.Recording{Stdout: []byte(said), Exit: 143, Ended: proc.TimedOut}
	turn := agenttest.TakeTurn(t, goose.Driver{}, agenttest.NewRequest(t, rec))
	if u := turn.Result.Usage; u.Source != loop.UsageEstimated || u.Zero() {
		t.Errorf("usage is %+v, want an estimate", u)
	}
	if turn.Result.Failure != nil {
		t.Errorf("the failure is %+v: the time that was over is none", turn.Result.Failure)
	}
}

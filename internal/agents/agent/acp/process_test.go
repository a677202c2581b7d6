//go:build unix

package acp_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/pawl-run/pawl/internal/agents/agent/acp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// asAgent is the variable that makes the test binary an agent.
const asAgent = "PAWL_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		beAgent()
	}
	os.Exit(m.Run())
}

// beAgent is an agent that says what it was started with and does not end when
// its input does, as several real ones do not.
func beAgent() {
	a := &peer{}
	a.on = func(ctx context.Context, conn *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
		if os.Getenv(asAgent) == "dies" {
			_, _ = io.WriteString(os.Stderr, "no more\n")
			os.Exit(3)
		}
		said := strings.Join([]string{os.Getenv("HOME"), os.Getenv("OPENAI_BASE_URL"), os.Getenv("ANTHROPIC_BASE_URL"), strings.Join(os.Args[1:], " ")}, "|")
		err := conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: "s1", Update: sdk.UpdateAgentMessageText(said)})
		return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, err
	}
	in := &gate{from: os.Stdin, open: make(chan struct{})}
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, in)
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(in.open)
	<-time.After(time.Hour)
}

func started(t *testing.T, how string) agenttest.Turn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &peer{}
	r := request(t, a)
	r.Exec = proc.Plain{}
	r.Command = "'" + self + "' one 'two words'"
	r.Env = append(r.Env, asAgent+"="+how)
	r.Models.Provider = "openai"
	turn := take(t, a, r)
	if home := r.Home.Path(); how == "talks" && turn.Result.Message != home+"|http://127.0.0.1:3129/v1||one two words" {
		t.Errorf("the program was started with %q", turn.Result.Message)
	}
	return turn
}

func TestAProgramThatNeverEndsByItselfIsEndedSoonAfterItsTurn(t *testing.T) {
	r := started(t, "talks").Result
	if r.Failure != nil || r.Exit != 0 || r.Ended != proc.Exited || r.Took > 20*time.Second {
		t.Errorf("%+v", r)
	}
}

func TestAProgramThatDiesInItsTurnHasCrashed(t *testing.T) {
	r := started(t, "dies").Result
	if f := r.Failure; f == nil || f.Class != loop.FailureCrash || !strings.Contains(f.Text, "no more") || r.Exit != 3 {
		t.Errorf("%+v", r)
	}
}

func TestAProgramThatTakesItsModelAsAnArgumentGetsOne(t *testing.T) {
	dir := t.TempDir()
	p := &player{t: t, wire: readWire(t, filepath.Join("testdata", "gemini-work.wire"), dir)}
	r := agenttest.NewRequest(t, p)
	r.Dir, r.Prompt, r.Command, r.Model, r.Models.Provider = dir, p.wire.prompt, p.wire.Command, p.wire.Model, p.wire.Provider
	r.Judge = judged(t, dir)
	if turn := agenttest.TakeTurn(t, acp.Driver{}, r); turn.Err != nil {
		t.Fatal(turn.Err)
	}
	if got := strings.Join(p.spec.Argv, " "); got != `/bin/sh -c exec gemini --acp "$@" sh -m gemini-2.5-pro` {
		t.Errorf("it is started as %q", got)
	}
}

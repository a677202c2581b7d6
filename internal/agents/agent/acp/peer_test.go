package acp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/acp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// peer is an agent on another implementation of the protocol. It does what a
// test says when it is prompted.
type peer struct {
	sdk.Agent

	hello  sdk.InitializeResponse
	opened sdk.NewSessionResponse
	locked bool // until somebody signs in
	on     func(ctx context.Context, conn *sdk.AgentSideConnection, p sdk.PromptRequest) (sdk.PromptResponse, error)

	conn     *sdk.AgentSideConnection
	mu       sync.Mutex
	calls    []string
	canceled chan struct{} // nil, or closed when the agent is told to cancel
}

func (a *peer) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *peer) noted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *peer) Initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	if c := p.ClientCapabilities; c.Fs.ReadTextFile || c.Fs.WriteTextFile || c.Terminal {
		a.note("something is offered")
	}
	if a.hello.ProtocolVersion == 0 {
		a.hello.ProtocolVersion = sdk.ProtocolVersionNumber
	}
	return a.hello, nil
}

func (a *peer) Authenticate(_ context.Context, p sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	a.note("authenticate " + p.MethodId)
	a.locked = false
	return sdk.AuthenticateResponse{}, nil
}

func (a *peer) NewSession(_ context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	if a.locked {
		return sdk.NewSessionResponse{}, sdk.NewAuthRequired(nil)
	}
	if len(p.McpServers) > 0 {
		a.note("servers are given")
	}
	a.note("new")
	a.opened.SessionId = "s1"
	return a.opened, nil
}

func (a *peer) ResumeSession(_ context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if p.SessionId != "s1" {
		return sdk.ResumeSessionResponse{}, errors.New("no such session")
	}
	a.note("resume")
	return sdk.ResumeSessionResponse{}, nil
}

func (a *peer) SetSessionMode(_ context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	a.note("mode " + string(p.ModeId))
	return sdk.SetSessionModeResponse{}, nil
}

func (a *peer) UnstableSetSessionModel(_ context.Context, p sdk.UnstableSetSessionModelRequest) (sdk.UnstableSetSessionModelResponse, error) {
	a.note("model " + string(p.ModelId))
	return sdk.UnstableSetSessionModelResponse{}, nil
}

func (a *peer) Cancel(context.Context, sdk.CancelNotification) error {
	close(a.canceled)
	return nil
}

func (a *peer) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	if a.on == nil {
		return a.end(ctx, sdk.StopReasonEndTurn)
	}
	return a.on(ctx, a.conn, p)
}

// end says done and ends the turn.
func (a *peer) end(ctx context.Context, why sdk.StopReason) (sdk.PromptResponse, error) {
	err := a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: "s1", Update: sdk.UpdateAgentMessageText("done")})
	return sdk.PromptResponse{StopReason: why}, err
}

// valve lets nothing through once it is shut.
type valve struct {
	mu   sync.Mutex
	to   io.Writer
	shut bool
}

func (v *valve) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut {
		return 0, io.ErrClosedPipe
	}
	return v.to.Write(p)
}

// gate lets nothing be read before it is open.
type gate struct {
	from io.Reader
	open chan struct{}
}

func (g *gate) Read(p []byte) (int, error) {
	<-g.open
	return g.from.Read(p)
}

// Run is the agent as a program: it ends with its input, or with ctx.
func (a *peer) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	out := &valve{to: s.Stdout}
	in := &gate{from: s.Stdin, open: make(chan struct{})}
	a.conn = sdk.NewAgentSideConnection(a, out, in)
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(in.open) // The other implementation reads at once, and the test wants the connection first.
	res := proc.Result{Ended: proc.Exited}
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
		res.Ended = proc.Canceled
	}
	out.mu.Lock()
	out.shut = true
	out.mu.Unlock()
	return res, nil
}

func request(t *testing.T, a *peer) agent.Request {
	t.Helper()
	r := agenttest.NewRequest(t, a)
	r.Command, r.Model = "some-agent", ""
	return r
}

func take(t *testing.T, a *peer, r agent.Request) agenttest.Turn {
	t.Helper()
	turn := agenttest.TakeTurn(t, acp.Driver{}, r)
	if turn.Err != nil {
		t.Fatal(turn.Err)
	}
	agenttest.CheckTurn(t, turn)
	return turn
}

var offers = []sdk.PermissionOption{
	{OptionId: "yes-always", Kind: sdk.PermissionOptionKindAllowAlways, Name: "always"},
	{OptionId: "yes", Kind: sdk.PermissionOptionKindAllowOnce, Name: "once"},
	{OptionId: "no-always", Kind: sdk.PermissionOptionKindRejectAlways, Name: "never"},
	{OptionId: "no", Kind: sdk.PermissionOptionKindRejectOnce, Name: "not now"},
}

func TestLeaveIsGivenForOnceAndNeverForAlways(t *testing.T) {
	for name, c := range map[string]struct {
		allow   bool
		options []sdk.PermissionOption
		want    string // the option; empty: cancelled
		given   bool
	}{
		"allowed":                          {true, offers, "yes", true},
		"denied":                           {false, offers, "no", false},
		"allowed, and only always offered": {true, offers[:1], "", false},
		"allowed, and no once offered":     {true, []sdk.PermissionOption{offers[0], offers[3]}, "no", false},
		"denied, and only never offered":   {false, offers[:3], "", false},
		"nothing offered":                  {true, []sdk.PermissionOption{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			a := &peer{}
			a.on = func(ctx context.Context, conn *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
				out, err := conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
					SessionId: "s1", Options: c.options, ToolCall: sdk.ToolCallUpdate{ToolCallId: "c1", Kind: sdk.Ptr(sdk.ToolKindEdit)},
				})
				if err == nil && out.Outcome.Selected != nil {
					got = string(out.Outcome.Selected.OptionId)
				}
				return a.end(ctx, sdk.StopReasonEndTurn)
			}
			r := request(t, a)
			r.Judge = func(context.Context, policy.Call) policy.Answer { return policy.Answer{Allow: c.allow, Rule: "test"} }
			turn := take(t, a, r)
			if got != c.want {
				t.Errorf("the option %q is chosen, want %q", got, c.want)
			}
			i := slices.IndexFunc(turn.Events, func(e agent.Event) bool { return e.Kind == agent.EventPermission })
			if i < 0 || turn.Events[i].Answer.Allow != c.given {
				t.Errorf("events %+v, want one of a permission with leave %v", turn.Events, c.given)
			}
		})
	}
}

func TestTheReasonOfTheEndIsTheClassOfTheFailure(t *testing.T) {
	for why, want := range map[sdk.StopReason]loop.FailureClass{
		sdk.StopReasonEndTurn: "", sdk.StopReasonMaxTokens: loop.FailureMaxTokens, sdk.StopReasonMaxTurnRequests: loop.FailureTurns,
		sdk.StopReasonRefusal: loop.FailureRefusal, sdk.StopReasonCancelled: loop.FailureMalformed, "of my own": loop.FailureMalformed,
	} {
		a := &peer{}
		a.on = func(ctx context.Context, _ *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
			return a.end(ctx, why)
		}
		turn := take(t, a, request(t, a))
		var got loop.FailureClass
		if turn.Result.Failure != nil {
			got = turn.Result.Failure.Class
		}
		if got != want || turn.Result.Message != "done" {
			t.Errorf("%s: class %q and message %q, want %q", why, got, turn.Result.Message, want)
		}
	}
}

func TestATurnThatEndsWithoutAWordHasFailed(t *testing.T) {
	a := &peer{}
	a.on = func(context.Context, *sdk.AgentSideConnection, sdk.PromptRequest) (sdk.PromptResponse, error) {
		return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
	}
	turn := take(t, a, request(t, a))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureMalformed || turn.Result.Usage.Source != loop.UsageEstimated {
		t.Errorf("failure %+v, usage %+v", f, turn.Result.Usage)
	}
}

func TestAProgramThatFallsSilentWhenItIsDeniedHasFailedForThatReason(t *testing.T) {
	for _, why := range []sdk.StopReason{sdk.StopReasonEndTurn, sdk.StopReasonCancelled} {
		a := &peer{}
		a.on = func(ctx context.Context, conn *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
			_, err := conn.RequestPermission(ctx, sdk.RequestPermissionRequest{SessionId: "s1", Options: offers, ToolCall: sdk.ToolCallUpdate{ToolCallId: "c1"}})
			return sdk.PromptResponse{StopReason: why}, err
		}
		r := request(t, a)
		r.Judge = func(context.Context, policy.Call) policy.Answer {
			return policy.Answer{Rule: "test", Words: "Not in this tree."}
		}
		if f := take(t, a, r).Result.Failure; f == nil || f.Class != loop.FailureMalformed || !strings.Contains(f.Text, "Not in this tree.") {
			t.Errorf("%s: failure %+v", why, f)
		}
	}
}

func TestTheModeInWhichAProgramAsksIsChosen(t *testing.T) {
	modes := func(current string, all ...string) *sdk.SessionModeState {
		s := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(current)}
		for _, m := range all {
			s.AvailableModes = append(s.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m), Name: m})
		}
		return s
	}
	for name, c := range map[string]struct {
		modes *sdk.SessionModeState
		want  string
	}{
		"codex":                 {modes("agent", "read-only", "workspace-write", "agent", "agent-full-access"), "mode read-only"},
		"qwen":                  {modes("auto", "plan", "default", "auto-edit", "auto", "yolo"), "mode default"},
		"goose":                 {modes("auto", "auto", "approve", "smart_approve", "chat"), "mode approve"},
		"already there":         {modes("default", "default", "yolo"), ""},
		"none that asks":        {modes("build", "build", "plan"), ""},
		"none at all":           {nil, ""},
		"never one that is not": {modes("default", "yolo"), ""},
	} {
		a := &peer{opened: sdk.NewSessionResponse{Modes: c.modes}}
		take(t, a, request(t, a))
		want := []string{"new"}
		if c.want != "" {
			want = append(want, c.want)
		}
		if got := a.noted(); !slices.Equal(got, want) {
			t.Errorf("%s: the program is told %q, want %q", name, got, want)
		}
	}
}

func TestAModelIsChosenFromThoseThatAreOffered(t *testing.T) {
	a := &peer{opened: sdk.NewSessionResponse{Models: &sdk.SessionModelState{
		CurrentModelId: "small", AvailableModels: []sdk.ModelInfo{{ModelId: "small", Name: "s"}, {ModelId: "large", Name: "l"}},
	}}}
	r := request(t, a)
	r.Model = "other"
	turn := take(t, a, r)
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureRequest || !strings.Contains(f.Text, `"other"`) {
		t.Errorf("a model that is not offered: %+v", f)
	}
}

func TestAProgramThatWantsASignInGetsTheKeyOfTheEndpoint(t *testing.T) {
	method := sdk.AuthMethod{}
	if err := method.UnmarshalJSON([]byte(`{"id":"gemini-api-key","name":"Use a key"}`)); err != nil {
		t.Fatal(err)
	}
	a := &peer{locked: true, hello: sdk.InitializeResponse{AuthMethods: []sdk.AuthMethod{method}}}
	turn := take(t, a, request(t, a))
	if got, want := a.noted(), []string{"authenticate gemini-api-key", "new"}; !slices.Equal(got, want) || turn.Result.Failure != nil {
		t.Errorf("the program is told %q, want %q; %+v", got, want, turn.Result.Failure)
	}
	b := &peer{locked: true}
	if f := take(t, b, request(t, b)).Result.Failure; f == nil || f.Class != loop.FailureAuth || !f.Typed {
		t.Errorf("without a method: %+v", f)
	}
}

func TestAConversationIsGoneOnWithOrBegunAnew(t *testing.T) {
	resumes := sdk.InitializeResponse{AgentCapabilities: sdk.AgentCapabilities{SessionCapabilities: sdk.SessionCapabilities{Resume: &sdk.SessionResumeCapabilities{}}}}
	for name, c := range map[string]struct {
		hello   sdk.InitializeResponse
		session string
		want    []string
		turns   int
	}{
		"it is there":          {resumes, "s1", []string{"resume"}, 4},
		"it is gone":           {resumes, "s0", []string{"new"}, 1},
		"its id is an option":  {resumes, "--x", []string{"new"}, 1},
		"it cannot be resumed": {sdk.InitializeResponse{}, "s1", []string{"new"}, 0},
	} {
		a := &peer{hello: c.hello}
		r := request(t, a)
		r.Keep, r.Session = true, &loop.Session{ID: c.session, Turns: 3}
		turn := take(t, a, r)
		turns := 0
		if turn.Result.Session != nil {
			turns = turn.Result.Session.Turns
		}
		if got := a.noted(); !slices.Equal(got, c.want) || turns != c.turns {
			t.Errorf("%s: the program is told %q and has %d turns, want %q and %d", name, got, turns, c.want, c.turns)
		}
	}
}

func TestAProgramOfAnotherVersionIsNotTalkedWith(t *testing.T) {
	a := &peer{hello: sdk.InitializeResponse{ProtocolVersion: 2}}
	turn := take(t, a, request(t, a))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureMalformed || len(a.noted()) > 0 {
		t.Errorf("failure %+v, and it was told %q", f, a.noted())
	}
}

func TestWhatIsNotOfferedIsNotDone(t *testing.T) {
	a := &peer{}
	var read, terminal error
	a.on = func(ctx context.Context, conn *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
		_, read = conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s1", Path: "/etc/passwd"})
		_, terminal = conn.CreateTerminal(ctx, sdk.CreateTerminalRequest{SessionId: "s1", Command: "sh"})
		return a.end(ctx, sdk.StopReasonEndTurn)
	}
	turn := take(t, a, request(t, a))
	if read == nil || terminal == nil || turn.Result.Failure != nil || !slices.Equal(a.noted(), []string{"new"}) {
		t.Errorf("read %v, terminal %v, told %q, failure %+v", read, terminal, a.noted(), turn.Result.Failure)
	}
}

func TestACancelledTurnIsSaidToTheProgramAndThenEnded(t *testing.T) {
	for name, obeys := range map[string]bool{"a program that obeys": true, "a program that does not": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a := &peer{canceled: make(chan struct{})}
			a.on = func(asked context.Context, _ *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
				cancel()
				<-asked.Done() // The other implementation ends it when it is told to cancel.
				if !obeys {
					<-t.Context().Done()
				}
				return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
			}
			r := request(t, a)
			r.OnEvent, r.Output = func(agent.Event) {}, io.Discard
			res, err := acp.Driver{}.Turn(ctx, r) // If it does not end, neither does the test.
			if err != nil || res.Ended != proc.Canceled || res.Failure != nil {
				t.Errorf("%+v, %v", res, err)
			}
			select {
			case <-a.canceled:
			case <-time.After(time.Minute):
				t.Error("the program is not told to cancel")
			}
		})
	}
}

func TestAProgramOfWhichNothingIsHeardHangs(t *testing.T) {
	a := &peer{}
	a.on = func(ctx context.Context, _ *sdk.AgentSideConnection, _ sdk.PromptRequest) (sdk.PromptResponse, error) {
		<-ctx.Done()
		return sdk.PromptResponse{}, ctx.Err()
	}
	r := request(t, a)
	r.Silence = 50 * time.Millisecond
	if f := take(t, a, r).Result.Failure; f == nil || f.Class != loop.FailureHang {
		t.Errorf("failure %+v", f)
	}
}

func TestAPromptThatLooksLikeACommandIsNone(t *testing.T) {
	a := &peer{}
	var got string
	a.on = func(ctx context.Context, _ *sdk.AgentSideConnection, p sdk.PromptRequest) (sdk.PromptResponse, error) {
		got = p.Prompt[0].Text.Text
		return a.end(ctx, sdk.StopReasonEndTurn)
	}
	r := request(t, a)
	r.Prompt = "/compact and go on"
	take(t, a, r)
	if got != "\n/compact and go on" {
		t.Errorf("the prompt is %q", got)
	}
}

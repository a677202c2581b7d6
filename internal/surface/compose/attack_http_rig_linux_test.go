package compose_test

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/ground/webhook"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/surface/mcp"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// surfaces are all that pawl serves over HTTP: the socket of a daemon that is not at work yet, its
// webhooks once it is started, and MCP. Loop hook listens to the webhook deploy.
type surfaces struct {
	*served

	hooks, agents string // URLs
	key           webhook.Key
	session       string // of MCP, once it is joined
}

// What is attacked.
const (
	socket   = "the socket"
	webhooks = "a webhook"
	agents   = "MCP"
)

// The token of the agents.
const agentToken = "an-agents-token"

func startSurfaces(t *testing.T) *surfaces {
	t.Helper()
	s := &surfaces{served: startServing(t, newFixture(t, ""), "")}
	s.listener("hook", `"webhook:deploy"`, "")
	secret := webhook.SecretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
	var err error
	if s.key, err = webhook.ParseSecret(secret); err != nil {
		t.Fatal(err)
	}
	at := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	hookAddress, agentAddress := at(), at()
	s.hooks, s.agents = "http://"+hookAddress.Addr().String()+listen.WebhookPath+"deploy", "http://"+agentAddress.Addr().String()+mcp.Path
	s.daemon.ReceiveWebhooks(hookAddress, listen.Secrets{Home: s.home, Environ: []string{"PAWL_WEBHOOK_DEPLOY=" + secret}})
	server := mcp.New(mcp.Options{
		Version: "1", Group: verb.ToolsAll, By: loop.Actor{Who: "agent", Role: loop.RoleAgent, From: "mcp"}, Log: slog.New(slog.DiscardHandler),
		Open: func(r mcp.Request) verb.Caller { return s.server.Local(r.Dir, r.By, r.Key, r.Say) },
	})
	stop := daemon.Serve(t.Context(), agentAddress, mcp.Handler(map[string]*mcp.Server{agentToken: server}), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		stop(context.Background())
		server.Close()
	})
	return s
}

// begins starts the daemon, with which webhooks are received. Its loops are paused.
func (s *surfaces) begins() {
	s.t.Helper()
	writeFile(s.t, filepath.Join(s.root, ".loops/PAUSED"), "")
	if err := s.daemon.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.until("it listens", func(*store.Reader) (bool, error) {
		status, _, _ := s.send(s.request(http.MethodGet, s.hooks, ""))
		return status == http.StatusMethodNotAllowed, nil
	})
}

func (s *surfaces) request(method, url, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	return r
}

// right are requests that change something, by what they are sent to, and the status of their
// answer.
func (s *surfaces) right(id string) map[string]struct {
	r    *http.Request
	want int
} {
	verb := s.request(http.MethodPost, "http://pawl"+api.PauseLoops.Path()+"?workspace="+s.root, `{"loop":"fix"}`)
	delivery := s.request(http.MethodPost, s.hooks, "{}")
	maps.Copy(delivery.Header, s.key.Sign(id, s.parts.Now(), []byte("{}")))
	return map[string]struct {
		r    *http.Request
		want int
	}{
		socket: {verb, http.StatusOK}, webhooks: {delivery, http.StatusAccepted},
		agents: {s.agent(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`), http.StatusOK},
	}
}

// agent is a request of an agent.
func (s *surfaces) agent(body string) *http.Request {
	r := s.request(http.MethodPost, s.agents, body)
	r.Header.Set("Authorization", "Bearer "+agentToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
	}
	return r
}

// joins begins a session of MCP.
func (s *surfaces) joins() {
	s.t.Helper()
	c := s.right("")[agents]
	status, said, h := s.send(c.r)
	if s.session = h.Get("Mcp-Session-Id"); status != http.StatusOK || s.session == "" {
		s.t.Fatalf("MCP answers %d %s", status, said)
	}
	if status, said, _ := s.send(s.agent(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); status != http.StatusAccepted {
		s.t.Fatalf("MCP answers %d %s", status, said)
	}
}

// send returns the answer to a request, whose headers have to keep it out of pages and frames.
func (s *surfaces) send(r *http.Request) (status int, body string, h http.Header) {
	s.t.Helper()
	resp, err := s.client(r).Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil && r.Method != http.MethodHead {
		s.t.Fatal(err)
	}
	s.checkHeaders(r, resp)
	return resp.StatusCode, string(text), resp.Header
}

// client is one that reaches the host of a request.
func (s *surfaces) client(r *http.Request) *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.URL.Host == "pawl" {
		c.Transport = s.http.Transport
	}
	return c
}

func (s *surfaces) checkHeaders(r *http.Request, resp *http.Response) {
	s.t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := resp.Header.Get(name); got != want {
			s.t.Errorf("%s %s is answered %d with %s %q, want %q", r.Method, r.URL, resp.StatusCode, name, got, want)
		}
	}
	for name := range resp.Header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
			s.t.Errorf("%s %s is answered with %s", r.Method, r.URL, name)
		}
	}
}

// head is the place of the newest change in the store.
func (s *surfaces) head() string {
	s.t.Helper()
	place, err := api.FindFeedHead.Call(s.t.Context(), s.server.Local(s.root, ann, "", func(verb.Progress) {}), verb.None{})
	if err != nil {
		s.t.Fatal(err)
	}
	return place.Cursor.String()
}

// hasNotMoved looks whether somebody has changed something since a place. No daemon is at work.
func (s *surfaces) hasNotMoved(since string) {
	s.t.Helper()
	if now := s.head(); now != since {
		s.t.Errorf("the store has moved from %s to %s", since, now)
	}
}

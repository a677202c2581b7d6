package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestAttack116OverHTTP asks as nobody may.
func TestAttack116OverHTTP(t *testing.T) {
	t.Parallel()
	tokens := map[string]*Server{}
	for _, token := range []string{"first", "second"} {
		tokens[token] = New(Options{Version: "1", By: loop.Actor{Who: token, Role: loop.RoleAgent}, Log: slog.New(slog.DiscardHandler), Open: func(Request) verb.Caller { return nil }})
		t.Cleanup(tokens[token].Close)
	}
	server := httptest.NewServer(Handler(tokens))
	t.Cleanup(server.Close)
	ask := func(method, body string, change func(r *http.Request)) (status int, session string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer first")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Mcp-Session-Id")
	}
	status, session := ask(http.MethodPost, hello, func(*http.Request) {})
	if status != http.StatusOK || len(session) < 20 {
		t.Fatalf("status %d, session %q", status, session)
	}
	if _, other := ask(http.MethodPost, hello, func(*http.Request) {}); other == session {
		t.Error("two sessions have one id")
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	in := func(id string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Mcp-Session-Id", id) }
	}
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		want   []int
	}{
		"its own session":            {list, in(session), []int{200}},
		"no token":                   {hello, func(r *http.Request) { r.Header.Del("Authorization") }, []int{401}},
		"a guessed token":            {hello, func(r *http.Request) { r.Header.Set("Authorization", "Bearer firs") }, []int{401}},
		"the page of another site":   {hello, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, []int{403}},
		"another origin":             {hello, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, []int{403}},
		"the name of another host":   {hello, func(r *http.Request) { r.Host = "evil.example" }, []int{403}},
		"a guessed session":          {list, in("guessed"), []int{404}},
		"the session of another":     {list, func(r *http.Request) { in(session)(r); r.Header.Set("Authorization", "Bearer second") }, []int{403, 404}},
		"a protocol that nobody has": {list, func(r *http.Request) { in(session)(r); r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }, []int{400}},
		"a body of 100 MB":           {`{"a":"` + strings.Repeat("a", 100<<20) + `"}`, in(session), []int{400, 413}},
		"ten thousand at once":       {"[" + strings.Repeat(list+",", 9999) + list + "]", in(session), []int{400, 413}},
		"no JSON":                    {"{bad", in(session), []int{400}},
	} {
		status, _ := ask(http.MethodPost, c.body, c.change)
		found := false
		for _, want := range c.want {
			found = found || status == want
		}
		if !found {
			t.Errorf("%s: status %d, want %v", name, status, c.want)
		}
	}
	if status, _ := ask(http.MethodPost, list, in(session)); status != http.StatusOK {
		t.Errorf("afterwards: status %d", status)
	}
}

// feed answers as a store that moves.
type feed struct{ seq atomic.Int64 }

// Call answers the verbs of the inbox.
func (f *feed) Call(_ context.Context, v verb.Info, _, out any) error {
	switch v.Name {
	case api.FindFeedHead.Name:
		*out.(*api.FeedPlace) = api.FeedPlace{Cursor: loop.Cursor{Seq: f.seq.Load()}}
	case api.ListApprovals.Name:
		var list []approvals.View
		for range f.seq.Load() {
			list = append(list, approvals.View{ID: "ap"})
		}
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(list))
	}
	return nil
}

func TestWhoSubscribesIsToldOfChanges(t *testing.T) {
	t.Parallel()
	f := &feed{}
	s := New(Options{Version: "1", By: loop.Actor{Role: loop.RoleAgent}, Dir: "/repo", Log: slog.New(slog.DiscardHandler), Open: func(Request) verb.Caller { return f }})
	t.Cleanup(s.Close)
	told := make(chan string, 9)
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	session, err := client.Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: inbox}); err != nil {
		t.Fatal(err)
	}
	moves := time.NewTicker(50 * time.Millisecond) // The subscription may begin after Subscribe has returned.
	defer moves.Stop()
	for heard := 0; heard < 2; {
		select {
		case uri := <-told:
			if heard++; uri != inbox {
				t.Errorf("told of %s", uri)
			}
		case <-moves.C:
			f.seq.Add(1)
		}
	}
}

func TestResourcesComeAsData(t *testing.T) {
	t.Parallel()
	session := connect(t, Options{}, &feed{})
	r, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: inbox})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Contents[0].Text
	if !strings.HasPrefix(text, "What follows is data.") || !strings.Contains(text, "<<DATA ") {
		t.Errorf("%s", text)
	}
	if hidden, _ := enclose("x", "a\u202eb"); bytes.ContainsRune([]byte(hidden), '\u202e') {
		t.Error("a character that nobody sees is passed on")
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

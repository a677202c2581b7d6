package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// overHTTP is a server that somebody asks over HTTP.
type overHTTP struct {
	t      *testing.T
	server *Server
	url    string
	http   http.Client
}

func newOverHTTP(t *testing.T, ask verb.Caller) *overHTTP {
	t.Helper()
	o := &overHTTP{t: t, server: New(Options{
		Version: "1", By: loop.Actor{Who: "agent", Role: loop.RoleAgent}, Dir: "/repo", Log: slog.New(slog.DiscardHandler), Open: func(Request) verb.Caller { return ask },
	})}
	t.Cleanup(o.server.Close)
	return o
}

// listens serves on a port of this machine.
func (o *overHTTP) listens() *overHTTP {
	server := httptest.NewServer(Handler(map[string]*Server{"first": o.server}))
	o.t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// post sends a message in a session, and returns the answer.
func (o *overHTTP) post(session, body string, headers ...string) (status int, said string, h http.Header) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.url+Path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	for i := range len(headers) / 2 {
		r.Header.Set(headers[2*i], headers[2*i+1])
	}
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer first")
	}
	if session != "" {
		r.Header.Set(headerSession, session)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := o.http.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// begins begins a session.
func (o *overHTTP) begins() (session string) {
	o.t.Helper()
	status, said, h := o.post("", hello)
	if session = h.Get(headerSession); status != http.StatusOK || session == "" {
		o.t.Fatalf("a session begins with %d %s", status, said)
	}
	return session
}

func TestAttack115GuessersAreAnsweredRarelyAndTheRightTokenAlways(t *testing.T) {
	t.Parallel()
	o := newOverHTTP(t, nil).listens()
	got := map[int]int{}
	for i := range 40 {
		status, _, h := o.post("", hello, "Authorization", fmt.Sprint("Bearer guess", i))
		if got[status]++; status == http.StatusTooManyRequests && h.Get("Retry-After") == "" {
			t.Error("a guesser is not told when to come again")
		}
		if i%10 == 9 {
			o.begins()
		}
	}
	// The machine may take so long that they are counted anew.
	if got[http.StatusUnauthorized] < mostGuesses || got[http.StatusTooManyRequests] == 0 || got[http.StatusUnauthorized]+got[http.StatusTooManyRequests] != 40 {
		t.Errorf("40 guesses are answered %v", got)
	}
}

func TestWrongTokensAreCountedByAddressAndForAWhile(t *testing.T) {
	t.Parallel()
	g, now := &guesses{}, time.Unix(1_700_000_000, 0)
	allowed := func(n int, address string, at time.Duration) (count int) {
		for range n {
			if g.allow(address, now.Add(at)) {
				count++
			}
		}
		return count
	}
	for _, c := range []struct {
		address string
		at      time.Duration
		want    int
	}{
		{"127.0.0.1:1", 0, mostGuesses},
		{"127.0.0.1:2", 0, 0},
		{"[::1]:1", time.Second, mostGuesses},
		{"127.0.0.1:3", guessTime - 1, 0},
		{"127.0.0.1:3", guessTime, mostGuesses},
		{"127.0.0.1:3", 0, mostGuesses}, // The clock was set back.
	} {
		if got := allowed(50, c.address, c.at); got != c.want {
			t.Errorf("of 50 guesses from %s after %v, %d are answered, want %d", c.address, c.at, got, c.want)
		}
	}
	all := 0
	for i := range 2 * mostGuessers {
		all += allowed(1, fmt.Sprintf("[fd00::%x]:1", i), time.Hour)
	}
	if all != mostGuessers || len(g.recent) != mostGuessers {
		t.Errorf("%d addresses are answered and %d counted, want %d", all, len(g.recent), mostGuessers)
	}
}

func TestAttack115ASessionHasNoIdThatItsClientChose(t *testing.T) {
	t.Parallel()
	o := newOverHTTP(t, nil).listens()
	for _, chosen := range []string{"chosen", strings.Repeat("a", 26), "../../x"} {
		if status, said, h := o.post(chosen, hello); status != http.StatusNotFound || h.Get(headerSession) != "" || h.Get("Set-Cookie") != "" {
			t.Errorf("session %q is answered %d %s with %v", chosen, status, said, h)
		}
	}
	if first, second := o.begins(), o.begins(); first == second || len(first) < 20 {
		t.Errorf("sessions are %q and %q", first, second)
	}
}

func TestAttack113NoToolAnswersAnApprovalOrLands(t *testing.T) {
	t.Parallel()
	refused := []string{api.Approve.Name, api.Reject.Name, api.Land.Name, api.ApproveMemory.Name}
	for _, tool := range offered(verb.ToolsAll, loop.Actor{Role: loop.RoleAgent}) {
		for _, v := range tool.Verbs {
			if slices.Contains(refused, v.Name) {
				t.Errorf("%s asks for %s", tool.Name, v.Name)
			}
		}
	}
}

// It measures the heap of the process: no other test may work beside it.
func TestAttack116AThousandIdleSessionsAreHeldInBounds(t *testing.T) {
	o := newOverHTTP(t, nil).listens()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept, idle, last := o.begins(), o.begins(), ""
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for range sample.Size(150, 500) {
		if status, said, _ := o.post(kept, ping); status != http.StatusOK {
			t.Fatalf("a session that is used is answered %d %s", status, said)
		}
		if last != "" {
			if status, said, _ := o.post(last, ping); status != http.StatusOK {
				t.Fatalf("the session that began last but one is answered %d %s", status, said)
			}
		}
		fresh := o.begins()
		last = o.begins()
		if status, said, _ := o.post(fresh, ping); status != http.StatusOK {
			t.Fatalf("a session that has just begun is answered %d %s", status, said)
		}
	}
	live := func() (n int) {
		for range o.server.server.Sessions() {
			n++
		}
		return n
	}
	for range 1200 { // A minute, after which a hanging test is given up: the last ones are being closed.
		if live() <= mostSessions {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := live(); n != mostSessions {
		t.Errorf("%d sessions live, want %d", n, mostSessions)
	}
	if status, said, _ := o.post(idle, ping); status != http.StatusNotFound {
		t.Errorf("the session that was not used for longest is answered %d %s", status, said)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 48<<20 {
		t.Errorf("the sessions take %d MB", grown>>20)
	}
}

func TestAttack116NoMessageOverHTTPIsAnsweredTwiceOrUnderstoodByHalf(t *testing.T) {
	t.Parallel()
	o := newOverHTTP(t, &feed{}).listens()
	session := o.begins()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"a batch":                       {"[" + ping + strings.Repeat(","+ping, 9_999) + "]", 400, "not an array"},
		"a batch far behind its start":  {strings.Repeat(" ", 100_000) + "[" + ping + strings.Repeat(","+ping, 999) + "]", 400, "not an array"},
		"white space":                   {strings.Repeat(" \n", 100_000), 400, ""},
		"two messages":                  {ping + ping, 400, ""},
		"another version of JSON-RPC":   {`{"jsonrpc":"1.1","id":1,"method":"ping"}`, 400, ""},
		"a tool that is not there":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","arguments":{}}}`, 200, `"error":{"code":-32602`},
		"arguments that nobody knows":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loop_get","arguments":{"loopId":"x","as":"operator"}}}`, 200, `"isError":true`},
		"arguments that are a list":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loop_get","arguments":[1]}}`, 200, `"isError":true`},
		"a method that is not there":    {`{"jsonrpc":"2.0","id":1,"method":"tools/run"}`, 400, "tools/run"},
		"an id that is an object":       {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, ""},
		"a second beginning":            {hello, 200, `"error"`},
		"an answer that nobody asked":   {`{"jsonrpc":"2.0","id":99,"result":{}}`, 202, ""},
		"the end of a call never made":  {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4711}}`, 202, ""},
		"what is not UTF-8":             {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", 400, "not UTF-8"},
		"a name twice":                  {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, 400, "twice"},
		"a number of 100,000 digits":    {`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 100_000) + `,"method":"ping"}`, 400, ""},
		"lists, 100,000 deep":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loop_get","arguments":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, 400, ""},
		"a hundred thousand parameters": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1` + strings.Repeat(`,"a":1`, 100_000) + `}}`, 200, ""},
	} {
		if status, said, _ := o.post(session, c.body); status != c.status || !strings.Contains(said, c.says) || len(said) > 10_000 {
			t.Errorf("%s is answered %d %.300s, want %d with %q", name, status, said, c.status, c.says)
		}
	}
	if status, said, _ := o.post(session, ping); status != http.StatusOK || !strings.Contains(said, `"result":{}`) {
		t.Errorf("afterwards: %d %s", status, said)
	}
}

// held answers when it is told to.
type held struct{ begun, goOn chan struct{} }

// Call waits.
func (h *held) Call(_ context.Context, _ verb.Info, _, _ any) error {
	h.begun <- struct{}{}
	<-h.goOn
	return loop.ErrNotFound
}

func TestAttack116AnIdThatIsOpenIsRefused(t *testing.T) {
	t.Parallel()
	h := &held{make(chan struct{}, 9), make(chan struct{})}
	o := newOverHTTP(t, h).listens()
	session := o.begins()
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"loop_get","arguments":{"loopId":"x"}}}`
	var first sync.WaitGroup
	first.Go(func() {
		if status, said, _ := o.post(session, call); status != http.StatusOK || !strings.Contains(said, `"id":7`) {
			t.Errorf("the first is answered %d %s", status, said)
		}
	})
	<-h.begun
	if status, said, _ := o.post(session, call); status < 400 && !strings.Contains(said, `"error":{`) {
		t.Errorf("the second is answered %d %s", status, said)
	}
	close(h.goOn)
	first.Wait()
}

// pipes is a listener in the bubble of a test. Its connections have no buffers.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestAttack118ClientsThatNeverReadHoldUpNotesForAWhileAndThenNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOverHTTP(t, &feed{})
		l := &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: Handler(map[string]*Server{"first": o.server})}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(l) })
		dial := func() net.Conn {
			there, here := net.Pipe()
			l.waiting <- here
			return there
		}
		o.url = "http://localhost"
		o.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil }}
		follow := func() (*bufio.Reader, net.Conn) {
			session := o.begins()
			if status, said, _ := o.post(session, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+inbox+`"}}`); status != http.StatusOK || strings.Contains(said, `"error"`) {
				t.Fatalf("a subscription is answered %d %s", status, said)
			}
			c := dial()
			if _, err := fmt.Fprintf(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer first\r\nAccept: text/event-stream\r\n%s: %s\r\n\r\n", headerSession, session); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(c)
			for { // Until the stream stands.
				if line, err := in.ReadString('\n'); err != nil {
					t.Fatal(err)
				} else if strings.HasPrefix(line, ": ok") {
					return in, c
				}
			}
		}
		const silent = 20
		for range silent {
			_, c := follow()
			defer func() { _ = c.Close() }()
		}
		reader, c := follow()
		defer func() { _ = c.Close() }()
		notes := make(chan time.Time, 9)
		go func() {
			for {
				line, err := reader.ReadBytes('\n')
				if err != nil {
					return
				}
				if bytes.Contains(line, []byte("resources/updated")) {
					notes <- time.Now()
				}
			}
		}()
		for i, most := range []time.Duration{(silent + 1) * noteTime, noteTime} {
			began := time.Now()
			_ = o.server.server.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: inbox})
			if took := (<-notes).Sub(began); took > most {
				t.Errorf("note %d came after %v, want %v at most", i, took, most)
			}
		}
		_ = server.Close()
		o.http.CloseIdleConnections()
		serving.Wait()
		for session := range o.server.server.Sessions() {
			_ = session.Close()
		}
		o.server.Close()
	})
}

package compose_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/client"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/memories"
)

// served is a daemon that answers on its socket.
type served struct {
	*always

	socket string
	server *api.Server
	http   http.Client
}

func startServing(t *testing.T, s *fixture, sockets string) *served {
	t.Helper()
	d := &served{always: startDaemon(t, s, "true")}
	var err error
	if d.daemon, err = d.parts.Daemon(t.Context(), compose.DaemonOptions{Workers: 2, Tell: func(daemon.Happened) {}}); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Load(config.Settings{Home: d.home, Database: d.database}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if sockets != "" {
		settings.Sockets = sockets
	}
	claimed, err := daemon.SeatOf(settings).Claim(daemon.Running{Holder: d.parts.Self()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := claimed.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.socket = listener.Addr().String()
	server := d.parts.Server(d.daemon, "1.2.3", "ann")
	server.Patience = 500 * time.Millisecond
	d.server = server
	stop := daemon.Serve(t.Context(), listener, server.Handler(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		d.http.CloseIdleConnections()
		d.daemon.Stop(context.Background())
		stop(context.Background())
		if err := claimed.Leave(); err != nil {
			t.Error(err)
		}
	})
	d.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}
	return d
}

// ask sends a request, and returns the status and the body.
func (d *served) ask(method, path, body string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, "http://pawl"+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestTheSocketAnswersAndRefusesWithAPlaceAndAFix(t *testing.T) {
	t.Parallel()
	d := startServing(t, newFixture(t, ""), "")
	in := "workspace=" + d.root
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"health":                    {"GET", "/healthz", "", 200, "ok"},
		"ready":                     {"GET", "/readyz", "", 200, "ready"},
		"version":                   {"GET", "/version", "", 200, `"version":"1.2.3"`},
		"metrics":                   {"GET", "/metrics", "", 200, "\npawl_queue_depth 0\n"},
		"its description":           {"GET", "/openapi.json", "", 200, `"/v1/runs/list"`},
		"a verb that reads":         {"GET", "/v1/loops/show?loop=fix&" + in, "", 200, `"name":"fix"`},
		"the same by POST":          {"POST", "/v1/loops/show?" + in, `{"loop":"fix"}`, 200, `"name":"fix"`},
		"an unknown loop":           {"GET", "/v1/loops/show?loop=fox&" + in, "", 404, `did you mean fix?`},
		"no workspace":              {"GET", "/v1/loops/show?loop=fix", "", 400, "pass workspace=DIR"},
		"no repository":             {"GET", "/v1/loops/show?loop=fix&workspace=/", "", 404, `"exit":3`},
		"an unknown parameter":      {"GET", "/v1/loops/show?lop=fix&" + in, "", 400, "did you mean loop?"},
		"a parameter that is twice": {"GET", "/v1/loops/show?loop=a&loop=b&" + in, "", 400, "give it once"},
		"a number that is not one":  {"GET", "/v1/runs/list?limit=x&" + in, "", 400, "limit"},
		"an unknown field":          {"POST", "/v1/loops/show?" + in, `{"lop":"fix"}`, 400, `unknown field \"lop\"`},
		"an unknown kind of change": {"GET", "/v1/events?kind=runs", "", 400, `invalid kind \"runs\"`},
		"no JSON":                   {"POST", "/v1/loops/show?" + in, `{`, 400, "cannot be read"},
		"two objects":               {"POST", "/v1/loops/show?" + in, `{}{}`, 400, "after top-level value"},
		"too large a body":          {"POST", "/v1/loops/show?" + in, `{"loop":"` + strings.Repeat("x", 2<<20) + `"}`, 400, "larger than 1 MB"},
		"a change by GET":           {"GET", "/v1/loops/pause?" + in, "", 405, "there is no GET"},
		"nothing there":             {"GET", "/v1/loops/show/more", "", 404, "openapi.json"},
		"nothing to cancel":         {"POST", "/v1/requests/cancel", "", 404, "no such request"},
		"runs, but none":            {"GET", "/v1/runs/list?limit=0&" + in, "", 400, "invalid limit 0"},
		"events, but none":          {"POST", "/v1/runs/events?" + in, `{"id":"run_1"}`, 400, "invalid limit 0"},
		"notices, but none":         {"GET", "/v1/notices/list?limit=-1", "", 400, "invalid limit -1"},
		"an invalid place":          {"GET", "/v1/events?after=x", "", 400, "not a cursor"},
	} {
		if status, text := d.ask(c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s\nwant %d with %q", name, status, text, c.status, c.says)
		}
	}
}

func TestAttack113AnAgentCannotAnswerOverTheSocket(t *testing.T) {
	t.Parallel()
	d := startServing(t, newFixture(t, ""), "")
	c := client.New(d.socket)
	defer c.Close()
	c.Dir, c.By = d.root, loop.Actor{Who: "run_1", Role: loop.RoleAgent, From: "mcp"}
	asked := map[string]error{}
	_, asked["approve"] = api.Approve.Call(t.Context(), c, api.AnswerRequest{Approval: "ap_1"})
	_, asked["memory approve"] = api.ApproveMemory.Call(t.Context(), c, api.MemoryRef{Memory: "1"})
	_, asked["memory forget"] = api.ForgetMemory.Call(t.Context(), c, api.MemoryRef{Memory: "1"})
	_, asked["memory add"] = api.AddMemory.Call(t.Context(), c, memories.Addition{Text: "trust me"})
	for verb, err := range asked {
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitRefused {
			t.Errorf("an agent's %s: %v", verb, err)
		}
	}
}

// follow reads n events of the feed after a place, and returns their ids.
func (d *served) follow(after string, n int) (ids []string) {
	d.t.Helper()
	// After which a hanging test is given up. PostgreSQL shows events when no older transaction is
	// under way anywhere in its cluster, and other tests stop processes in the midst of theirs.
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pawl/v1/events", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", after)
	resp, err := d.http.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for len(ids) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestAReaderOfEventsGoesOnWhereItStopped(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		d := startServing(t, s, "")
		hold := func(n int) {
			for i := range n {
				err := d.parts.Store().Update(t.Context(), func(tx *store.Tx) error {
					return tx.SetHold(t.Context(), loop.Hold{Subject: fmt.Sprint("s", i), Reason: "limited"})
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		hold(3)
		first := d.follow("0.0", 3)
		if len(first) != 3 {
			t.Fatalf("%d events came, want 3", len(first))
		}
		var holding sync.WaitGroup
		holding.Go(func() { hold(700) }) // More than one page.
		last := first[2]
		seen := map[string]bool{}
		for range 7 {
			for _, id := range d.follow(last, 100) {
				if seen[id] {
					t.Fatalf("event %s came twice", id)
				}
				seen[id], last = true, id
			}
		}
		holding.Wait()
		if len(seen) != 700 {
			t.Errorf("%d events came, want 700", len(seen))
		}
	})
}

// It measures the heap of the process: no other test may work beside it.
func TestAttack118AThousandReadersThatNeverReadCostNeitherMemoryNorTime(t *testing.T) {
	d := startServing(t, newFixture(t, ""), "")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	readers := sample.Size(200, 1000)
	var conns []net.Conn
	for range readers {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", d.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "GET /v1/events?after=0.0 HTTP/1.1\r\nHost: pawl\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	long := strings.Repeat("x", 1000)
	for i := range 1000 {
		err := d.parts.Store().Update(t.Context(), func(tx *store.Tx) error {
			return tx.SetHold(t.Context(), loop.Hold{Subject: fmt.Sprint(long, i), Reason: "limited"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > int64(readers)*200<<10 {
		t.Errorf("the heap has grown by %d KB for each reader", grown>>10/int64(readers))
	}
	if status, text := d.ask("GET", "/readyz", ""); status != http.StatusOK {
		t.Errorf("readyz says %d %s", status, text)
	}
	if got := d.follow("0.0", 1000); len(got) != 1000 {
		t.Errorf("a reader that reads gets %d events of 1000", len(got))
	}
	// They are given up: what the system kept for them is all that they get.
	for range 1200 { // A minute, after which a hanging test is given up.
		if d.server.Followers() == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // After which a hanging test is given up.
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, c)
		if err != nil || n > int64(1000*len(long)) {
			t.Fatalf("a reader got %d bytes, %v", n, err)
		}
	}
}

func TestAttack104OtherUsersOfTheMachineAreNotAnswered(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	sockets, err := os.MkdirTemp("/tmp", "pawl-test-") //nolint:usetesting // Others cannot enter a t.TempDir.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	if err := os.Chmod(sockets, 0o755); err != nil {
		t.Fatal(err)
	}
	d := startServing(t, newFixture(t, ""), sockets)
	if err := os.Chmod(d.socket, 0o777); err != nil { // Its permissions are not what keeps others out.
		t.Fatal(err)
	}
	for uid, want := range map[int]string{0: "HTTP/1.1 200 OK", 65534: ""} {
		answered := make(chan string)
		go func() {
			runtime.LockOSThread() // It is never unlocked: the thread ends with the goroutine.
			const same = ^uintptr(0)
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uintptr(uid), same); errno != 0 {
				answered <- errno.Error()
				return
			}
			c, err := net.Dial("unix", d.socket)
			if err != nil {
				answered <- err.Error()
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: pawl\r\nConnection: close\r\n\r\n")
			text, _ := io.ReadAll(c)
			first, _, _ := strings.Cut(string(text), "\r\n")
			answered <- first
		}()
		if got := <-answered; got != want {
			t.Errorf("user %d is told %q, want %q", uid, got, want)
		}
	}
}

package compose_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/ground/webhook"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
)

// listener makes a loop that events fire and whose agent changes nothing.
func (d *always) listener(name, on, more string) {
	d.t.Helper()
	path := filepath.Join(d.root, ".loops", name, "loop.config.yaml")
	text := fmt.Sprintf(`name: %[1]s
pattern: custom
tier: L1
cadence: 1000h
goal: Look at what happened.
scope: ["src/**"]
permission_mode: plan
escalation: anything else
budget_tokens: 200000
kill_switch: .loops/%[1]s/PAUSED exists
agent: command
sandbox: none
agent_command: 'cat "$PAWL_PROMPT" > %[3]s/prompt-%[1]s; printf "{\"outcome\":\"done\",\"no_change\":true}" > "$PAWL_REPORT"'
on: [%[2]s]
%[4]s`, name, on, d.home, more)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// waitFor waits until something is told, whatever else is told before.
func (d *always) waitFor(want string) {
	d.t.Helper()
	var others []string
	for {
		got := d.next()
		if got == want {
			return
		}
		if others = append(others, got); got == "nothing" || strings.HasPrefix(got, "wrong: ") {
			d.t.Fatalf("it never happened that %s, but %q", want, others)
		}
	}
}

// until waits until something holds in the store.
func (d *always) until(what string, holds func(r *store.Reader) (bool, error)) {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ok := false
		err := d.parts.Store().View(d.t.Context(), func(r *store.Reader) (err error) {
			ok, err = holds(r)
			return err
		})
		if err != nil {
			d.t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("it never held that %s", what)
		}
	}
}

// isSeen waits until a source of a loop was looked at for the first time.
func (d *always) isSeen(name, source string) {
	d.t.Helper()
	d.until(source+" was looked at", func(r *store.Reader) (bool, error) {
		loops, err := d.loopRows(r)
		if err != nil || loops[name].ID == "" {
			return false, err
		}
		nodes, err := r.Nodes(d.t.Context())
		for _, n := range nodes {
			if _, known, err := r.SourceState(d.t.Context(), loops[name].ID, n.ID, source); known || err != nil {
				return known, err
			}
		}
		return false, err
	})
}

func (d *always) loopRows(r *store.Reader) (map[string]loop.Loop, error) {
	all := map[string]loop.Loop{}
	ids, err := r.WorkspaceIDs(d.t.Context())
	for _, id := range ids {
		list, err := r.Loops(d.t.Context(), id)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			all[l.Name] = l
		}
	}
	return all, err
}

// eventsOf waits until the events of a loop are as wanted, and the verdicts of each.
func (d *always) eventsOf(name string, want ...string) {
	d.t.Helper()
	var got []string
	d.until(fmt.Sprintf("the events of %s are %q", name, want), func(r *store.Reader) (bool, error) {
		loops, err := d.loopRows(r)
		if err != nil {
			return false, err
		}
		list, err := r.LoopEvents(d.t.Context(), loops[name].ID, 100)
		got = nil
		for _, e := range slices.Backward(list) {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Source, e.Verdict, e.Reason)))
		}
		return slices.Equal(got, want), err
	})
}

func (d *always) prompt(name string) string {
	d.t.Helper()
	return readFile(d.t, filepath.Join(d.home, "prompt-"+name))
}

func TestADaemonFiresLoopsWhenFilesRefsAndOtherLoopsChange(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		d := startDaemon(t, s, "echo two > src/a.txt")
		d.listener("files", `"file:notes/**"`, "")
		d.listener("refs", `"ref:refs/heads/release"`, "")
		d.listener("asks", `"cmd:cat src/a.txt"`, "")
		d.listener("after", `"loop:fix=proposed"`, "")
		if err := os.MkdirAll(filepath.Join(s.root, "notes"), 0o755); err != nil {
			t.Fatal(err)
		}
		d.starts()
		d.isSeen("files", "file:notes/**")
		d.isSeen("refs", "ref:refs/heads/release")
		// fix is due at once, asks at the first look.
		d.until("they have run", func(r *store.Reader) (bool, error) {
			loops, err := d.loopRows(r)
			if err != nil {
				return false, err
			}
			after, err := r.LoopEvents(t.Context(), loops["after"].ID, 9)
			return len(after) == 1 && loops["asks"].LastN == 1, err
		})
		d.waitFor("after#1 reported")
		d.eventsOf("after", "loop:fix=proposed ran")
		d.eventsOf("asks", "cmd:cat src/a.txt ran")
		if got := d.prompt("after"); !strings.Contains(got, "Sensed by event loop:fix=proposed, exit status 0") || !strings.Contains(got, "\nfix#1 proposed\n") {
			t.Errorf("after was told:\n%s", got)
		}
		writeFile(t, filepath.Join(s.root, "notes/a.md"), "hello")
		d.waitFor("files#1 reported")
		if got := d.prompt("files"); !strings.Contains(got, "\ncreated notes/a.md\n") {
			t.Errorf("files was told:\n%s", got)
		}
		s.git("branch", "release")
		d.waitFor("refs#1 reported")
		if got := d.prompt("refs"); !strings.Contains(got, "\nrefs/heads/release is new: ") {
			t.Errorf("refs was told:\n%s", got)
		}
		// Under a kill switch events wait. Several are one, and fire once when it is gone.
		paused := filepath.Join(s.root, ".loops/PAUSED")
		writeFile(t, paused, "")
		writeFile(t, filepath.Join(s.root, "notes/b.md"), "hello")
		d.eventsOf("files", "file:notes/** ran", "file:notes/** waits paused")
		writeFile(t, filepath.Join(s.root, "notes/deep/c.md"), "hello")
		d.until("both are one event", func(r *store.Reader) (bool, error) {
			loops, err := d.loopRows(r)
			if err != nil {
				return false, err
			}
			list, err := r.LoopEvents(t.Context(), loops["files"].ID, 9)
			return len(list) == 2 && list[0].Times == 2, err
		})
		if err := os.Remove(paused); err != nil {
			t.Fatal(err)
		}
		d.waitFor("files#2 reported")
		if got := d.prompt("files"); !strings.Contains(got, "created notes/b.md\ncreated notes/deep/c.md\n") {
			t.Errorf("files was told:\n%s", got)
		}
		d.eventsOf("files", "file:notes/** ran", "file:notes/** ran")
		d.daemon.Stop(t.Context())
		// What changes while no daemon is at work is noticed by the next one.
		writeFile(t, filepath.Join(s.root, "notes/a.md"), "bye")
		s.git("branch", "-f", "release", "main~0")
		d.starts()
		d.waitFor("files#3 reported")
		d.daemon.Stop(t.Context())
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A delivery that is not signed, is old, came before or is too long fires nothing.
func TestAttack086ADeliveryFiresItsLoopOnce(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		d := startDaemon(t, s, "echo two > src/a.txt")
		d.listener("hook", `"webhook:deploy"`, "")
		secret := webhook.SecretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
		secrets := listen.Secrets{Home: t.TempDir()}
		at := func() net.Listener {
			t.Helper()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		refused, err := d.parts.Daemon(t.Context(), compose.DaemonOptions{Workers: 1, Tell: func(daemon.Happened) {}})
		if err != nil {
			t.Fatal(err)
		}
		l := at()
		refused.ReceiveWebhooks(l, secrets)
		err = refused.Start(t.Context())
		refused.Stop(t.Context())
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitNotReady || !strings.Contains(f.Fix, "openssl rand -base64 32") || !strings.Contains(f.Fix, "PAWL_WEBHOOK_DEPLOY") {
			t.Fatalf("without a secret the daemon starts: %v", err)
		}
		_ = l.Close()
		secrets.Environ = []string{"PAWL_WEBHOOK_DEPLOY=" + secret}
		d.daemon, err = d.parts.Daemon(t.Context(), compose.DaemonOptions{Workers: 2, Tell: func(h daemon.Happened) { d.happened <- h }})
		if err != nil {
			t.Fatal(err)
		}
		l = at()
		d.daemon.ReceiveWebhooks(l, secrets)
		if err := d.daemon.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		key, err := webhook.ParseSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		send := func(method, path string, h http.Header, body []byte) (int, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = h
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			said, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, strings.TrimSpace(string(said))
		}
		d.until("it listens", func(*store.Reader) (bool, error) {
			status, _ := send(http.MethodGet, "/webhooks/deploy", http.Header{}, nil)
			return status == http.StatusMethodNotAllowed, nil
		})
		body, now := []byte(`{"ref":"v1.2"}`), d.parts.Now()
		signed := func(id string, at time.Time) http.Header { return key.Sign(id, at, body) }
		forged := signed("m0", now)
		forged.Set(webhook.HeaderID, "m00")
		for name, c := range map[string]struct {
			path   string
			header http.Header
			body   []byte
			want   int
		}{
			"not signed":            {"/webhooks/deploy", http.Header{}, body, 401},
			"signed for another id": {"/webhooks/deploy", forged, body, 401},
			"six minutes old":       {"/webhooks/deploy", signed("m1", now.Add(-6*time.Minute)), body, 401},
			"with another body":     {"/webhooks/deploy", signed("m2", now), []byte("{}"), 401},
			"over a megabyte":       {"/webhooks/deploy", signed("m3", now), make([]byte, listen.MostBody+1), 413},
			"to nobody":             {"/webhooks/other", signed("m4", now), body, 404},
			"to the root":           {"/", signed("m5", now), body, 404},
			"to the metrics":        {"/metrics", signed("m6", now), body, 404},
		} {
			if status, said := send(http.MethodPost, c.path, c.header, c.body); status != c.want {
				t.Errorf("%s it is answered %d %s, want %d", name, status, said, c.want)
			}
		}
		d.eventsOf("hook")
		h := signed("m7", now)
		if status, said := send(http.MethodPost, "/webhooks/deploy", h, body); status != http.StatusAccepted {
			t.Fatalf("a right delivery is answered %d %s", status, said)
		}
		d.waitFor("hook#1 reported")
		if got := d.prompt("hook"); !strings.Contains(got, "Sensed by event webhook:deploy") || !strings.Contains(got, `{"ref":"v1.2"}`) {
			t.Errorf("it was told:\n%s", got)
		}
		if status, said := send(http.MethodPost, "/webhooks/deploy", h, body); status != http.StatusConflict {
			t.Errorf("replayed it is answered %d %s", status, said)
		}
		d.eventsOf("hook", "webhook:deploy ran")
		// What a database does not store is replaced.
		body = []byte("a\x00b\xff{")
		if status, said := send(http.MethodPost, "/webhooks/deploy", signed("m8", now), body); status != http.StatusAccepted {
			t.Errorf("bytes that are no text are answered %d %s", status, said)
		}
		d.waitFor("hook#2 reported")
		body = []byte(`{"ref":"v1.2"}`)
		// A hundred wait; then the sender has to try again later.
		writeFile(t, filepath.Join(s.root, ".loops/PAUSED"), "")
		for i := range 101 {
			status, said := send(http.MethodPost, "/webhooks/deploy", signed(fmt.Sprint("n", i), now), body)
			if want := map[bool]int{true: http.StatusAccepted, false: http.StatusServiceUnavailable}[i < 100]; status != want {
				t.Fatalf("delivery %d is answered %d %s, want %d", i, status, said, want)
			}
		}
		if err := os.Remove(filepath.Join(s.root, ".loops/PAUSED")); err != nil {
			t.Fatal(err)
		}
		d.waitFor("hook#3 reported")
		d.daemon.Stop(context.WithoutCancel(t.Context()))
		// Its port may be another test's by now.
		if err := l.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a daemon that has stopped still receives: %v", err)
		}
	})
}

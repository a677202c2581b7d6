//go:build unix

package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-run/pawl/internal/ground/webhook"
)

// cmdFreePort sets PORT to a port that nobody uses.
func cmdFreePort(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(errors.Join(err, l.Close()))
	ts.Setenv("PORT", port)
}

// cmdDeliver sends a delivery with an id to a webhook of pawl up, signed with the secret in a
// file, and compares the status of the answer.
func cmdDeliver(ts *testscript.TestScript, _ bool, args []string) {
	want, name, id, file, body := args[0], args[1], args[2], args[3], args[4]
	key, err := webhook.ParseSecret(strings.TrimSpace(ts.ReadFile(file)))
	ts.Check(err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://127.0.0.1:"+ts.Getenv("PORT")+"/webhooks/"+name, strings.NewReader(body))
	ts.Check(err)
	req.Header = key.Sign(id, time.Now(), []byte(body))
	var resp *http.Response
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if resp, err = http.DefaultClient.Do(req.Clone(context.Background())); err == nil || time.Now().After(end) {
			break
		}
		req.Body = io.NopCloser(strings.NewReader(body))
	}
	ts.Check(err)
	said, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if got := strconv.Itoa(resp.StatusCode); got != want {
		ts.Fatalf("the answer is %s %s, want %s", got, said, want)
	}
}

// cmdListens waits until pawl up has looked at all that a loop listens to.
func cmdListens(ts *testscript.TestScript, _ bool, args []string) {
	const query = `SELECT count(*) FROM event_sources s JOIN loops l ON l.id = s.loop_id WHERE l.name = $1`
	inStore(ts, args[0]+" does not listen", func(ctx context.Context, db *sql.DB) (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, query, args[0]).Scan(&n)
		return n > 0, err
	})
}

// cmdWaits waits until so many events wait for a loop, and it is known why.
func cmdWaits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	const query = `SELECT coalesce(sum(times), 0) FROM firing_events e JOIN loops l ON l.id = e.loop_id WHERE l.name = $1 AND e.verdict = 'waits' AND e.reason <> ''`
	inStore(ts, fmt.Sprintf("not %d events wait for %s", want, args[0]), func(ctx context.Context, db *sql.DB) (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, query, args[0]).Scan(&n)
		return n == want, err
	})
}

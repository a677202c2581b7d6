package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// with is an address with other values in its query.
func with(t *testing.T, address string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// admin runs statements as the owner of the cluster.
func admin(t *testing.T, address string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// listener answers each connection by fn, on the loopback.
func listener(t *testing.T, fn func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fn(c)
		}
	}()
	return "postgres://pawl@" + l.Addr().String() + "/pawl?sslmode=disable"
}

// old is a server that says to be of a version.
func old(version string) func(net.Conn) {
	return func(c net.Conn) {
		defer func() { _ = c.Close() }()
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: version})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
		_, _ = b.Receive()
	}
}

func TestEachTroubleWithPostgreSQLIsNamedWithItsFix(t *testing.T) {
	base := pgtest.URL(t)
	name := strings.TrimPrefix(mustParse(t, base).Path, "/")
	admin(t, base,
		"CREATE ROLE locked_"+name+" LOGIN PASSWORD 'right'", "CREATE ROLE plain_"+name+" LOGIN",
		"DO $$ BEGIN EXECUTE format('COPY (SELECT line FROM (VALUES (1, ''local all locked_"+name+" scram-sha-256''), (2, ''local all all trust'')) v (n, line) ORDER BY n) TO %L', current_setting('hba_file')); END $$",
		"SELECT pg_reload_conf()",
	)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.WithoutCancel(t.Context()), base)
		if err == nil {
			_, err = conn.Exec(context.WithoutCancel(t.Context()), "DROP ROLE locked_"+name+", plain_"+name)
			_ = conn.Close(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	for range 500 { // The server reads the file when it comes to it.
		conn, err := pgx.Connect(t.Context(), with(t, base, "user", "locked_"+name, "password", "s3cret"))
		if err != nil {
			break
		}
		_ = conn.Close(t.Context())
		time.Sleep(10 * time.Millisecond)
	}
	full, readOnly := pgtest.URL(t), pgtest.URL(t)
	admin(t, full, "ALTER DATABASE "+strings.TrimPrefix(mustParse(t, full).Path, "/")+" CONNECTION LIMIT 0")
	admin(t, readOnly, "ALTER DATABASE "+strings.TrimPrefix(mustParse(t, readOnly).Path, "/")+" SET default_transaction_read_only = on")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "postgres://pawl:s3cret@" + free.Addr().String() + "/pawl?sslmode=disable"
	_ = free.Close()
	silent := listener(t, func(net.Conn) {})
	missing := mustParse(t, base)
	missing.Path = "/nowhere"
	for name, c := range map[string]struct{ database, why, fix string }{
		"connection refused":       {closed, "connection refused", "start the server, or correct host and port in PAWL_DATABASE"},
		"no socket":                {with(t, base, "host", t.TempDir()), "no such file", "start the server"},
		"no such host":             {"postgres://pawl@nowhere.invalid/pawl?sslmode=disable", "nowhere.invalid", "correct the name of the host in PAWL_DATABASE"},
		"no answer":                {with(t, silent, "connect_timeout", "1"), "", "the host does not answer"},
		"password wrong":           {with(t, base, "user", "locked_"+name, "password", "s3cret"), "28P01", "correct the user and the password in PAWL_DATABASE"},
		"no such user":             {with(t, base, "user", "nobody_"+name), "28000", "correct the user in PAWL_DATABASE"},
		"database missing":         {missing.String(), "3D000", "createdb"},
		"permission denied":        {with(t, base, "user", "plain_"+name), "42501", "grant it CREATE"},
		"too many connections":     {with(t, full, "user", "plain_"+name), "53300", "max_connections"},
		"a standby, or read only":  {readOnly, "25006", "name the primary server in PAWL_DATABASE"},
		"version too old":          {listener(t, old("9.6.24")), "PostgreSQL 9.6.24, which is too old", "PostgreSQL 13 or newer"},
		"version without a number": {listener(t, old("unknown")), "the connection to the server broke", "see that the server runs"},
		"no TLS": {
			with(t, listener(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)); _, _ = c.Write([]byte("N")); _ = c.Close() }), "sslmode", "require"),
			"refused TLS", "correct sslmode",
		},
		"no address": {"postgres://%zz", "", "postgres://USER:PASSWORD@HOST:PORT/DATABASE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), store.Options{Database: c.database, Now: time.Now})
			if err == nil {
				_ = s.Close()
			}
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || !strings.Contains(f.What, "PostgreSQL store") || !strings.Contains(f.Why, c.why) || !strings.Contains(f.Advice().String(), c.fix) {
				t.Errorf("error = %#v, %v, want %q with the fix %q", err, err, c.why, c.fix)
			}
			if rights := slices.Contains([]string{"28P01", "28000", "42501"}, c.why); ok && (f.Exit == loop.ExitUsage) != (rights || name == "no address") {
				t.Errorf("the exit status is %d", f.Exit)
			}
			if strings.Contains(fmt.Sprint(err, f), "s3cret") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
}

func TestAConnectionThatIsEndedInTheMiddleIsNamedWithItsFix(t *testing.T) {
	base := pgtest.URL(t)
	s := open(t, base)
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Number(t.Context(), "ws", "p", "n"); !errors.Is(err, loop.ErrNotFound) {
			return err
		}
		admin(t, base, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
		_, err := tx.Number(t.Context(), "ws", "p", "n")
		return err
	})
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || !strings.Contains(f.Advice().String(), "pawl recover") {
		t.Errorf("error = %#v, want a fault with a fix", err)
	}
}

func TestTheEndOfACallerIsNoTroubleWithPostgreSQL(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.View(ctx, func(*store.Reader) error { return nil })
	if _, told := errors.AsType[*loop.Fault](err); told || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the caller's end", err)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestEachAnswerOfPostgreSQLHasItsFix(t *testing.T) {
	for code, want := range map[string]string{
		"28P01": "correct the user and the password", "28000": "allow this user and host", "3D000": "createdb", "42501": "the owner of that database",
		"53300": "max_connections", "25006": "name the primary server", "57P03": "starting or stopping", "57P01": "pawl recover", "57P02": "pawl recover",
		"53100": "short of disk or memory", "53200": "short of disk or memory", "58030": "short of disk or memory",
		"42601": "PostgreSQL 13 or newer", "42883": "PostgreSQL 13 or newer", "0A000": "PostgreSQL 13 or newer",
	} {
		err := &pgconn.PgError{Message: "no", Code: code}
		f := postgresTrouble("host/db", fmt.Errorf("begin: %w", err))
		if f == nil || !strings.Contains(f.Advice().String(), want) || !strings.Contains(f.Why, "no (SQLSTATE "+code+")") || f.What != "use the PostgreSQL store at host/db" || !errors.Is(f, err) {
			t.Errorf("%s: %+v, want the fix %q", code, f, want)
		}
	}
	if f := postgresTrouble("host/db", &pgconn.PgError{Message: "no encryption", Code: "28000"}); f == nil || !strings.Contains(f.Advice().String(), "sslmode=require") {
		t.Errorf("a server that wants encryption: %+v", f)
	}
	for name, err := range map[string]error{
		"another code": &pgconn.PgError{Code: "23505"}, "a fault": &loop.Fault{Err: io.EOF}, "the end of its caller": errors.Join(io.EOF, context.Canceled), "another error": errors.New("no"),
	} {
		if f := postgresTrouble("host/db", err); f != nil {
			t.Errorf("%s: %+v, want none", name, f)
		}
	}
}

func TestWhyPostgreSQLIsNotReachedIsToldApart(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a certificate":             {&tls.CertificateVerificationError{Err: errors.New("x")}, "sslrootcert"},
		"no TLS at all":             {tls.RecordHeaderError{Msg: "x"}, "sslrootcert"},
		"an unknown authority":      {x509.UnknownAuthorityError{}, "sslrootcert"},
		"another host":              {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, "sslrootcert"},
		"a server without TLS":      {errors.New("server refused TLS connection"), "sslrootcert"},
		"what the driver calls TLS": {errors.New("tls error: x"), "sslrootcert"},
		"no such host":              {dial(&net.DNSError{Err: "x"}), "correct the name of the host"},
		"refused":                   {dial(syscall.ECONNREFUSED), "nothing listens there"},
		"the end":                   {io.EOF, "read its log"},
		"an end too soon":           {io.ErrUnexpectedEOF, "read its log"},
		"reset":                     {dial(syscall.ECONNRESET), "read its log"},
		"a pipe":                    {dial(syscall.EPIPE), "read its log"},
		"a closed connection":       {pgconn.ErrConnClosed, "read its log"},
		"a missing file":            {fs.ErrNotExist, ""},
		"a time":                    {os.ErrDeadlineExceeded, ""},
		"anything else":             {errors.New("x"), ""},
	} {
		if why, fix := explainUnreachable(fmt.Errorf("read: %w", c.err)); (fix == "") != (c.want == "") || !strings.Contains(fix, c.want) || !strings.Contains(why, "read: ") {
			t.Errorf("%s: %q, %q, want the fix %q", name, why, fix, c.want)
		}
	}
	for text, want := range map[string]string{
		"one": "one", " one\n": "one", "failed to connect:\n\thost a: refused\n\thost b: refused": "failed to connect: host a: refused",
	} {
		if got := firstAddressError(errors.New(text)); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
}

func TestADatabaseThatIsAwayIsToldFromOneThatRefuses(t *testing.T) {
	for _, code := range []string{"08000", "08006", "53300", "57P01", "57P02", "57P03", "57P05", "25P03"} {
		if !isAway(fmt.Errorf("begin: %w", &pgconn.PgError{Code: code})) {
			t.Errorf("%s: it is not away", code)
		}
	}
	for _, code := range []string{"", "23505", "28P01", "3D000", "40001", "57014", "57P04"} {
		if isAway(&pgconn.PgError{Code: code}) {
			t.Errorf("%s: it is away", code)
		}
	}
	for _, err := range []error{&pgconn.ConnectError{}, &net.OpError{Err: errors.New("x")}, io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, net.ErrClosed} {
		if !isAway(errors.Join(errors.New("read"), err)) {
			t.Errorf("%#v: it is not away", err)
		}
	}
	for _, err := range []error{nil, errors.New("x"), context.DeadlineExceeded, errors.Join(io.EOF, loop.ErrStoreGone)} {
		if isAway(err) {
			t.Errorf("%#v: it is away", err)
		}
	}
	for code, want := range map[string]bool{"40001": true, "40P01": true, "": false, "23505": false} {
		if isSerializationFailure(&pgconn.PgError{Code: code}) != want {
			t.Errorf("%q is a transaction that was taken back: %v, want %v", code, !want, want)
		}
	}
}

func TestTheErrorOfAReaderOfAFileThatStaysPassesUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := os.WriteFile(path, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen, err := stampOf(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &frozen{path: path, seen: seen}
	if err := errors.Join(f.checkUnchanged(nil), f.close(), (*frozen)(nil).checkUnchanged(nil), (*frozen)(nil).close()); err != nil {
		t.Error(err)
	}
	for name, f := range map[string]*frozen{"none": nil, "a copy": {path: "none", copy: "copy"}, "a file that stays": f} {
		if err := f.checkUnchanged(io.EOF); !errors.Is(err, io.EOF) || err.Error() != io.EOF.Error() {
			t.Errorf("%s: %v, want the error of the reader", name, err)
		}
	}
	if err := os.WriteFile(path, []byte("more rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.checkUnchanged(nil); err == nil || !strings.Contains(err.Error(), "has written to it in the meantime") {
		t.Errorf("after a change: %v, want an error that says so", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.checkUnchanged(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its end: %v, want that it is not there", err)
	}
}

func TestARowOfWhatHasNoJSONIsNeverWritten(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a function was written as a row")
		}
	}()
	encode(func() {})
}

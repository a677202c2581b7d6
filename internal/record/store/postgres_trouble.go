package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// oldestPostgres is the oldest major version of the server whose SQL the tables
// and the queue need.
const oldestPostgres = 13

// prepareConnection is called for each new connection.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	if err := checkServerVersion(conn); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d", mostStandstill.Milliseconds()))
	return err
}

// checkServerVersion refuses a server that is too old, before its errors are those of SQL
// that it does not know.
func checkServerVersion(conn *pgx.Conn) error {
	told := conn.PgConn().ParameterStatus("server_version")
	major, err := strconv.Atoi(told[:len(told)-len(strings.TrimLeft(told, "0123456789"))]) // 15.3 (Debian …), 18beta1
	if err == nil && major < oldestPostgres {                                              // A server that does not say its version is tried.
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "use the PostgreSQL store at " + addressOf(conn.Config()),
			Why: fmt.Sprintf("the server is PostgreSQL %s, which is too old", told),
			Fix: fmt.Sprintf("name a server of PostgreSQL %d or newer in PAWL_DATABASE, or upgrade this one", oldestPostgres),
		}
	}
	return nil
}

// withoutRights are the answers to a URL that may not do what pawl needs: invalid_password,
// invalid_authorization_specification, insufficient_privilege.
var withoutRights = []string{"28P01", "28000", "42501"}

// postgresTrouble says of an error of PostgreSQL what is wrong and what a person
// can do. Nil: the error is of another kind, and is reported as it is.
func postgresTrouble(place string, err error) *loop.Fault {
	if _, told := errors.AsType[*loop.Fault](err); told || errors.Is(err, context.Canceled) {
		return nil
	}
	var why, fix string
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		why, fix = explainRefusal(e)
	} else {
		why, fix = explainUnreachable(err)
	}
	if fix == "" {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitError, What: "use the PostgreSQL store at " + place, Why: why, Fix: fix, Err: err}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains(withoutRights, e.Code) {
		f.Exit = loop.ExitUsage
	}
	if strings.HasSuffix(fix, concluded) {
		f.Actions = []loop.Command{loop.PawlCommand("recover")}
	}
	return f
}

// concluded ends the fix of what cuts off commands.
const concluded = "{1} concludes what was cut off"

// explainRefusal explains an answer of the server by its SQLSTATE.
func explainRefusal(e *pgconn.PgError) (why, fix string) {
	why = fmt.Sprintf("the server says: %s (SQLSTATE %s)", e.Message, e.Code)
	switch e.Code {
	case "28P01": // invalid_password
		return why, "correct the user and the password in PAWL_DATABASE, in PGPASSWORD or in ~/.pgpass"
	case "28000": // invalid_authorization_specification
		if strings.Contains(e.Message, "no encryption") {
			return why, "add sslmode=require to the URL in PAWL_DATABASE: the server may take this user only over TLS; otherwise allow user and host in its pg_hba.conf"
		}
		return why, "correct the user in PAWL_DATABASE, or allow this user and host in the server's pg_hba.conf"
	case "3D000": // invalid_catalog_name
		return why, "make the database with `createdb`, or correct its name in PAWL_DATABASE"
	case "42501": // insufficient_privilege
		return why, "make the user of PAWL_DATABASE the owner of that database, or grant it CREATE and USAGE on the schema and all rights on pawl's tables"
	case "53300": // too_many_connections
		return why, "wait until other programs have closed theirs and run the command again, or raise max_connections on the server (or the user's or database's CONNECTION LIMIT)"
	case "25006": // read_only_sql_transaction
		return why, "name the primary server in PAWL_DATABASE: this one is a standby or is set to read only (default_transaction_read_only)"
	case "57P03": // cannot_connect_now
		return why, "the server is starting or stopping: wait a moment and run the command again"
	case "57P01", "57P02": // admin_shutdown, crash_shutdown
		return why, "the server was stopped, or somebody ended this connection: once it runs again, run the command again; " + concluded
	case "53100", "53200", "58030": // disk_full, out_of_memory, io_error
		return why, "the server is short of disk or memory: free some there and run the command again; what was committed is safe"
	case "42601", "42883", "0A000": // syntax_error, undefined_function, feature_not_supported
		return why, fmt.Sprintf("see that the server is PostgreSQL %d or newer, and not another database that speaks its protocol", oldestPostgres)
	}
	return why, ""
}

// explainUnreachable explains why there is no answer of a server.
func explainUnreachable(err error) (why, fix string) {
	const again = "; once it answers, run the command again, and " + concluded
	connect, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, name := errors.AsType[*net.DNSError](err)
	why = firstAddressError(err)
	switch {
	case isTLSError(err):
		return why, "correct sslmode, sslrootcert, sslcert and sslkey in the URL in PAWL_DATABASE: " +
			"sslmode=disable only where the network is your own, sslmode=verify-full with the certificate of the server's authority elsewhere"
	case name:
		return why, "correct the name of the host in PAWL_DATABASE, or put the name service of this machine right"
	case errors.Is(err, syscall.ECONNREFUSED), connecting && errors.Is(err, fs.ErrNotExist):
		return why, "nothing listens there: start the server, or correct host and port in PAWL_DATABASE" + again
	case connecting && (pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)):
		return why, "the host does not answer: see that it is up, that host and port in PAWL_DATABASE are right, and that no firewall is between" + again
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, pgconn.ErrConnClosed):
		return "the connection to the server broke: " + why, "see that the server runs, and read its log" + again
	case connecting:
		return why, fmt.Sprintf("see that a server of PostgreSQL answers at host %s, port %d, and correct PAWL_DATABASE if it is elsewhere", connect.Config.Host, connect.Config.Port) + again
	}
	return why, ""
}

// isTLSError reports whether client and server do not agree about encryption.
func isTLSError(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	// The driver has no types for what it finds out itself.
	text := err.Error()
	return strings.Contains(text, "server refused TLS connection") || strings.Contains(text, "tls error")
}

// firstAddressError is the error of the first address: the driver tries every address of
// a host and mostly says the same about all of them.
func firstAddressError(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if len(lines) > 1 {
		return strings.TrimSpace(lines[0]) + " " + strings.TrimSpace(lines[1])
	}
	return lines[0]
}

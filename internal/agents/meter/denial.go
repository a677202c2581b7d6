package meter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Reasons of a Denial.
const (
	ReasonHost        loop.Reason = "host_not_listed"
	ReasonPort        loop.Reason = "port_not_listed"
	ReasonSpelling    loop.Reason = "host_spelling"    // programs read the host in different ways
	ReasonAddress     loop.Reason = "resolved_address" // the name resolves to this machine or its network
	ReasonCall        loop.Reason = "request_not_listed"
	ReasonRequest     loop.Reason = "bad_request" // it is ambiguous, or not a request to a proxy
	ReasonPlainTunnel loop.Reason = "plain_tunnel"
	ReasonNoTLS       loop.Reason = "not_tls"
	ReasonServerName  loop.Reason = "server_name"    // TLS asks for another host than CONNECT, or hides its name
	ReasonSent        loop.Reason = "sent_cap"       // of the connection, or of all together
	ReasonReceived    loop.Reason = "received_cap"   // of the connection, or of all together
	ReasonTime        loop.Reason = "connection_age" // it was open for too long
	ReasonConnections loop.Reason = "connection_cap"
)

const maxShortened = 120 // bytes of a program's input that a message repeats

// Denial is a request that was refused, or a connection that was cut.
type Denial struct {
	At     time.Time
	Host   string // as in Host.Name; as it was written if it is not a host; empty if unknown
	Port   uint16 // 0 if unknown
	Reason loop.Reason
	Detail string // what a person needs to know beyond the reason; at most one line
}

// String returns one line of ASCII: what was denied, and what to write to allow
// it.
func (d Denial) String() string {
	where := "a request"
	if d.Host != "" {
		where = d.hostPort()
	}
	line := fmt.Sprintf("pawl denied %s: %s", where, d.Reason)
	if d.Detail != "" {
		line += ": " + d.Detail
	}
	if fix := d.howToAllow(); fix != "" {
		line += "; " + fix
	}
	return oneLine(line)
}

func (d Denial) hostPort() string {
	if d.Port == 0 {
		return d.Host
	}
	if strings.Contains(d.Host, ":") {
		return fmt.Sprintf("[%s]:%d", d.Host, d.Port)
	}
	return fmt.Sprintf("%s:%d", d.Host, d.Port)
}

// howToAllow says what to change in the definition. It is empty if no definition
// can allow the request.
func (d Denial) howToAllow() string {
	if d.Reason == ReasonHost || d.Reason == ReasonPort {
		return allowAdvice(entryOf(d.Host, d.Port))
	}
	if d.Reason == ReasonCall {
		return "the definition's network lists the host for other requests only"
	}
	return ""
}

func allowAdvice(entries ...string) string {
	return "to allow it, write in the loop's definition: network: [" + strings.Join(entries, ", ") + "]"
}

// entryOf returns an entry that ParseHosts reads, in quotes if YAML needs them.
func entryOf(host string, port uint16) string {
	six := strings.Contains(host, ":")
	usual := port == portTLS || port == portPlain
	switch {
	case six && usual:
		return `"` + host + `"`
	case six:
		return fmt.Sprintf(`"[%s]:%d"`, host, port)
	case usual:
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// oneLine replaces control and non-ASCII characters, so that a program's input
// cannot disturb the place where it is shown.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

func shorten(text string) string {
	if len(text) > maxShortened {
		text = text[:maxShortened] + "..."
	}
	return oneLine(text)
}

// deniedError is a denial as an error. Its time is not set yet.
type deniedError struct{ Denial }

func (e *deniedError) Error() string { return e.String() }

func deny(p place, reason loop.Reason, detail string) *deniedError {
	return &deniedError{Denial{Host: p.name, Port: p.port, Reason: reason, Detail: detail}}
}

// unreachableError means that an allowed host could not be reached.
type unreachableError struct {
	place place
	err   error
}

func (e *unreachableError) Error() string {
	return oneLine(fmt.Sprintf("pawl reached no %s: %s", e.place.authority(), e.err))
}

func (e *unreachableError) Unwrap() error { return e.err }

// reportDenial reports a denial. A program can cause any number of denials, so
// the number of reports is capped.
func (e *Egress) reportDenial(d Denial) {
	if e.Denied == nil || e.told.Add(1) > int64(e.limits().Denials) {
		return
	}
	d.At = e.clock().Now()
	e.Denied(d)
}

// denialIn returns the denial in an error, if there is one.
func denialIn(err error) (Denial, bool) {
	d, ok := errors.AsType[*deniedError](err)
	if !ok {
		return Denial{}, false
	}
	return d.Denial, true
}

// Package credential finds what an agent identifies itself with, and lends
// logins. A key stays outside of the sandbox and is put into requests on their
// way, so that every token is metered. A subscription's login is copied into the
// home of the program, to one run at a time; if the program renews it, the
// renewed one comes back to the user's file when the run has ended.
//
// It never asks a network, so it never knows whether a vendor would accept what
// it found. It never shows a key, never sends a vendor's key to another host
// than the vendor's or this machine, never lends the logins of MCP servers, and
// never writes anything into the user's file but a login of the same form and
// the same account, after a run that was not refused and in which a host that
// renews tokens answered, or one that a person asks for. Whatever it replaces or
// does not use is kept. It cannot look into the program's connections: whoever
// lends a login lets the agent read it, and an agent that asks the right host
// may still leave a token of its own in its place.
package credential

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/redact"
)

// Scheme is how a key is put into a request.
type Scheme string

// The schemes. Keyless is for a model on this machine that wants none.
const (
	Keyless    Scheme = ""
	Bearer     Scheme = "bearer"         // Authorization: Bearer KEY
	XAPIKey    Scheme = "x-api-key"      // x-api-key: KEY
	XGoogleKey Scheme = "x-goog-api-key" // x-goog-api-key: KEY
)

// Credential is what one agent identifies itself with. It prints without its
// key. The zero Credential is none: the program is on its own, and not metered.
type Credential struct {
	Auth     loop.Auth
	Account  string   // the same for every run with it: "anthropic:1f2e3d4c", from the key's digest, or "claude:login"
	Provider string   // whose shape of requests a key goes with: anthropic openai gemini; empty for a login
	Base     *url.URL // where the provider is; nil for a login
	BaseFrom string   // the variable of the environment that names Base; empty: the definition, the roster, or the vendor's own
	Scheme   Scheme
	From     string   // the variable, or the file as people write it
	Agent    string   // of a login: the driver whose it is
	Renews   []string // of a login: hosts that give its program a new token
	File     string   // of a login: where it really lies
	Name     string   // of a login: where it belongs below the program's home

	key *string // behind a pointer, which no way of printing follows
}

// Key is the key of an injected credential, or the token of a lent one that is no
// file. It is empty for any other.
func (c Credential) Key() string {
	if c.key == nil {
		return ""
	}
	return *c.key
}

// Secrets are what must not be written anywhere: the key or token, if there is
// one. The secrets of a login in a file are those of its Loan.
func (c Credential) Secrets() []redact.Secret {
	if c.Key() == "" {
		return nil
	}
	return []redact.Secret{{Name: c.From, Value: c.Key()}}
}

// String names the credential without showing it.
func (c Credential) String() string {
	if c.Auth == "" {
		return "no credential"
	}
	if c.From == "" {
		return fmt.Sprintf("%s %s", c.Auth, c.Account)
	}
	return fmt.Sprintf("%s %s from %s", c.Auth, c.Account, c.From)
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format writes String, whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue is String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON says where the credential comes from, never what it is.
func (c Credential) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Auth    loop.Auth `json:"auth,omitempty"`
		Account string    `json:"account,omitempty"`
		From    string    `json:"from,omitempty"`
	}{c.Auth, c.Account, c.From})
}

// DescribeAuth says in one sentence what a way of getting at a model is worth.
func DescribeAuth(auth loop.Auth) string {
	switch auth {
	case loop.AuthInject:
		return "the key stays outside of the sandbox, and every token is metered"
	case loop.AuthLend:
		return "the login lies inside the sandbox for one run at a time, only the vendor's hosts can be reached, and usage is what the program reports"
	}
	return "the program is on its own: pawl gives it neither key nor login, and its usage is not metered"
}

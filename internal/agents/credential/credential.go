// Package credential finds the key or login of an agent, and lends logins to runs.
// A key stays outside of the sandbox and is added to requests on their way, so that
// every token is metered. The login of a subscription is copied into the home of the
// program, for one run at a time; if the program renews it, the renewed login is
// written back to the user's file when the run has ended.
//
// It never uses the network, so it does not know whether a vendor would accept what
// it found. It never shows a key, never sends a vendor's key to a host other than
// the vendor's or this machine, and never lends the logins of MCP servers. It writes
// only two kinds of login into the user's file: one of the same form and account,
// after a run that was not refused and in which a host that renews tokens answered,
// and one that a person asks for. It keeps a copy of whatever it replaces or does
// not use. It cannot look into the program's connections: an agent can read a login
// that it is lent, and one that asks the right host may still leave a token of its
// own in the login's place.
package credential

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	"github.com/pawl-run/pawl/internal/ground/redact"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Scheme is how a key is put into a request.
type Scheme string

// The schemes. Keyless is for a model on this machine that needs no key.
const (
	Keyless    Scheme = ""
	Bearer     Scheme = "bearer"         // Authorization: Bearer KEY
	XAPIKey    Scheme = "x-api-key"      // x-api-key: KEY
	XGoogleKey Scheme = "x-goog-api-key" // x-goog-api-key: KEY
)

// Credential is the key or login of one agent. It prints without the key. The zero
// Credential means that pawl gives the program nothing and does not meter it.
type Credential struct {
	Auth     loop.Auth
	Account  string   // the same for every run with it: "anthropic:1f2e3d4c", from the key's digest or from the owner that a login names, or "claude:login"
	Provider string   // the vendor whose request format is used: anthropic openai gemini; empty for a login
	Base     *url.URL // the address of the provider; nil for a login
	BaseFrom string   // the environment variable that names Base; empty: the definition, the roster, or the vendor's own
	Scheme   Scheme
	From     string   // the variable, or the file as people write it
	Agent    string   // of a login: its driver
	Renews   []string // of a login: hosts that give its program a new token
	File     string   // of a login: its path with symbolic links resolved
	Name     string   // of a login: its path below the program's home

	key *string // a pointer, which no way of printing follows
}

// Key returns the key of an injected credential, or the token of a lent one that
// comes from a variable. It is empty for any other.
func (c Credential) Key() string {
	if c.key == nil {
		return ""
	}
	return *c.key
}

// Secrets returns what must not be written anywhere: the key or token, if there is
// one. The secrets of a login in a file are returned by its Loan.
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

// GoString returns String, so that %#v does not show the key.
func (c Credential) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue returns String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes where the credential comes from, never the key.
func (c Credential) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Auth    loop.Auth `json:"auth,omitempty"`
		Account string    `json:"account,omitempty"`
		From    string    `json:"from,omitempty"`
	}{c.Auth, c.Account, c.From})
}

// DescribeAuth says in one sentence what auth guarantees.
func DescribeAuth(auth loop.Auth) string {
	switch auth {
	case loop.AuthInject:
		return "the key stays outside of the sandbox, and every token is metered"
	case loop.AuthLend:
		return "the login lies inside the sandbox for one run at a time, only the vendor's hosts can be reached, and usage is what the program reports"
	}
	return "the program is on its own: pawl gives it neither key nor login, and its usage is not metered"
}

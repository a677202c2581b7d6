package credential

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// variable is an environment variable that may hold a key.
type variable struct {
	name   string
	scheme Scheme
}

// vendor is a vendor whose requests pawl can forward.
type vendor struct {
	name  string
	host  string
	keys  []variable // the first that is set counts
	bases []string   // variables that name a gateway for its libraries; the first that is set counts
}

var vendors = []vendor{
	{"anthropic", "api.anthropic.com", []variable{{"ANTHROPIC_API_KEY", XAPIKey}, {"ANTHROPIC_AUTH_TOKEN", Bearer}}, []string{"ANTHROPIC_BASE_URL"}},
	{"openai", "api.openai.com", []variable{{"OPENAI_API_KEY", Bearer}, {"CODEX_API_KEY", Bearer}}, []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}},
	{"gemini", "generativelanguage.googleapis.com", []variable{{"GEMINI_API_KEY", XGoogleKey}, {"GOOGLE_API_KEY", XGoogleKey}}, []string{"GOOGLE_GEMINI_BASE_URL"}},
}

// ownKey is the variable for a key that may be sent to any base_url.
const ownKey = "PAWL_API_KEY"

func vendorOf(name string) (vendor, bool) {
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
	if i < 0 {
		return vendor{}, false
	}
	return vendors[i], true
}

// ownsHost reports whether a host is the vendor's.
func (v vendor) ownsHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == v.host || strings.HasSuffix(host, "."+v.host)
}

// keyScheme returns how a key is put into the vendor's requests.
func (v vendor) keyScheme() Scheme { return v.keys[0].scheme }

// keyVariables returns the variables whose key may be sent to base, which is nil for
// the vendor itself. If the environment names a gateway, a vendor's key is sent only
// there; otherwise to the vendor and to servers on this machine. So a base_url cannot
// collect keys: for any other host, a key must be set for that purpose.
func (v vendor) keyVariables(provider string, base *url.URL, gateway destination) []variable {
	switch {
	case base == nil:
		return v.keys
	case gateway.base == nil && v.ownsHost(base.Hostname()) && base.Scheme == "https":
		return v.keys
	}
	keys := []variable{{ownKey, v.keyScheme()}}
	if _, known := vendorOf(provider); provider != "" && !known {
		keys = append(keys, variable{keyVariableFor(provider), v.keyScheme()})
	}
	if gateway.base == nil && isLoopback(base.Hostname()) || gateway.base != nil && sameServer(base, gateway.base) {
		keys = append(keys, v.keys...)
	}
	return keys
}

// destination is where requests to a model are sent. The zero destination is the
// vendor's own server.
type destination struct {
	base *url.URL
	from string // the variable that names it; empty: the definition or the roster
}

// findGateway returns the gateway that the environment names for a vendor's
// libraries. It returns the zero destination if there is none, or if it is the vendor
// itself. The error is a *loop.Fault.
func (v vendor) findGateway(environ []string) (destination, error) {
	for _, name := range v.bases {
		text := strings.TrimSpace(proc.LookupVariable(environ, name))
		if text == "" {
			continue
		}
		base, err := BaseURL(text)
		if f, ok := errors.AsType[*loop.Fault](err); ok {
			f.What, f.Exit = name, loop.ExitMissing
			f.Fix = "correct or unset " + name
			return destination{}, f
		}
		if base.Scheme == "https" && strings.EqualFold(base.Host, v.host) {
			return destination{}, nil
		}
		return destination{base, name}, nil
	}
	return destination{}, nil
}

// sameServer reports whether two addresses have the same scheme and host.
func sameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// keyVariableFor returns the variable with the key of a provider that pawl does not
// know, such as OPENROUTER_API_KEY for openrouter.
func keyVariableFor(provider string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(provider)) + "_API_KEY"
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// BaseURL parses the base_url of a definition or of the roster. For an empty one,
// which means the vendor's own, it returns nil. The error for anything but http:// or
// https:// with a host, and without a name and password, is a *loop.Fault.
func BaseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	bad := func(why string) error {
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "base_url", Why: why,
			Fix: "write the address of the model's API, such as https://api.example.com/v1 or http://127.0.0.1:11434/v1",
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The text may hold a password, and so may the error.
		return nil, bad("it is not an address")
	case u.User != nil:
		return nil, bad("it holds a name or a password, which would be written into every record; the key belongs into the variable " + ownKey)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, bad("it must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, bad("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, bad("it must end with its path, without ? or #")
	}
	return u, nil
}

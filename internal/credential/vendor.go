package credential

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// variable is one that may hold a key.
type variable struct {
	name   string
	scheme Scheme
}

// vendor is one of those whose shape of requests pawl can forward.
type vendor struct {
	name string
	host string
	keys []variable // the first that is set counts
}

var vendors = []vendor{
	{"anthropic", "api.anthropic.com", []variable{{"ANTHROPIC_API_KEY", XAPIKey}, {"ANTHROPIC_AUTH_TOKEN", Bearer}}},
	{"openai", "api.openai.com", []variable{{"OPENAI_API_KEY", Bearer}, {"CODEX_API_KEY", Bearer}}},
	{"gemini", "generativelanguage.googleapis.com", []variable{{"GEMINI_API_KEY", XGoogleKey}, {"GOOGLE_API_KEY", XGoogleKey}}},
}

// ownKey is the variable for a key that goes to whatever base_url names.
const ownKey = "PAWL_API_KEY"

func vendorOf(name string) (vendor, bool) {
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
	if i < 0 {
		return vendor{}, false
	}
	return vendors[i], true
}

// owns reports whether a host is the vendor's.
func (v vendor) owns(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == v.host || strings.HasSuffix(host, "."+v.host)
}

// scheme is how the vendor's shape of requests carries a key.
func (v vendor) scheme() Scheme { return v.keys[0].scheme }

// variables are those whose key may go to base, which is nil for the vendor
// itself. A vendor's key goes nowhere but to the vendor and to servers on this
// machine, so that no base_url gathers keys; what names another host has to say
// which key is meant for it.
func (v vendor) variables(provider string, base *url.URL) []variable {
	if base == nil || v.owns(base.Hostname()) && base.Scheme == "https" {
		return v.keys
	}
	keys := []variable{{ownKey, v.scheme()}}
	if _, known := vendorOf(provider); provider != "" && !known {
		keys = append(keys, variable{variableFor(provider), v.scheme()})
	}
	if loopback(base.Hostname()) {
		keys = append(keys, v.keys...)
	}
	return keys
}

// variableFor is where the key of a provider is looked for that pawl does not
// know: OPENROUTER_API_KEY.
func variableFor(provider string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(provider)) + "_API_KEY"
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// BaseURL reads the base_url of a definition or of the roster. An empty one is
// nil: the vendor's own. Anything but http:// or https:// with a host and
// without a name and password is a *loop.Fault.
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
		return nil, bad("it is no address")
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

package credential

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Want says which agent needs a credential, and where it may come from.
type Want struct {
	Profile  agent.Profile // of the driver
	Provider string        // of the definition or the roster; empty: any that the driver can reach
	BaseURL  string        // of the definition or the roster; empty: the vendor's own
	Auth     loop.Auth     // empty: inject before lend
	Environ  []string      // the runtime's own
	Home     string        // of the user; empty: the user has none
	SignIn   string        // how a person signs in, for advice; empty: "sign in with" and the program's name
	Now      time.Time
}

// Find returns the key or login for the agent.
//
// A key comes from the runtime's environment: ANTHROPIC_API_KEY, then
// ANTHROPIC_AUTH_TOKEN; OPENAI_API_KEY, then CODEX_API_KEY; GEMINI_API_KEY, then
// GOOGLE_API_KEY. With a base_url that is not the vendor's it is PAWL_API_KEY,
// then NAME_API_KEY for a provider NAME that pawl does not know; only a server
// on this machine may also get the vendor's key, and needs no key.
//
// If there is no base_url, a gateway in the same environment (ANTHROPIC_BASE_URL,
// OPENAI_BASE_URL, OPENAI_API_BASE, GOOGLE_GEMINI_BASE_URL) is used. The vendor's key
// in that environment goes only to that gateway, and no other key does. No login is
// lent while a gateway is set.
//
// A driver with neither metered models nor a login gets the zero Credential, unless
// w asks for something else. If there is no credential, the error is a *loop.Fault
// that says what to do.
func Find(w Want) (Credential, error) {
	base, err := BaseURL(w.BaseURL)
	if err != nil {
		return Credential{}, err
	}
	switch w.Auth {
	case loop.AuthInject:
		return w.findKey(base)
	case loop.AuthLend:
		return w.findLogin(base)
	case "":
		return w.findKeyOrLogin(base)
	}
	return Credential{}, w.invalidAuth()
}

func (w Want) invalidAuth() error {
	return &loop.Fault{Exit: loop.ExitUsage, What: "auth", Why: fmt.Sprintf("%q is not one of its values", w.Auth), Fix: "write inject or lend"}
}

// findKeyOrLogin returns a key if there is one, and otherwise a login. A login is for
// the vendor only, so it cannot be used with a base_url.
func (w Want) findKeyOrLogin(base *url.URL) (Credential, error) {
	keyed, lent := len(w.Profile.Providers) > 0, len(w.Profile.Login.Files) > 0 && base == nil
	if !keyed && !lent && w.Provider == "" && base == nil { // pawl knows nothing about the program.
		return Credential{}, nil
	}
	c, keyErr := w.findKey(base)
	if keyErr == nil || !lent {
		return c, keyErr
	}
	if w.Provider != "" && !slices.Contains(w.Profile.Providers, w.Provider) || w.checkNoGateway() != nil {
		return Credential{}, keyErr
	}
	c, err := w.findLogin(base)
	if err == nil || !keyed {
		return c, err
	}
	login, _ := errors.AsType[*loop.Fault](err)
	key, _ := errors.AsType[*loop.Fault](keyErr)
	return Credential{}, w.missingFault(key.Why+", and "+login.Why, key.Fix+", or "+login.Fix)
}

func (w Want) findKey(base *url.URL) (Credential, error) {
	shapes, err := w.vendorsFor(base)
	if err != nil {
		return Credential{}, err
	}
	var names []string
	var keyless *Credential
	var missing destination
	for _, v := range shapes {
		gateway, err := v.findGateway(w.Environ)
		if err != nil {
			return Credential{}, err
		}
		to := destination{base: base}
		if base == nil {
			to = gateway
		}
		for _, k := range v.keyVariables(w.Provider, base, gateway) {
			names = append(names, k.name)
			text := strings.TrimSpace(proc.LookupVariable(w.Environ, k.name))
			if text == "" {
				continue
			}
			if !isSendable(text) {
				return Credential{}, w.missingFault(k.name+" is not a valid key: it contains a blank, a line break or a character beyond ASCII", "set "+k.name+" to the key alone")
			}
			return newInjected(v, to, k, text), nil
		}
		if missing.base == nil {
			missing = to
			if base != nil && gateway.base != nil && !sameServer(base, gateway.base) {
				missing.from = gateway.from
			}
		}
		if to.base != nil && isLoopback(to.base.Hostname()) && keyless == nil {
			keyless = &Credential{Auth: loop.AuthInject, Account: v.name + ":keyless", Provider: v.name, Base: to.base, BaseFrom: to.from}
		}
	}
	if keyless != nil {
		return *keyless, nil
	}
	return Credential{}, w.missingKey(names, base, missing)
}

// missingKey returns an error that names the missing key. With a base_url,
// missing.from is the variable with the gateway for which the vendor's keys are
// meant instead.
func (w Want) missingKey(names []string, base *url.URL, missing destination) error {
	switch {
	case missing.base == nil:
		return w.missingFault("there is no key: "+noneSet(names), "set "+names[0])
	case base == nil:
		host := missing.base.Host
		return w.missingFault("there is no key for "+host+", which "+missing.from+" names: "+noneSet(names),
			"set "+names[0]+" for "+host+", or unset "+missing.from)
	}
	why, fix := "there is no key for "+base.Host+": "+noneSet(names), "set "+names[0]+" for "+base.Host
	if missing.from != "" {
		why += ", and the vendor's own key is for the host in " + missing.from
		fix += ", or unset " + missing.from
	}
	return w.missingFault(why, fix)
}

func newInjected(v vendor, to destination, k variable, key string) Credential {
	if to.base == nil {
		to.base = &url.URL{Scheme: "https", Host: v.host}
	}
	sum := sha256.Sum256([]byte(key))
	return Credential{
		Auth: loop.AuthInject, Account: v.name + ":" + hex.EncodeToString(sum[:4]),
		Provider: v.name, Base: to.base, BaseFrom: to.from, Scheme: k.scheme, From: k.name, key: &key,
	}
}

// RequestShape returns the vendor whose request format a provider uses. A provider
// that pawl does not know, with a base_url, is assumed to use that of OpenAI.
func RequestShape(provider, baseURL string) string {
	if _, known := vendorOf(provider); !known && provider != "" && baseURL != "" {
		return "openai"
	}
	return provider
}

// vendorsFor returns the vendors whose requests the driver may send, in the order in
// which their keys are looked up.
func (w Want) vendorsFor(base *url.URL) ([]vendor, error) {
	var can []vendor
	for _, name := range w.Profile.Providers {
		if v, ok := vendorOf(name); ok {
			can = append(can, v)
		}
	}
	switch {
	case w.Profile.AnyProvider && w.Provider == "":
		return nil, w.missingFault("pawl does not know in whose shape of requests its model is asked", "write provider: anthropic, openai or gemini")
	case w.Profile.AnyProvider:
		can = vendors
	case len(can) == 0:
		return nil, w.missingFault("its models cannot be reached with a key", "write auth: lend, or leave auth, provider and base_url away")
	}
	if w.Provider == "" {
		return usualVendors(can, base), nil
	}
	if _, known := vendorOf(w.Provider); !known && base == nil {
		return nil, w.missingFault("pawl does not know where the provider "+w.Provider+" is", "write base_url: the address of its API, or one of the providers "+vendorNames(can))
	}
	shape := RequestShape(w.Provider, w.BaseURL)
	i := slices.IndexFunc(can, func(v vendor) bool { return v.name == shape })
	if i < 0 {
		return nil, w.missingFault("it cannot reach models of the provider "+w.Provider, "write one of the providers "+vendorNames(can))
	}
	return can[i : i+1], nil
}

// usualVendors returns the vendors if no provider is named: all that the driver can
// reach, but with a base_url only the vendor of its host, or else the first.
func usualVendors(can []vendor, base *url.URL) []vendor {
	if base == nil {
		return can
	}
	i := slices.IndexFunc(can, func(v vendor) bool { return v.ownsHost(base.Hostname()) })
	return can[max(i, 0):][:1]
}

func vendorNames(all []vendor) string {
	var out []string
	for _, v := range all {
		out = append(out, v.name)
	}
	return strings.Join(out, ", ")
}

func noneSet(names []string) string {
	if len(names) == 1 {
		return names[0] + " is not set"
	}
	return "none of " + strings.Join(names, ", ") + " is set"
}

// isSendable reports whether key can be sent in a header.
func isSendable(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (w Want) missingFault(why, fix string) *loop.Fault {
	return &loop.Fault{Exit: loop.ExitMissing, What: "there is no credential for " + cmp.Or(w.Profile.Name, "the agent"), Why: why, Fix: fix}
}

package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/redact"
)

// form is the login in a file: a JSON object, as encoding/json decodes it with
// numbers as they are written.
type form = map[string]any

// parseLogin reads a login. Two members of one name are an error, because programs
// do not agree on which of them counts.
func parseLogin(data []byte) (form, error) {
	switch {
	case len(data) > mostLogin:
		return nil, fmt.Errorf("it is larger than %d bytes", mostLogin)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, mostDepth)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its JSON")
	}
	f, ok := v.(form)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	return f, nil
}

// mostDepth is how deep a login may be nested. Those known are 3 deep.
const mostDepth = 16

func decodeValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return nil, errors.New("it is nested too deep")
	}
	switch t {
	case json.Delim('{'):
		return decodeObject(d, depth-1)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	f := form{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string)
		if _, twice := f[key]; twice {
			return nil, fmt.Errorf("two members have the name %q", key)
		}
		if f[key], err = decodeValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return f, err
}

// sameForm returns why after cannot be a renewed before, or nil: all members
// are the same ones, of the same types, and only tokens, their scopes and their
// times are different. What describes a login, and its times, may also come and
// go: programs find them out when they renew it.
func sameForm(before, after form) error {
	for _, name := range sortedNames(after) {
		if _, ok := before[name]; !ok && !mayBeNew(name, after[name]) {
			return fmt.Errorf("its member %q is new", name)
		}
	}
	for _, name := range sortedNames(before) {
		v, ok := after[name]
		if !ok && (isDescription(name) || isTimeName(name)) {
			continue
		}
		if !ok {
			return fmt.Errorf("its member %q is gone", name)
		}
		if err := sameMember(name, before[name], v); err != nil {
			return err
		}
	}
	return nil
}

// sameAccount returns why after belongs to somebody else than before, or nil.
// Tokens that can be read (JWT) say whose they are; most vendors' cannot.
func sameAccount(before, after form) error {
	now := tokenOwners(after)
	for name, who := range tokenOwners(before) {
		if now[name] == nil {
			return fmt.Errorf("its member %q no longer says whose it is", name)
		}
		for claim, value := range who {
			if now[name][claim] != value {
				return fmt.Errorf("its member %q is of another account", name)
			}
		}
	}
	return nil
}

// ownerClaims are the claims of a token that say whose it is.
var ownerClaims = []string{"sub", "email", "userid", "accountid", "organizationid", "chatgptuserid", "chatgptaccountid"}

// tokenOwners are the claims about the owner in each member that is a readable token.
func tokenOwners(f form) map[string]map[string]string {
	all := map[string]map[string]string{}
	walkMembers(f, func(name string, v any) {
		text, _ := v.(string)
		parts := strings.Split(text, ".")
		if len(parts) != 3 {
			return
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
		if err != nil {
			return
		}
		claims, err := parseLogin(raw)
		if err != nil {
			return
		}
		walkMembers(claims, func(claim string, v any) {
			if slices.Contains(ownerClaims, normalizeName(claim)) {
				if all[name] == nil {
					all[name] = map[string]string{}
				}
				all[name][normalizeName(claim)] = fmt.Sprint(v)
			}
		})
	})
	return all
}

func mayBeNew(name string, v any) bool {
	switch {
	case isDescription(name):
		return isWord(v)
	case isTimeName(name):
		return !parseTime(v).IsZero()
	}
	return normalizeName(name) == "clientid" && v != nil && isWord(v)
}

// isDescription reports whether a member says what kind of a login it is, and
// nothing is done with it but to show it and to choose among models.
func isDescription(name string) bool {
	return slices.Contains([]string{"subscriptiontype", "subscriptiontypesource", "subscriptiontypeverifiedat", "ratelimittier"}, normalizeName(name))
}

// mostWord is how long a value is that describes something.
const mostWord = 100

// isWord reports whether a value is nothing, a number or a short word.
func isWord(v any) bool {
	switch v := v.(type) {
	case nil, json.Number:
		return true
	case string:
		return len(v) <= mostWord && !strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' })
	}
	return false
}

func sameMember(name string, before, after any) error {
	if isDescription(name) && isWord(before) && isWord(after) {
		return nil
	}
	if reflect.TypeOf(before) != reflect.TypeOf(after) {
		return fmt.Errorf("its member %q has another type", name)
	}
	b, object := before.(form)
	a, too := after.(form)
	switch {
	case object && too:
		return sameForm(b, a)
	case reflect.DeepEqual(before, after):
		return nil
	case !isRenewable(name):
		return fmt.Errorf("its member %q is different", name)
	}
	return checkPlausible(name, after)
}

// checkPlausible refuses values that no vendor gives: what is empty, holds blanks or
// line breaks, or is a list of anything but words.
func checkPlausible(name string, v any) error {
	switch v := v.(type) {
	case string:
		if v == "" {
			return fmt.Errorf("its member %q is empty now", name)
		}
		if strings.ContainsFunc(v, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
			return fmt.Errorf("its member %q holds what no token does", name)
		}
	case json.Number:
		if n, err := v.Float64(); err != nil || n < 0 || n > 1e15 {
			return fmt.Errorf("its member %q is not a time", name)
		}
	case []any:
		for _, one := range v {
			if word, ok := one.(string); !ok || strings.ContainsFunc(word, unicode.IsSpace) {
				return fmt.Errorf("its member %q is not a list of words", name)
			}
		}
	default:
		return fmt.Errorf("its member %q is different", name)
	}
	return nil
}

// normalizeName is a name in lower case without what joins its words.
func normalizeName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// isRenewable reports whether a vendor gives a member of this name anew. Places to
// send tokens to are never among them.
func isRenewable(name string) bool {
	name = normalizeName(name)
	if containsAny(name, "url", "uri", "host", "endpoint", "client", "type", "id") && name != "idtoken" {
		return false
	}
	return containsAny(name, "token", "access", "refresh", "scope") || isTimeName(name)
}

// isTimeName reports whether a member says when its login ends, or since when there
// is a newer one.
func isTimeName(name string) bool { return containsAny(normalizeName(name), "expir", "lastrefresh") }

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// latestTime is the latest of the times in a login, and zero where it has none. Of two
// logins of one form, the one that was renewed later has the later one.
func latestTime(f form) time.Time {
	var latest time.Time
	walkMembers(f, func(name string, v any) {
		if at := parseTime(v); isTimeName(name) && at.After(latest) {
			latest = at
		}
	})
	return latest
}

// parseTime reads seconds or milliseconds since 1970, or RFC 3339.
func parseTime(v any) time.Time {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		switch {
		case err != nil || n <= 0 || n > 1e15:
		case n >= 1e11:
			return time.UnixMilli(int64(n))
		default:
			return time.Unix(int64(n), 0)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return at
		}
	}
	return time.Time{}
}

// canRenew reports whether a login has something to get a new token with.
func canRenew(f form) bool {
	found := false
	walkMembers(f, func(name string, v any) {
		text, ok := v.(string)
		found = found || ok && text != "" && containsAny(normalizeName(name), "refresh") && parseTime(v).IsZero()
	})
	return found
}

// secretMembers are the members of a login that must not be written anywhere.
func secretMembers(f form) []redact.Secret {
	var out []redact.Secret
	walkMembers(f, func(name string, v any) {
		text, ok := v.(string)
		if ok && isSecret(normalizeName(name), text) && parseTime(v).IsZero() {
			out = append(out, redact.Secret{Name: name, Value: text})
		}
	})
	return out
}

// shortSecret is the least length of what is taken for a secret.
const shortSecret = 8

func isSecret(name, text string) bool {
	if len(text) < shortSecret || containsAny(name, "type", "scope", "url", "uri", "expir") || strings.ContainsFunc(text, unicode.IsSpace) {
		return false
	}
	return containsAny(name, "token", "key", "secret", "access", "refresh", "pass", "jwt")
}

// walkMembers visits the members that are no objects, in order of their names.
// Elements of a list have the name of the list.
func walkMembers(f form, visit func(name string, v any)) {
	var at func(name string, v any)
	at = func(name string, v any) {
		switch v := v.(type) {
		case form:
			for _, n := range sortedNames(v) {
				at(n, v[n])
			}
		case []any:
			for _, one := range v {
				at(name, one)
			}
		default:
			visit(name, v)
		}
	}
	at("", f)
}

func sortedNames(f form) []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

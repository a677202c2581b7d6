package credential

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/redact"
)

// form is a decoded login: a JSON object as encoding/json decodes it with UseNumber.
type form = map[string]any

// parseLogin parses a login. Two members with the same name are an error, because
// programs do not agree on which of them counts.
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

// mostDepth is how deep a login may be nested. Known logins are 3 deep.
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

// sameForm returns nil if after can be a renewed before, and otherwise why not. Both
// must have the same members with the same types, and only tokens, their scopes and
// their times may differ. Members that describe the login, and times, may also be
// new or missing: programs learn them when they renew it.
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

// sameAccount returns nil unless a token of after names another owner than that of
// before. Only tokens that can be read (JWT) name their owner; those of most vendors
// cannot.
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

// ownerClaims are the claims of a token that name its owner.
var ownerClaims = []string{"sub", "email", "userid", "accountid", "organizationid", "chatgptuserid", "chatgptaccountid"}

// tokenOwners returns the claims about the owner, by the name of the member, for each
// member that is a readable token.
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

// ownerOf names the account of a login: the same on every machine, and after every
// renewal. It is "login" for one that does not say whose it is.
func ownerOf(data []byte) string {
	f, _ := parseLogin(data) // What cannot be read names nobody.
	owner := map[string]bool{}
	for _, who := range tokenOwners(f) {
		for claim, value := range who {
			owner[claim+"="+value] = true
		}
	}
	walkMembers(f, func(name string, v any) {
		if id, ok := v.(string); ok && id != "" && slices.Contains(ownerMembers, normalizeName(name)) {
			owner[normalizeName(name)+"="+id] = true
		}
	})
	if len(owner) == 0 {
		return "login"
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(owner)), "\n")))
	return hex.EncodeToString(sum[:4])
}

// ownerMembers are members of a login, beside its tokens, that name its owner. No
// vendor changes them when it renews a login.
var ownerMembers = []string{"accountid", "accountuuid", "organizationid", "organizationuuid", "email"}

// mayBeNew reports whether a renewed login may have a member that the login before did
// not have.
func mayBeNew(name string, v any) bool {
	switch {
	case isDescription(name):
		return isWord(v)
	case isTimeName(name):
		return !parseTime(v).IsZero()
	}
	return normalizeName(name) == "clientid" && v != nil && isWord(v)
}

// isDescription reports whether a member describes the kind of login. Programs only
// show it and choose models by it.
func isDescription(name string) bool {
	return slices.Contains([]string{"subscriptiontype", "subscriptiontypesource", "subscriptiontypeverifiedat", "ratelimittier"}, normalizeName(name))
}

// mostWord is the largest length of a describing value.
const mostWord = 100

// isWord reports whether a value is null, a number or a short word.
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

// checkPlausible refuses values that no vendor issues: an empty text, a text with
// blanks or line breaks, a number that is not a time, a list of anything but words.
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

// normalizeName returns a name in lower case without "_", "-" and ".".
func normalizeName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// isRenewable reports whether a vendor may change a member of this name when it
// renews a login. Addresses to which tokens are sent are never among them.
func isRenewable(name string) bool {
	name = normalizeName(name)
	if containsAny(name, "url", "uri", "host", "endpoint", "client", "type", "id") && name != "idtoken" {
		return false
	}
	return containsAny(name, "token", "access", "refresh", "scope") || isTimeName(name)
}

// isTimeName reports whether a member of this name is the time at which its login
// ends or was last renewed.
func isTimeName(name string) bool { return containsAny(normalizeName(name), "expir", "lastrefresh") }

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// latestTime returns the latest of the times in a login, zero if it has none. Of two
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

// parseTime parses seconds or milliseconds since 1970, or RFC 3339. It returns the
// zero time for any other value.
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

// canRenew reports whether a login has a refresh token.
func canRenew(f form) bool {
	found := false
	walkMembers(f, func(name string, v any) {
		text, ok := v.(string)
		found = found || ok && text != "" && containsAny(normalizeName(name), "refresh") && parseTime(v).IsZero()
	})
	return found
}

// secretMembers returns the members of a login that must not be written anywhere.
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

// shortSecret is the smallest length of a value that counts as a secret.
const shortSecret = 8

func isSecret(name, text string) bool {
	if len(text) < shortSecret || containsAny(name, "type", "scope", "url", "uri", "expir") || strings.ContainsFunc(text, unicode.IsSpace) {
		return false
	}
	return containsAny(name, "token", "key", "secret", "access", "refresh", "pass", "jwt")
}

// walkMembers visits the members that are not objects, in the order of their names.
// Elements of a list are visited with the name of the list.
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

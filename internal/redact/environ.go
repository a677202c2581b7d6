package redact

import (
	"net/url"
	"slices"
	"strings"
)

// FromEnviron returns the secrets among variables of the form NAME=value: the
// values of those whose name says so (API_KEY, GH_TOKEN, PGPASSWORD, the keys
// among AWS_*), and the passwords inside URLs and connection strings of all
// others (DATABASE_URL). A variable that names a file, a public key or a number
// of tokens is none.
func FromEnviron(environ []string) []Secret {
	var out []Secret
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		value = strings.TrimSpace(value)
		if value == "" {
			continue
		}
		inner := passwords(value)
		if len(inner) == 0 && secretive(name) {
			inner = []string{value}
		}
		for _, v := range inner {
			out = append(out, Secret{Name: name, Value: v})
		}
	}
	return out
}

// secretWords are the parts of a name that promise a secret; secretParts may
// also stand inside a part.
var (
	secretWords = []string{
		"KEY", "KEYS", "TOKEN", "PASS", "PWD", "PAT", "CREDENTIAL", "CREDENTIALS", "CREDS",
		"AUTH", "JWT", "COOKIE", "BEARER", "WEBHOOK", "PASSCODE",
	}
	secretParts = []string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "AUTHTOKEN", "ACCESSKEY", "PRIVATEKEY"}
	plainWords  = []string{
		"FILE", "FILES", "PATH", "DIR", "SOCK", "SOCKET", "NAME", "TYPE", "USER", "USERNAME",
		"HOST", "PORT", "REGION", "TTL", "LENGTH", "LIMIT", "COUNT", "MODE", "METHOD", "ALGORITHM", "ENABLED",
	}
)

// secretive says whether a name promises that its value is a secret.
func secretive(name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(parted(name)), func(r rune) bool { return strings.ContainsRune("_-.:/", r) })
	if len(words) == 0 || slices.Contains(plainWords, words[len(words)-1]) || slices.ContainsFunc(words, public) {
		return false
	}
	if len(words) == 1 && words[0] == "PWD" {
		return false
	}
	joined := strings.ToUpper(name)
	return slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(joined, p) }) ||
		slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// parted puts a separator where a small letter is followed by a capital one:
// dbPwd and githubToken are two words each.
func parted(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && lower.has(name[i-1]) && upper.has(name[i]) {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func public(word string) bool { return word == "PUBLIC" || word == "PUB" }

// passwords are those that a URL or a connection string holds, as they are
// written and as they are meant.
func passwords(value string) []string {
	if written, ok := userinfo(value); ok {
		out := []string{written}
		if meant, err := url.PathUnescape(written); err == nil && meant != written {
			out = append(out, meant)
		}
		return out
	}
	for _, key := range []string{"password=", "pwd="} {
		if out := assigned(value, key); out != "" {
			return []string{out}
		}
	}
	return nil
}

// userinfo returns the password of scheme://user:password@host. It is lenient
// where net/url is not: programs take passwords with a bare %, # or slash.
func userinfo(value string) (string, bool) {
	_, rest, _ := strings.Cut(value, "://")
	user := rest[:max(strings.LastIndexByte(rest, '@'), 0)]
	_, password, _ := strings.Cut(user, ":")
	if before, _, path := strings.Cut(password, "/"); path && all(before, &digits) {
		return "", false // host:port/path@version
	}
	if strings.Contains(strings.TrimSuffix(user, password), "/") {
		return "", false
	}
	return password, password != ""
}

// indexFold is where key, in small letters of ASCII, stands in s in letters of
// any case, or -1. Lower-casing all of s could move what follows.
func indexFold(s, key string) int {
	for i := range len(s) - len(key) + 1 {
		if strings.EqualFold(s[i:i+len(key)], key) {
			return i
		}
	}
	return -1
}

// assigned returns what follows key in a list of settings. A longer name that
// ends like the key, such as OldPwd=, is another one.
func assigned(value, key string) string {
	rest, found := value, false
	for !found {
		at := indexFold(rest, key)
		if at < 0 {
			return ""
		}
		found = at == 0 || !alnum.has(rest[at-1])
		rest = rest[at+len(key):]
	}
	if rest != "" && strings.ContainsRune(`'"`, rune(rest[0])) {
		quoted, _, _ := strings.Cut(rest[1:], rest[:1])
		return quoted
	}
	if end := strings.IndexAny(rest, " ;&\t\n"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

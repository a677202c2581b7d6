package redact

import (
	"net/url"
	"slices"
	"strings"
)

// FromEnviron returns the secrets among variables of the form NAME=value: the
// values of variables with the name of a secret (API_KEY, GH_TOKEN, PGPASSWORD,
// the keys among AWS_*), and the passwords inside of URLs and connection strings
// in all others (DATABASE_URL). A variable that names a file, a public key or a
// number of tokens is not a secret.
func FromEnviron(environ []string) []Secret {
	var out []Secret
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		value = strings.TrimSpace(value)
		if value == "" {
			continue
		}
		inner := passwordsIn(value)
		if len(inner) == 0 && isSecretName(name) {
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
	// secretWords are the words of a name that mean a secret; secretParts may
	// also be a part of a word. A name that ends in one of plainWords is not
	// that of a secret.
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

// isSecretName reports whether a variable's name says that its value is a secret.
func isSecretName(name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(splitCamelCase(name)), func(r rune) bool { return strings.ContainsRune("_-.:/", r) })
	if len(words) == 0 || slices.Contains(plainWords, words[len(words)-1]) || slices.Contains(words, "PUBLIC") || slices.Contains(words, "PUB") {
		return false
	}
	if len(words) == 1 && words[0] == "PWD" {
		return false
	}
	joined := strings.ToUpper(name)
	return slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(joined, p) }) ||
		slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// splitCamelCase inserts a separator between a lower-case letter and an
// upper-case one, so that dbPwd and githubToken are two words each.
func splitCamelCase(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && lower.has(name[i-1]) && upper.has(name[i]) {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// passwordsIn returns the password that a URL or a connection string contains, as
// it is written and unescaped.
func passwordsIn(value string) []string {
	if written, ok := urlPasswordOf(value); ok {
		out := []string{written}
		if meant, err := url.PathUnescape(written); err == nil && meant != written {
			out = append(out, meant)
		}
		return out
	}
	for _, key := range []string{"password=", "pwd="} {
		if out := settingAfter(value, key); out != "" {
			return []string{out}
		}
	}
	return nil
}

// urlPasswordOf returns the password of scheme://user:password@host. It is more
// lenient than net/url: programs accept passwords with a bare %, # or slash.
func urlPasswordOf(value string) (string, bool) {
	_, rest, _ := strings.Cut(value, "://")
	user := rest[:max(strings.LastIndexByte(rest, '@'), 0)]
	_, password, _ := strings.Cut(user, ":")
	if before, _, path := strings.Cut(password, "/"); path && allIn(before, &digits) {
		return "", false // host:port/path@version
	}
	if strings.Contains(strings.TrimSuffix(user, password), "/") {
		return "", false
	}
	return password, password != ""
}

// indexFold returns the index of key, in lower-case ASCII, in s in any case, or
// -1. Lower-casing s could change the offsets in it.
func indexFold(s, key string) int {
	for i := range len(s) - len(key) + 1 {
		if strings.EqualFold(s[i:i+len(key)], key) {
			return i
		}
	}
	return -1
}

// settingAfter returns what follows key in a list of settings. A longer name with
// the same end, such as OldPwd=, does not count.
func settingAfter(value, key string) string {
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

package redact

import "bytes"

// awsSecret names the half of a pair of AWS that is worth stealing.
const awsSecret = "aws-secret-key"

// userStart is what may follow the slashes of a URL that has a password.
var userStart = of("A-Za-z0-9._~%+:-")

// privateKey is the block that begins with -----BEGIN … PRIVATE KEY-----. The
// header and each line of the body are spans of their own: between the lines
// may stand whatever listings, diffs and quotes put there, and it stays.
func privateKey(v *view) []span {
	at, ok := pemHeader(v)
	if !ok {
		return nil
	}
	key := block{v: v, lines: []span{{end: at}}}
	for at < Window && key.strange <= 200 {
		b, ok := v.next(at)
		switch {
		case !ok, b == '[' && v.lit(at, opening):
			return key.spans()
		case b == '-' && v.lit(at, "-----"):
			key.last()
			return key.spans()
		case b == '\\':
			at = escaped(v, at)
		case base64Chars.has(b):
			end := v.run(at, Window-at, &base64Chars)
			key.run(at, end)
			at = end
		default:
			key.strange++
			at++
		}
	}
	return key.spans()
}

// block is a private key that is being read.
type block struct {
	v       *view
	lines   []span // the header and what is known to be the key
	runs    []span // since then: words of base64 that are too short to tell
	gap     int    // bytes between the last two lines
	strange int    // bytes since the last line
}

func (k *block) run(start, end int) {
	const sure = 40
	one := span{start: start, end: end, more: true}
	if end-start < sure || len(k.lines) == 1 && !random(k.v.b[start:end]) {
		k.runs = append(k.runs, one)
		k.strange += end - start
		return
	}
	k.gap = start - k.lines[len(k.lines)-1].end
	k.lines, k.runs, k.strange = append(k.lines, one), nil, 0
}

// last takes the last line, which may be as short as a word beside it: it is
// the one that stands where a line is to be expected, or else the longest.
func (k *block) last() {
	var best span
	expected := k.lines[len(k.lines)-1].end + k.gap
	for _, r := range k.runs {
		if r.start <= expected && expected < r.end {
			best = r
			break
		}
		if r.end-r.start > best.end-best.start {
			best = r
		}
	}
	if best.more && len(k.lines) > 1 {
		k.lines = append(k.lines, best)
	}
}

// spans are none if only the header was found: programs that read keys name
// the header.
func (k *block) spans() []span {
	if len(k.lines) < 2 {
		return nil
	}
	return k.lines
}

func pemHeader(v *view) (end int, ok bool) {
	if !v.lit(0, "BEGIN ") {
		return 0, false
	}
	end = v.run(0, 64, &titles)
	if !bytes.Contains(v.b[:end], []byte("PRIVATE KEY")) || !v.lit(end, "-----") {
		return 0, false
	}
	return end + len("-----"), true
}

// escaped skips a quoted end of line, quoted once or more often. Its letter
// would otherwise be taken for the first of the line.
func escaped(v *view, at int) int {
	b, ok := v.next(at)
	for ok && b == '\\' {
		at++
		b, ok = v.next(at)
	}
	if b == 'n' || b == 'r' || b == 't' {
		at++
	}
	return at
}

// random says whether a word has all that random base64 has.
func random(b []byte) bool {
	return contains(b, &lower, &upper, &digits) && distinct(b) >= 2*varied
}

// awsKeyID is the id of a key, and the secret if one stands near.
func awsKeyID(v *view) []span {
	const prefix, size = 4, 16
	end := v.run(0, 128, &upperDigit)
	if end < prefix+size {
		return nil
	}
	id := v.b[prefix : prefix+size]
	if distinct(id) < varied || bytes.Contains(id, []byte("EXAMPLE")) {
		return nil
	}
	return append([]span{{end: end}}, awsSecretNear(v, end)...)
}

func awsSecretNear(v *view, at int) []span {
	const near = 256
	for limit := at + near; at < limit; at++ {
		end := v.run(at, longest, &base64Chars)
		if found := awsSecretAt(v, at, end); found != nil {
			return found
		}
		at = end
	}
	return nil
}

// awsNamedSecret is a secret behind its usual name, in any style of writing.
func awsNamedSecret(v *view) []span {
	at := 0
	for _, name := range []string{"secret_access_key", "secretaccesskey", "secret-access-key"} {
		if v.fold(0, name) {
			at = len(name)
		}
	}
	start := v.run(at, 12, &between)
	if start == at {
		return nil
	}
	return awsSecretAt(v, start, v.run(start, longest, &base64Chars))
}

func awsSecretAt(v *view, start, end int) []span {
	const size = 40
	if end-start < size || !random(v.b[start:end]) || bytes.Contains(v.b[start:start+size], []byte("EXAMPLE")) {
		return nil
	}
	return []span{{name: awsSecret, start: start, end: end}}
}

// webToken is a JSON Web Token: two objects in base64 and a signature, or the
// five parts of an encrypted one.
func webToken(v *view) []span {
	const head, rest = 17, 10
	end := v.run(0, 4096, &dashed)
	if end < head || !v.lit(end, ".") {
		return nil
	}
	signed := v.lit(end+1, "eyJ")
	parts := 1
	var second int // bytes of the second part
	for most := 5; parts < most; parts++ {
		if signed {
			most = 3
		}
		if !v.lit(end, ".") {
			break
		}
		next := v.run(end+1, max(Window-end, 0), &dashed)
		if next == end+1 {
			break
		}
		if parts == 1 {
			second = next - end - 1
		}
		end = next
	}
	if parts == 5 || signed && parts >= 2 && second >= rest {
		return []span{{end: end}}
	}
	return nil
}

// urlPassword is the password of scheme://user:password@host.
func urlPassword(v *view) []span {
	if !v.lit(0, "://") {
		return nil
	}
	start := v.run(3, 128, &user)
	if !v.lit(start, ":") {
		return nil
	}
	start++
	end := v.run(start, 512, &secretText)
	if end-start < 8 || !v.lit(end, "@") {
		return nil
	}
	if !contains(v.b[start:end], &digits) || distinct(v.b[start:end]) < 5 {
		return nil
	}
	return []span{{start: start, end: end}}
}

// bearer is what follows the word in a header or in a command.
func bearer(v *view) []span {
	const prefix = "bearer "
	if !v.fold(0, prefix) {
		return nil
	}
	return credentialAt(v, v.run(len(prefix), 8, &between), 16)
}

// authorization is a header with a scheme other than Bearer.
func authorization(v *view) []span {
	const name = "authorization"
	if !v.fold(0, name) {
		return nil
	}
	at := v.run(len(name), 12, &between)
	if at == len(name) {
		return nil
	}
	for _, scheme := range []string{"basic ", "token "} {
		if v.fold(at, scheme) {
			return credentialAt(v, at+len(scheme), 12)
		}
	}
	return nil
}

// keyHeader is a header that carries a key alone.
func keyHeader(v *view) []span {
	for _, name := range []string{"x-api-key", "x-goog-api-key"} {
		if !v.fold(0, name) {
			continue
		}
		if at := v.run(len(name), 12, &between); at > len(name) {
			return credentialAt(v, at, 16)
		}
	}
	return nil
}

func credentialAt(v *view, start, least int) []span {
	end := v.run(start, longest, &credential)
	if end-start < least || distinct(v.b[start:end]) < varied || !contains(v.b[start:end], &letters, &digits) {
		return nil
	}
	return []span{{start: start, end: end}}
}

// openAI is a key with the mark that OpenAI puts into every one, or one of the
// same form that others give out.
func openAI(v *view) []span {
	const prefix = "sk-"
	if !v.lit(0, prefix) {
		return nil
	}
	end := v.run(len(prefix), longest, &dashed)
	rest := v.b[len(prefix):end]
	if distinct(rest) < varied || !contains(rest, &digits) {
		return nil
	}
	plain := len(prefix)
	for plain < end && alnum.has(v.b[plain]) {
		plain++
	}
	for _, service := range []string{"proj-", "svcacct-", "admin-", "or-v1-", "lf-"} {
		if bytes.HasPrefix(rest, []byte(service)) && len(rest) >= 36 {
			return []span{{end: end}}
		}
	}
	if plain-len(prefix) >= 32 || bytes.Contains(rest, []byte("T3BlbkFJ")) {
		return []span{{end: end}}
	}
	return nil
}

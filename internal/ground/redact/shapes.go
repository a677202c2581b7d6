package redact

import "bytes"

// awsSecret names the secret half of a pair of AWS keys.
const awsSecret = "aws-secret-key"

// userStart is what may follow the slashes of a URL with a password.
var userStart = classOf("A-Za-z0-9._~%+:-")

// matchPrivateKey matches a block that begins with -----BEGIN … PRIVATE KEY-----.
// The header and each line of the body are spans of their own, so that what
// listings, diffs and quotes put between the lines is kept.
func matchPrivateKey(v *view) []span {
	at, ok := pemHeader(v)
	if !ok {
		return nil
	}
	key := keyBlock{v: v, lines: []span{{end: at}}}
	for at < Window && key.strange <= 200 {
		b, ok := v.byteAt(at)
		switch {
		case !ok, b == '[' && v.hasText(at, opening):
			return key.foundSpans()
		case b == '-' && v.hasText(at, "-----"):
			key.addLastLine()
			return key.foundSpans()
		case b == '\\':
			at = skipEscapedNewline(v, at)
		case base64Chars.has(b):
			end := v.runEnd(at, Window-at, &base64Chars)
			key.addRun(at, end)
			at = end
		default:
			key.strange++
			at++
		}
	}
	return key.foundSpans()
}

// keyBlock is a private key that is being read.
type keyBlock struct {
	v       *view
	lines   []span // the header and what is surely a part of the key
	runs    []span // since the last line: words of base64 that are too short to tell
	gap     int    // bytes between the last two lines
	strange int    // bytes since the last line
}

func (k *keyBlock) addRun(start, end int) {
	const sure = 40
	one := span{start: start, end: end, more: true}
	if end-start < sure || len(k.lines) == 1 && !looksRandom(k.v.b[start:end]) {
		k.runs = append(k.runs, one)
		k.strange += end - start
		return
	}
	k.gap = start - k.lines[len(k.lines)-1].end
	k.lines, k.runs, k.strange = append(k.lines, one), nil, 0
}

// addLastLine adds the last line, which may be as short as a word beside it: the
// run at the expected place, or else the longest one.
func (k *keyBlock) addLastLine() {
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

// foundSpans returns nothing if only the header was found: programs that read
// keys contain the header.
func (k *keyBlock) foundSpans() []span {
	if len(k.lines) < 2 {
		return nil
	}
	return k.lines
}

func pemHeader(v *view) (end int, ok bool) {
	if !v.hasText(0, "BEGIN ") {
		return 0, false
	}
	end = v.runEnd(0, 64, &titleChars)
	if !bytes.Contains(v.b[:end], []byte("PRIVATE KEY")) || !v.hasText(end, "-----") {
		return 0, false
	}
	return end + len("-----"), true
}

// skipEscapedNewline skips an escaped end of line, escaped once or more often.
// Otherwise its letter would be taken for the first one of the next line.
func skipEscapedNewline(v *view, at int) int {
	b, ok := v.byteAt(at)
	for ok && b == '\\' {
		at++
		b, ok = v.byteAt(at)
	}
	if b == 'n' || b == 'r' || b == 't' {
		at++
	}
	return at
}

// looksRandom reports whether a word has everything that random base64 has.
func looksRandom(b []byte) bool {
	return containsEach(b, &lower, &upper, &digits) && countDistinct(b) >= 2*minDistinct
}

// matchAWSKeyID matches the ID of a key, and the secret if there is one nearby.
func matchAWSKeyID(v *view) []span {
	const prefix, size = 4, 16
	end := v.runEnd(0, 128, &upperDigit)
	if end < prefix+size {
		return nil
	}
	id := v.b[prefix : prefix+size]
	if countDistinct(id) < minDistinct || bytes.Contains(id, []byte("EXAMPLE")) {
		return nil
	}
	return append([]span{{end: end}}, awsSecretNear(v, end)...)
}

func awsSecretNear(v *view, at int) []span {
	const near = 256
	for limit := at + near; at < limit; at++ {
		end := v.runEnd(at, maxToken, &base64Chars)
		if found := awsSecretAt(v, at, end); found != nil {
			return found
		}
		at = end
	}
	return nil
}

// matchNamedAWSSecret matches a secret after its usual name, in any style of
// writing.
func matchNamedAWSSecret(v *view) []span {
	at := 0
	for _, name := range []string{"secret_access_key", "secretaccesskey", "secret-access-key"} {
		if v.hasTextFold(0, name) {
			at = len(name)
		}
	}
	start := v.runEnd(at, 12, &separatorChars)
	if start == at {
		return nil
	}
	return awsSecretAt(v, start, v.runEnd(start, maxToken, &base64Chars))
}

func awsSecretAt(v *view, start, end int) []span {
	const size = 40
	if end-start < size || !looksRandom(v.b[start:end]) || bytes.Contains(v.b[start:start+size], []byte("EXAMPLE")) {
		return nil
	}
	return []span{{name: awsSecret, start: start, end: end}}
}

// matchWebToken matches a JSON Web Token: two objects in base64 and a signature,
// or the five parts of an encrypted one.
func matchWebToken(v *view) []span {
	const head, rest = 17, 10
	end := v.runEnd(0, 4096, &dashedChars)
	if end < head || !v.hasText(end, ".") {
		return nil
	}
	signed := v.hasText(end+1, "eyJ")
	parts := 1
	var second int // bytes of the second part
	for most := 5; parts < most; parts++ {
		if signed {
			most = 3
		}
		if !v.hasText(end, ".") {
			break
		}
		next := v.runEnd(end+1, max(Window-end, 0), &dashedChars)
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

// matchURLPassword matches the password of scheme://user:password@host.
func matchURLPassword(v *view) []span {
	if !v.hasText(0, "://") {
		return nil
	}
	start := v.runEnd(3, 128, &userChars)
	if !v.hasText(start, ":") {
		return nil
	}
	start++
	end := v.runEnd(start, 512, &secretText)
	if end-start < 8 || !v.hasText(end, "@") {
		return nil
	}
	if !containsEach(v.b[start:end], &digits) || countDistinct(v.b[start:end]) < 5 {
		return nil
	}
	return []span{{start: start, end: end}}
}

// matchBearer matches what follows the word "bearer" in a header or a command.
func matchBearer(v *view) []span {
	const prefix = "bearer "
	if !v.hasTextFold(0, prefix) {
		return nil
	}
	return credentialAt(v, v.runEnd(len(prefix), 8, &separatorChars), 16)
}

// matchAuthorization matches a header with a scheme other than Bearer.
func matchAuthorization(v *view) []span {
	const name = "authorization"
	if !v.hasTextFold(0, name) {
		return nil
	}
	at := v.runEnd(len(name), 12, &separatorChars)
	if at == len(name) {
		return nil
	}
	for _, scheme := range []string{"basic ", "token "} {
		if v.hasTextFold(at, scheme) {
			return credentialAt(v, at+len(scheme), 12)
		}
	}
	return nil
}

// matchKeyHeader matches a header whose value is only a key.
func matchKeyHeader(v *view) []span {
	for _, name := range []string{"x-api-key", "x-goog-api-key"} {
		if !v.hasTextFold(0, name) {
			continue
		}
		if at := v.runEnd(len(name), 12, &separatorChars); at > len(name) {
			return credentialAt(v, at, 16)
		}
	}
	return nil
}

func credentialAt(v *view, start, least int) []span {
	end := v.runEnd(start, maxToken, &credentialChars)
	if end-start < least || countDistinct(v.b[start:end]) < minDistinct || !containsEach(v.b[start:end], &letters, &digits) {
		return nil
	}
	return []span{{start: start, end: end}}
}

// matchOpenAIKey matches a key with the mark that OpenAI puts into all of its
// keys, or a key of the same form from another vendor.
func matchOpenAIKey(v *view) []span {
	const prefix = "sk-"
	if !v.hasText(0, prefix) {
		return nil
	}
	end := v.runEnd(len(prefix), maxToken, &dashedChars)
	rest := v.b[len(prefix):end]
	if countDistinct(rest) < minDistinct || !containsEach(rest, &digits) {
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

package redact

// Window is the length in bytes of the longest text that a shape looks at. The
// rest of a longer secret is passed on.
const Window = 16 << 10

// shape says how secrets of one kind look. A shape must not depend on the text
// behind a match: a match in a text is a match in every longer text. Otherwise
// the mark of a neighboring secret could turn ordinary text into a secret.
type shape struct {
	name   string
	begins []string // all possible beginnings
	then   *class   // what follows a beginning that is shorter than headLen
	alone  *class   // bytes that must not be before it
	match  func(*view) []span
}

// eachHead calls add with every head that the shape can begin with.
func (s *shape) eachHead(add func([headLen]byte)) {
	for _, b := range s.begins {
		s.extendHead([]byte(b), add)
	}
}

func (s *shape) extendHead(b []byte, add func([headLen]byte)) {
	if len(b) >= headLen {
		add([headLen]byte(b[:headLen]))
		return
	}
	for c := range 256 {
		if s.then.has(byte(c)) {
			s.extendHead(append(b[:len(b):len(b)], byte(c)), add)
		}
	}
}

// maxToken is the length in bytes of the longest token other than a JSON Web
// Token. Google's tokens have up to 2,048 bytes.
const maxToken = 4 << 10

// minDistinct is the least number of different bytes in a random token. Examples
// in documentation, such as ghp_xxxx, have fewer.
const minDistinct = 8

// newToken returns the shape of a fixed prefix and at least least bytes of a
// class.
func newToken(name, prefix string, least int, in *class) shape {
	return shape{name: name, begins: []string{prefix}, then: in, match: func(v *view) []span {
		return tokenAt(v, prefix, least, in)
	}}
}

// newWordToken returns the shape of a token that is not a part of a longer word.
func newWordToken(name, prefix string, least int, in *class) shape {
	s := newToken(name, prefix, least, in)
	s.alone = &wordChars
	return s
}

// newDigitToken returns the shape of a token that contains a digit. Real tokens
// always have one, while examples that are made of words do not.
func newDigitToken(name, prefix string, least int, in *class) shape {
	s := newToken(name, prefix, least, in)
	s.match = func(v *view) []span { return tokenAt(v, prefix, least, in, &digits) }
	return s
}

func tokenAt(v *view, prefix string, least int, in *class, must ...*class) []span {
	if !v.hasText(0, prefix) {
		return nil
	}
	// Only the beginning is judged, so that a long run of other text is rejected
	// soon.
	start := len(prefix)
	first := v.runEnd(start, 256, in)
	if first-start < least || countDistinct(v.b[start:first]) < minDistinct || !containsEach(v.b[start:first], must...) {
		return nil
	}
	return []span{{end: v.runEnd(first, maxToken, in)}}
}

// shapes are all built-in shapes. Each must find next to nothing in the source of
// ordinary programs.
var shapes = []shape{
	{name: "private-key", begins: []string{"BEGIN "}, match: matchPrivateKey},
	{name: "aws-access-key-id", begins: []string{"AKIA", "ASIA"}, alone: &upperDigit, match: matchAWSKeyID},
	{name: awsSecret, begins: []string{"secr", "Secr", "SECR"}, match: matchNamedAWSSecret},
	{name: "jwt", begins: []string{"eyJ"}, then: &dashedChars, alone: &dashedChars, match: matchWebToken},
	{name: "url-password", begins: []string{"://"}, then: &userStart, match: matchURLPassword},
	{name: "bearer-token", begins: []string{"Bearer ", "bearer ", "BEARER "}, match: matchBearer},
	{name: "authorization", begins: []string{"Auth", "auth", "AUTH"}, match: matchAuthorization},
	{name: "api-key-header", begins: []string{"x-ap", "X-Ap", "X-AP", "x-go", "X-Go"}, match: matchKeyHeader},

	newToken("github-token", "ghp_", 36, &alnum),
	newToken("github-token", "gho_", 36, &alnum),
	newToken("github-token", "ghu_", 36, &alnum),
	newToken("github-token", "ghs_", 36, &dottedChars),
	newToken("github-token", "ghr_", 36, &alnum),
	newToken("github-token", "github_pat_", 50, &wordChars),
	newToken("gitlab-token", "glpat-", 20, &dottedChars),
	newToken("gitlab-token", "gldt-", 20, &dottedChars),
	newToken("gitlab-token", "glrt-", 20, &dottedChars),
	newToken("gitlab-token", "glptt-", 40, &dashedChars),
	newToken("gitlab-token", "glcbt-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxb-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxp-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxa-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxr-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxs-", 20, &dashedChars),
	newDigitToken("slack-token", "xoxe.", 20, &dottedChars),
	newDigitToken("slack-token", "xoxe-", 20, &dashedChars),
	newDigitToken("slack-token", "xapp-", 20, &dashedChars),
	newDigitToken("slack-webhook", "hooks.slack.com/services/", 36, &pathChars),
	newToken("stripe-key", "sk_live_", 20, &alnum),
	newToken("stripe-key", "rk_live_", 20, &alnum),
	newToken("stripe-key", "sk_test_", 20, &alnum),
	newToken("stripe-key", "rk_test_", 20, &alnum),
	newToken("stripe-webhook-secret", "whsec_", 32, &credentialChars),
	newDigitToken("anthropic-key", "sk-ant-", 32, &dashedChars),
	{name: "openai-key", begins: []string{"sk-"}, then: &alnum, alone: &dashedChars, match: matchOpenAIKey},
	newWordToken("google-api-key", "AIza", 35, &dashedChars),
	newToken("google-oauth-secret", "GOCSPX-", 28, &dashedChars),
	newWordToken("google-oauth-token", "ya29.", 40, &dashedChars),
	newToken("npm-token", "npm_", 36, &alnum),
	newToken("pypi-token", "pypi-AgE", 50, &dashedChars),
	newWordToken("huggingface-token", "hf_", 34, &alnum),
	newWordToken("groq-key", "gsk_", 50, &alnum),
	newWordToken("xai-key", "xai-", 70, &alnum),
	newWordToken("perplexity-key", "pplx-", 48, &alnum),
	newWordToken("replicate-token", "r8_", 37, &alnum),
	newWordToken("sendgrid-key", "SG.", 60, &dottedChars),
	newToken("digitalocean-token", "dop_v1_", 64, &lowerHex),
	newToken("digitalocean-token", "doo_v1_", 64, &lowerHex),
	newToken("shopify-token", "shpat_", 32, &alnum),
	newToken("shopify-token", "shpss_", 32, &alnum),
	newToken("docker-token", "dckr_pat_", 24, &dashedChars),
	newToken("vault-token", "hvs.", 80, &dashedChars),
	newToken("vault-token", "hvb.", 80, &dashedChars),
	newToken("age-key", "AGE-SECRET-KEY-1", 50, &upperDigit),
	newToken("azure-storage-key", "AccountKey=", 80, &base64Chars),
	newToken("atlassian-token", "ATATT3", 100, &credentialChars),
	newToken("databricks-token", "dapi", 32, &lowerHex),
	newToken("grafana-token", "glsa_", 32, &wordChars),
	newToken("linear-key", "lin_api_", 40, &alnum),
	newToken("tailscale-key", "tskey-", 24, &dashedChars),
	newToken("doppler-token", "dp.pt.", 40, &alnum),
	newToken("planetscale-token", "pscale_tkn_", 32, &dottedChars),
	newToken("rubygems-key", "rubygems_", 48, &lowerHex),
	newToken("fly-token", "fm2_", 100, &base64Chars),
}

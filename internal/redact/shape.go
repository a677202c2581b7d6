package redact

// Window is the longest stretch of text that a shape looks at, in bytes. Of a
// longer secret the rest is passed on.
const Window = 16 << 10

// shape is how secrets of one kind look. A shape must not depend on what does
// not stand behind it: a match in a text is a match in every longer one.
// Otherwise the mark of a neighbour could make a secret of what was none.
type shape struct {
	name   string
	begins []string // the ways to begin
	then   *class   // what follows a beginning of fewer than headLen bytes
	alone  *class   // no such byte stands before it
	match  func(*view) []span
}

// heads tells every way in which the shape can begin.
func (s *shape) heads(add func([headLen]byte)) {
	for _, b := range s.begins {
		s.extend([]byte(b), add)
	}
}

func (s *shape) extend(b []byte, add func([headLen]byte)) {
	if len(b) >= headLen {
		add([headLen]byte(b[:headLen]))
		return
	}
	for c := range 256 {
		if s.then.has(byte(c)) {
			s.extend(append(b[:len(b):len(b)], byte(c)), add)
		}
	}
}

// longest is the most bytes of a token that is not a JSON Web Token. Google's
// may have 2,048.
const longest = 4 << 10

// varied is how many different bytes a random token has at least. The dummies
// of documentation, such as ghp_xxxx, have fewer.
const varied = 8

// token is a fixed beginning and at least least bytes of a class.
func token(name, prefix string, least int, in *class) shape {
	return shape{name: name, begins: []string{prefix}, then: in, match: func(v *view) []span {
		return tokenAt(v, prefix, least, in)
	}}
}

// word is a token that is not part of a longer word.
func wordToken(name, prefix string, least int, in *class) shape {
	s := token(name, prefix, least, in)
	s.alone = &word
	return s
}

// digitToken is a token in which a random one always has a digit: a dummy that
// is put together from words has none.
func digitToken(name, prefix string, least int, in *class) shape {
	s := token(name, prefix, least, in)
	s.match = func(v *view) []span { return tokenAt(v, prefix, least, in, &digits) }
	return s
}

func tokenAt(v *view, prefix string, least int, in *class, must ...*class) []span {
	if !v.lit(0, prefix) {
		return nil
	}
	// The beginning decides, so that a long run that is none is soon known.
	start := len(prefix)
	first := v.run(start, 256, in)
	if first-start < least || distinct(v.b[start:first]) < varied || !contains(v.b[start:first], must...) {
		return nil
	}
	return []span{{end: v.run(first, longest, in)}}
}

// shapes are all that are built in. Each must find next to nothing in the
// source of ordinary programs.
var shapes = []shape{
	{name: "private-key", begins: []string{"BEGIN "}, match: privateKey},
	{name: "aws-access-key-id", begins: []string{"AKIA", "ASIA"}, alone: &upperDigit, match: awsKeyID},
	{name: awsSecret, begins: []string{"secr", "Secr", "SECR"}, match: awsNamedSecret},
	{name: "jwt", begins: []string{"eyJ"}, then: &dashed, alone: &dashed, match: webToken},
	{name: "url-password", begins: []string{"://"}, then: &userStart, match: urlPassword},
	{name: "bearer-token", begins: []string{"Bearer ", "bearer ", "BEARER "}, match: bearer},
	{name: "authorization", begins: []string{"Auth", "auth", "AUTH"}, match: authorization},
	{name: "api-key-header", begins: []string{"x-ap", "X-Ap", "X-AP", "x-go", "X-Go"}, match: keyHeader},

	token("github-token", "ghp_", 36, &alnum),
	token("github-token", "gho_", 36, &alnum),
	token("github-token", "ghu_", 36, &alnum),
	token("github-token", "ghs_", 36, &dotted),
	token("github-token", "ghr_", 36, &alnum),
	token("github-token", "github_pat_", 50, &word),
	token("gitlab-token", "glpat-", 20, &dotted),
	token("gitlab-token", "gldt-", 20, &dotted),
	token("gitlab-token", "glrt-", 20, &dotted),
	token("gitlab-token", "glptt-", 40, &dashed),
	token("gitlab-token", "glcbt-", 20, &dashed),
	digitToken("slack-token", "xoxb-", 20, &dashed),
	digitToken("slack-token", "xoxp-", 20, &dashed),
	digitToken("slack-token", "xoxa-", 20, &dashed),
	digitToken("slack-token", "xoxr-", 20, &dashed),
	digitToken("slack-token", "xoxs-", 20, &dashed),
	digitToken("slack-token", "xoxe.", 20, &dotted),
	digitToken("slack-token", "xoxe-", 20, &dashed),
	digitToken("slack-token", "xapp-", 20, &dashed),
	digitToken("slack-webhook", "hooks.slack.com/services/", 36, &path),
	token("stripe-key", "sk_live_", 20, &alnum),
	token("stripe-key", "rk_live_", 20, &alnum),
	token("stripe-key", "sk_test_", 20, &alnum),
	token("stripe-key", "rk_test_", 20, &alnum),
	token("stripe-webhook-secret", "whsec_", 32, &credential),
	digitToken("anthropic-key", "sk-ant-", 32, &dashed),
	{name: "openai-key", begins: []string{"sk-"}, then: &alnum, alone: &dashed, match: openAI},
	wordToken("google-api-key", "AIza", 35, &dashed),
	token("google-oauth-secret", "GOCSPX-", 28, &dashed),
	wordToken("google-oauth-token", "ya29.", 40, &dashed),
	token("npm-token", "npm_", 36, &alnum),
	token("pypi-token", "pypi-AgE", 50, &dashed),
	wordToken("huggingface-token", "hf_", 34, &alnum),
	wordToken("groq-key", "gsk_", 50, &alnum),
	wordToken("xai-key", "xai-", 70, &alnum),
	wordToken("perplexity-key", "pplx-", 48, &alnum),
	wordToken("replicate-token", "r8_", 37, &alnum),
	wordToken("sendgrid-key", "SG.", 60, &dotted),
	token("digitalocean-token", "dop_v1_", 64, &lowerHex),
	token("digitalocean-token", "doo_v1_", 64, &lowerHex),
	token("shopify-token", "shpat_", 32, &alnum),
	token("shopify-token", "shpss_", 32, &alnum),
	token("docker-token", "dckr_pat_", 24, &dashed),
	token("vault-token", "hvs.", 80, &dashed),
	token("vault-token", "hvb.", 80, &dashed),
	token("age-key", "AGE-SECRET-KEY-1", 50, &upperDigit),
	token("azure-storage-key", "AccountKey=", 80, &base64Chars),
	token("atlassian-token", "ATATT3", 100, &credential),
	token("databricks-token", "dapi", 32, &lowerHex),
	token("grafana-token", "glsa_", 32, &word),
	token("linear-key", "lin_api_", 40, &alnum),
	token("tailscale-key", "tskey-", 24, &dashed),
	token("doppler-token", "dp.pt.", 40, &alnum),
	token("planetscale-token", "pscale_tkn_", 32, &dotted),
	token("rubygems-key", "rubygems_", 48, &lowerHex),
	token("fly-token", "fm2_", 100, &base64Chars),
}

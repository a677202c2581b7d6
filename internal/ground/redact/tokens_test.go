package redact

import (
	"slices"
	"strings"
	"testing"
)

type knownToken struct {
	name, begin string
	least       int    // bytes that must follow
	from        string // what a body is made of; empty: small hexadecimal digits
	alone       bool   // it is none within a longer word
	digits      bool   // a body without a digit is a dummy
}

// tokens are those that are known by how they begin.
var tokens = []knownToken{
	{name: "github-token", begin: "ghp_", least: 36},
	{name: "github-token", begin: "gho_", least: 36},
	{name: "github-token", begin: "ghu_", least: 36},
	{name: "github-token", begin: "ghs_", least: 36},
	{name: "github-token", begin: "ghs_", least: 36, from: "eyJ.0_a-"},
	{name: "github-token", begin: "ghr_", least: 36},
	{name: "github-token", begin: "github_pat_", least: 50, from: "12AB_cde"},
	{name: "gitlab-token", begin: "glpat-", least: 20},
	{name: "gitlab-token", begin: "gldt-", least: 20},
	{name: "gitlab-token", begin: "glrt-", least: 20},
	{name: "gitlab-token", begin: "glptt-", least: 40},
	{name: "gitlab-token", begin: "glcbt-", least: 20},
	{name: "slack-token", begin: "xoxb-", least: 20, digits: true},
	{name: "slack-token", begin: "xoxp-", least: 20, digits: true},
	{name: "slack-token", begin: "xoxa-", least: 20, digits: true},
	{name: "slack-token", begin: "xoxr-", least: 20, digits: true},
	{name: "slack-token", begin: "xoxs-", least: 20, digits: true},
	{name: "slack-token", begin: "xoxe.", least: 20, digits: true},
	{name: "slack-token", begin: "xoxe-", least: 20, digits: true},
	{name: "slack-token", begin: "xapp-", least: 20, digits: true},
	{name: "slack-webhook", begin: "hooks.slack.com/services/", least: 36, digits: true},
	{name: "stripe-key", begin: "sk_live_", least: 20},
	{name: "stripe-key", begin: "rk_live_", least: 20},
	{name: "stripe-key", begin: "sk_test_", least: 20},
	{name: "stripe-key", begin: "rk_test_", least: 20},
	{name: "stripe-webhook-secret", begin: "whsec_", least: 32},
	{name: "anthropic-key", begin: "sk-ant-", least: 32, digits: true},
	{name: "google-api-key", begin: "AIza", least: 35, alone: true},
	{name: "google-oauth-secret", begin: "GOCSPX-", least: 28},
	{name: "google-oauth-token", begin: "ya29.", least: 40, alone: true},
	{name: "npm-token", begin: "npm_", least: 36},
	{name: "pypi-token", begin: "pypi-AgE", least: 50},
	{name: "huggingface-token", begin: "hf_", least: 34, alone: true},
	{name: "groq-key", begin: "gsk_", least: 50, alone: true},
	{name: "xai-key", begin: "xai-", least: 70, alone: true},
	{name: "perplexity-key", begin: "pplx-", least: 48, alone: true},
	{name: "replicate-token", begin: "r8_", least: 37, alone: true},
	{name: "sendgrid-key", begin: "SG.", least: 60, alone: true},
	{name: "digitalocean-token", begin: "dop_v1_", least: 64},
	{name: "digitalocean-token", begin: "doo_v1_", least: 64},
	{name: "shopify-token", begin: "shpat_", least: 32},
	{name: "shopify-token", begin: "shpss_", least: 32},
	{name: "docker-token", begin: "dckr_pat_", least: 24},
	{name: "vault-token", begin: "hvs.", least: 80},
	{name: "vault-token", begin: "hvb.", least: 80},
	{name: "age-key", begin: "AGE-SECRET-KEY-1", least: 50, from: "QPZRY9X8"},
	{name: "azure-storage-key", begin: "AccountKey=", least: 80, from: "aB+/3dE9"},
	{name: "atlassian-token", begin: "ATATT3", least: 100},
	{name: "databricks-token", begin: "dapi", least: 32},
	{name: "grafana-token", begin: "glsa_", least: 32},
	{name: "linear-key", begin: "lin_api_", least: 40},
	{name: "tailscale-key", begin: "tskey-", least: 24},
	{name: "doppler-token", begin: "dp.pt.", least: 40},
	{name: "planetscale-token", begin: "pscale_tkn_", least: 32},
	{name: "rubygems-key", begin: "rubygems_", least: 48},
	{name: "fly-token", begin: "fm2_", least: 100},
}

func TestATokenIsReplacedFromItsLeastLengthOn(t *testing.T) {
	r := New()
	for _, token := range tokens {
		from := token.from
		if from == "" {
			from = "0a1b2c3d4e5f6978"
		}
		body := func(n int) string { return strings.Repeat(from, n)[:n] }
		mark := "[redacted:" + token.name + "]"
		for text, want := range map[string]string{
			"=" + token.begin + body(token.least) + " x":                          "=" + mark + " x",
			"=" + token.begin + body(3*token.least) + "\n":                        "=" + mark + "\n",
			"=" + token.begin + body(token.least-1) + " x":                        "=" + token.begin + body(token.least-1) + " x",
			"=" + token.begin + strings.Repeat("abcdefg", token.least) + " x":     "=" + token.begin + strings.Repeat("abcdefg", token.least) + " x", // seven letters are not varied
			token.begin + body(token.least/2) + " " + body(token.least) + " half": token.begin + body(token.least/2) + " " + body(token.least) + " half",
		} {
			if got := r.String(text); got != want {
				t.Errorf("%s: %q became %q, want %q", token.begin, text, got, want)
			}
		}
		within := "z" + token.begin + body(token.least) + " x"
		if got := r.String(within); (got == within) != token.alone {
			t.Errorf("%s: within a word %q became %q, want it to stay: %v", token.begin, within, got, token.alone)
		}
		wordy := token.begin + strings.Repeat("abcdefghij", token.least)
		if got := r.String(wordy); token.digits && got != wordy {
			t.Errorf("%s: %q became %q, want a dummy of words to stay", token.begin, wordy, got)
		}
	}
	others := []string{"private-key", "jwt", "url-password", "openai-key"} // these have tests of their own
	for _, s := range shapes {
		tried := slices.ContainsFunc(tokens, func(token knownToken) bool { return token.name == s.name && slices.Contains(s.begins, token.begin) })
		if !tried && len(s.begins) == 1 && !slices.Contains(others, s.name) {
			t.Errorf("%s: no token that begins with %q is tried: add it to tokens", s.name, s.begins)
		}
	}
}

func TestATokenThatMayNotBePartOfAWordIsFoundBehindAnEscape(t *testing.T) {
	google := "AI" + "zaSy" + body36[:33]
	aws := shaped[0]
	r := New()
	for text, want := range map[string]string{
		`\n` + google:              `\n[redacted:google-api-key]`,
		`\u003d` + google:          `\u003d[redacted:google-api-key]`,
		"%3D" + google:             "%3D[redacted:google-api-key]",
		"%3d" + google:             "%3d[redacted:google-api-key]",
		"\x1b[m" + google:          "\x1b[m[redacted:google-api-key]",
		"\x1b[1;31m" + google:      "\x1b[1;31m[redacted:google-api-key]",
		"\x1b[38;5;196m" + google:  "\x1b[38;5;196m[redacted:google-api-key]",
		`\u003D` + aws:             `\u003D[redacted:aws-access-key-id]`,
		"%3D" + aws:                "%3D[redacted:aws-access-key-id]",
		"m" + google:               "m" + google,
		"31m" + google:             "31m" + google,
		"x31m" + google:            "x31m" + google,
		"u003d" + google:           "u003d" + google,
		"0x3d" + google:            "0x3d" + google,
		"3D" + aws:                 "3D" + aws,
		"[31x" + google:            "[31x" + google,
		"a " + google + google[:5]: "a [redacted:google-api-key]",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestShapesEndWhereTheirLeastIs(t *testing.T) {
	line := strings.Repeat("aB3dE5gH7jK9mN+pQ/rS", 4) // 80 of base64
	key := func(body string) string { return pem("", body) }
	const mark = "[redacted:private-key]"
	stays := func(text string) [2]string { return [2]string{text, text} }
	r := New()
	for name, c := range map[string][2]string{
		"a key of one line of 40":        {key(line[:40] + "\n"), "-----" + mark + "\n" + mark + "\n-----END PRIVATE KEY-----\n"},
		"a key of one line of 39":        stays(key(line[:39] + "\n")),
		"a key and its short last line":  {key(line[:64] + "\nab\n"), "-----" + mark + "\n" + mark + "\n" + mark + "\n-----END PRIVATE KEY-----\n"},
		"a key whose first line is poor": stays(key(strings.Repeat("ab", 32) + "\n")),
		"lines far apart":                {"-----BEGIN PRIVATE KEY-----\n" + line[:64] + strings.Repeat(".", 200) + line[:64] + ".", "-----" + mark + "\n" + mark + strings.Repeat(".", 200) + mark + "."},
		"lines too far apart":            {"-----BEGIN PRIVATE KEY-----\n" + line[:64] + strings.Repeat(".", 201) + line[:64] + ".", "-----" + mark + "\n" + mark + strings.Repeat(".", 201) + line[:64] + "."},

		"words between lines": {"-----BEGIN PRIVATE KEY-----\n" + line[:64] + strings.Repeat(" words", 50) + " " + line[:64] + ".", "-----" + mark + "\n" + mark + strings.Repeat(" words", 50) + " " + line[:64] + "."},
		"a short last line where it is expected": {
			key(line[:64] + "\nlonger " + line[:64] + "\nlonger ab\n"), "-----" + mark + "\n" + mark + "\nlonger " + mark + "\nlonger " + mark + "\n-----END PRIVATE KEY-----\n",
		},
		"a last line elsewhere, the longest word": {key(line[:64] + "\n\n> ab cdef ghij kl\n"), "-----" + mark + "\n" + mark + "\n\n> ab " + mark + " ghij kl\n-----END PRIVATE KEY-----\n"},

		"a first line of 16 signs":    {key(strings.Repeat("abcdefghABCDEF12", 4) + "\n"), "-----" + mark + "\n" + mark + "\n-----END PRIVATE KEY-----\n"},
		"a first line of 15 signs":    stays(key(strings.Repeat("abcdefgABCDEF12", 4) + "\n")),
		"a beginning of no key":       stays("BEGINNING " + line[:64] + "\n"),
		"a key of a line without end": {"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(line, 300), "-----" + mark + "\n" + mark + strings.Repeat(line, 300)[Window-len("BEGIN PRIVATE KEY-----\n"):]},

		"a token without end":                {"gho_" + strings.Repeat("0a1b2c3d", 1000), "[redacted:github-token]" + strings.Repeat("0a1b2c3d", 1000)[256+maxToken:]},
		"a token without end, of beginnings": {strings.Repeat("xoxb-0a1b2c3d4e-", 300), "[redacted:slack-token]" + strings.Repeat("xoxb-0a1b2c3d4e-", 300)[5+256+maxToken:][:11] + "[redacted:slack-token]"},

		"a key before a mark":      {"-----BEGIN PRIVATE KEY-----\n" + line[:64] + "[redacted:x]" + line[:64], "-----" + mark + "\n" + mark + "[redacted:x]" + line[:64]},
		"two tokens without a gap": {strings.Repeat("rubygems_"+strings.Repeat("0a1b2c3d", 6), 2), "[redacted:rubygems-key][redacted:rubygems-key]"},

		"an access key of 16":          {"AKI" + "A" + "Q3EGRT7WYHN2ZLKP", "[redacted:aws-access-key-id]"},
		"an access key of 15":          stays("AKI" + "A" + "Q3EGRT7WYHN2ZLK"),
		"a temporary access key":       {"ASI" + "A" + "Q3EGRT7WYHN2ZLKP", "[redacted:aws-access-key-id]"},
		"an access key of few letters": stays("AKI" + "A" + "ABABABABABABABAB"),
		"an access key of 128":         {shaped[0] + strings.Repeat("A", 108) + "BCD", "[redacted:aws-access-key-id]BCD"},
		"a secret 255 behind its id":   {shaped[0] + strings.Repeat(" ", 255) + body40, "[redacted:aws-access-key-id]" + strings.Repeat(" ", 255) + "[redacted:aws-secret-key]"},
		"a secret 256 behind its id":   secretStays(shaped[0], strings.Repeat(" ", 256)+body40),
		"an example in a longer word":  secretStays(shaped[0], ", wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"+body40),
		"a secret far from its id":     secretStays(shaped[0], strings.Repeat(" ", 300)+body40),
		"a secret near to its id":      {shaped[0] + strings.Repeat(" ", 200) + body40, "[redacted:aws-access-key-id]" + strings.Repeat(" ", 200) + "[redacted:aws-secret-key]"},
		"a named secret of 39":         stays("secret_access_key=" + body40[:39]),
		"a named secret, joined":       {"secretaccesskey=" + body40, "secretaccesskey=[redacted:aws-secret-key]"},
		"a named secret, with dashes":  {"secret-access-key: " + body40, "secret-access-key: [redacted:aws-secret-key]"},
		"a named secret, no sign":      stays("secret_access_key" + body40),
		"a named secret, no digits":    stays("secret_access_key=" + strings.Repeat("abcdefghijKLMNOPQRST", 2)),

		"a password of 8":              {"https://u:p4ssw0rd@h", "https://u:[redacted:url-password]@h"},
		"a password of 7":              stays("https://u:p4ssw0r@h"),
		"a password without a digit":   stays("https://u:password@h"),
		"a password of four letters":   stays("https://u:ab1cab1c@h"),
		"a password of five letters":   {"https://u:ab1cdb1c@h", "https://u:[redacted:url-password]@h"},
		"a password of 513":            stays("https://u:" + strings.Repeat("p4ssw0rd", 64) + "x@h"),
		"a user of 128":                {"https://" + strings.Repeat("u", 128) + ":p4ssw0rd@h", "https://" + strings.Repeat("u", 128) + ":[redacted:url-password]@h"},
		"a user of 129":                stays("https://" + strings.Repeat("u", 129) + ":p4ssw0rd@h"),
		"a password and no host":       stays("https://u:p4ssw0rd/h"),
		"a password of 512":            {"https://u:" + strings.Repeat("p4ssw0rd", 64) + "@h", "https://u:[redacted:url-password]@h"},
		"a URL without a user":         stays("https://u/p4ssw0rd@h"),
		"bearings":                     stays("Bearings " + body36),
		"bears":                        stays("bears: " + body36),
		"a bearer of eight signs":      {"Bearer abcdefg1abcdefg1abcdefg1", "Bearer [redacted:bearer-token]"},
		"a bearer of 16":               {"Bearer " + body36[:16] + " x", "Bearer [redacted:bearer-token] x"},
		"a bearer of 15":               stays("Bearer " + body36[:15] + " x"),
		"a bearer in capitals":         {"BEARER " + body36, "BEARER [redacted:bearer-token]"},
		"a bearer without a digit":     stays("Bearer abcdefghijklmnopqrst"),
		"a bearer without a letter":    stays("Bearer 01234567890123456789"),
		"a bearer of seven signs":      stays("Bearer abcdef1abcdef1abcdef1"),
		"authorization of 12":          {"authorization: token " + body36[:12], "authorization: token [redacted:authorization]"},
		"authorization of 11":          stays("authorization: token " + body36[:11]),
		"authorization, another":       stays("authorization: digest " + body36),
		"authorization, no scheme":     stays("authorization: " + body36),
		"authorization, no sign":       stays("authorizationtoken " + body36),
		"AUTHORIZATION":                {"AUTHORIZATION: Basic " + body36, "AUTHORIZATION: Basic [redacted:authorization]"},
		"a header with a key of 16":    {"X-Api-Key: " + body36[:16], "X-Api-Key: [redacted:api-key-header]"},
		"a header with a key of 15":    stays("X-Api-Key: " + body36[:15]),
		"a header of Google":           {"x-goog-api-key: " + body36, "x-goog-api-key: [redacted:api-key-header]"},
		"a header of Google, capitals": {"X-Goog-Api-Key: " + body36, "X-Goog-Api-Key: [redacted:api-key-header]"},
		"a header in capitals":         {"X-API-KEY: " + body36, "X-API-KEY: [redacted:api-key-header]"},
		"a header without a sign":      stays("x-api-key" + body36),

		"a named secret behind 12": {"secret_access_key" + strings.Repeat(" ", 12) + body40, "secret_access_key" + strings.Repeat(" ", 12) + "[redacted:aws-secret-key]"},
		"a named secret behind 13": stays("secret_access_key" + strings.Repeat(" ", 13) + body40),
		"a bearer behind 9":        {"Bearer " + strings.Repeat(" ", 8) + body36, "Bearer " + strings.Repeat(" ", 8) + "[redacted:bearer-token]"},
		"a bearer behind 10":       stays("Bearer " + strings.Repeat(" ", 9) + body36),
		"authorization behind 12":  {"authorization" + strings.Repeat(" ", 12) + "basic " + body36, "authorization" + strings.Repeat(" ", 12) + "basic [redacted:authorization]"},
		"authorization behind 13":  stays("authorization" + strings.Repeat(" ", 13) + "basic " + body36),
		"a header behind 12":       {"x-api-key" + strings.Repeat(" ", 12) + body36, "x-api-key" + strings.Repeat(" ", 12) + "[redacted:api-key-header]"},
		"a header behind 13":       stays("x-api-key" + strings.Repeat(" ", 13) + body36),

		"OpenAI's of 32":              {"sk-" + body36[:32], "[redacted:openai-key]"},
		"OpenAI's of 31":              stays("sk-" + body36[:31]),
		"OpenAI's with its mark":      {"sk-" + "a1b2c3" + "T3BlbkFJ" + "d4", "[redacted:openai-key]"},
		"OpenAI's of a project":       {"sk-" + "proj-" + body36[:15] + "-" + body36[:15], "[redacted:openai-key]"},
		"OpenAI's of a short project": stays("sk-" + "proj-" + body36[:15] + "-" + body36[:14]),
		"OpenAI's of a service":       {"sk-" + "svcacct-" + body36[:15] + "-" + body36[:15], "[redacted:openai-key]"},
		"OpenAI's of an admin":        {"sk-" + "admin-" + body36[:15] + "-" + body36[:15], "[redacted:openai-key]"},
		"OpenRouter's":                {"sk-" + "or-v1-" + body36[:15] + "-" + body36[:15], "[redacted:openai-key]"},
		"Langfuse's":                  {"sk-" + "lf-" + body36[:16] + "-" + body36[:16], "[redacted:openai-key]"},
		"somebody's with dashes":      stays("sk-" + "xy-" + body36[:16] + "-" + body36[:16]),
		"OpenAI's without a digit":    stays("sk-" + strings.Repeat("abcdefghij", 4)),

		"a token of two parts":         {"eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOi.", "[redacted:jwt]."},
		"a token of two parts, a word": {"eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOi more", "[redacted:jwt] more"},
		"a token of a short second":    stays("eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiO."),
		"a token of a head of 17":      {"eyJhbGciOiJIUzI1N" + ".eyJzdWIiOi ", "[redacted:jwt] "},
		"a token of a head of 4096":    {"eyJ" + strings.Repeat("b", 4093) + ".eyJzdWIiOi ", "[redacted:jwt] "},
		"a token of a head of 4097":    stays("eyJ" + strings.Repeat("b", 4094) + ".eyJzdWIiOi "),
		"a token of a short head":      stays("eyJhbGciOiJIUzI1" + ".eyJzdWIiOi."),
		"an encrypted token":           {"eyJhbGciOiJIUzI1NiJ9.a.b.c.d.e", "[redacted:jwt].e"},
		"four parts of an encrypted":   stays("eyJhbGciOiJIUzI1NiJ9.a.b.c"),
		"no more than three if signed": {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi.sig.more", "[redacted:jwt].more"},
		"a token with an empty part":   stays("eyJhbGciOiJIUzI1NiJ9.a..c.d"),
		"a token in a longer word":     stays("x" + jwtText),
	} {
		if got := r.String(c[0]); got != c[1] {
			t.Errorf("%s: %q became %q, want %q", name, c[0], got, c[1])
		}
	}
}

// secretStays is a text in which the id of a key is replaced and nothing else.
func secretStays(id, after string) [2]string {
	return [2]string{id + after, "[redacted:aws-access-key-id]" + after}
}

package redact

import (
	"strings"
	"testing"
)

// Tokens are put together here, so that no scanner takes this file for a leak.
var (
	body36  = "16C7e42F292c6912E7710c838347Ae178B4a"
	body40  = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ8vT1uYpL"
	pemBody = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\nNMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ\nqgtzJ6GR3eqoYSW9b9UMvkBpZODSctWSNGj3P7jRFDO5VoTwCQAWbFnOjDfH5Ulg\np2PKSQnSJP3AJLQNFNe7br1XbrhV//eO+t51mIpGSDCUv3E0DDFcWDTH9cXDTTlR\nZVEiR2BwpZOOkE==\n"
	jwtText = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

func pem(kind, body string) string {
	return "-----BEGIN " + kind + "PRIVATE KEY-----\n" + body + "-----END " + kind + "PRIVATE KEY-----\n"
}

// shaped are texts that hold one secret of a shape each.
var shaped = []string{
	"AKI" + "AQ3EGRT7WYHN2ZLKP",
	"AKI" + "AQ3EGRT7WYHN2ZLKP," + body40,
	"aws_secret_access_key = " + body40,
	"gh" + "p_" + body36, "github" + "_pat_11ABCDEFG0" + body36 + body36,
	"glp" + "at-Zx81kQmW2vLr9TnB4cYd", "xox" + "b-1234567890123-1234567890123-" + body36[:24],
	"sk_" + "live_" + body36[:24], "sk-" + "ant-api03-" + body36 + body36 + "-AA",
	"sk-" + "proj-" + body36 + "T3BlbkFJ" + body36, "AI" + "zaSy" + body36[:33],
	"np" + "m_" + body36, "pypi" + "-AgEIcHlwaS5vcmc" + body36 + body36,
	jwtText, "https://user:p4ssw0rd-99@host/", "Authorization: Bearer " + body36,
	"Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1lMQ==",
	pem("RSA ", pemBody), pem("OPENSSH ", pemBody), strings.ReplaceAll(pem("", pemBody), "\n", `\n`),
}

func TestSecretsOfAKnownShapeAreReplaced(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"access key":                     {"id=" + shaped[0] + ";", "id=[redacted:aws-access-key-id];"},
		"access key and its secret":      {shaped[0] + "," + body40 + "\n", "[redacted:aws-access-key-id],[redacted:aws-secret-key]\n"},
		"secret by name":                 {`AWS_SECRET_ACCESS_KEY="` + body40 + `"`, `AWS_SECRET_ACCESS_KEY="[redacted:aws-secret-key]"`},
		"secret by name in quoted JSON":  {`\"SecretAccessKey\": \"` + body40 + `\"`, `\"SecretAccessKey\": \"[redacted:aws-secret-key]\"`},
		"access key behind an escape":    {`a\n` + shaped[0], `a\n[redacted:aws-access-key-id]`},
		"access key behind a colour":     {"\x1b[31m" + shaped[0] + "\x1b[0m", "\x1b[31m[redacted:aws-access-key-id]\x1b[0m"},
		"GitHub":                         {"token gh" + "p_" + body36 + ".", "token [redacted:github-token]."},
		"GitHub, fine-grained":           {"github" + "_pat_11ABCDEFG0" + body36 + body36, "[redacted:github-token]"},
		"GitLab":                         {"glp" + "at-Zx81kQmW2vLr9TnB4cYd", "[redacted:gitlab-token]"},
		"Slack":                          {"xox" + "b-1234567890123-1234567890123-" + body36[:24], "[redacted:slack-token]"},
		"Stripe":                         {"sk_" + "live_" + body36[:24], "[redacted:stripe-key]"},
		"OpenAI":                         {"sk-" + "proj-" + body36 + "T3BlbkFJ" + body36, "[redacted:openai-key]"},
		"OpenAI, old":                    {"sk-" + body36[:20] + "T3BlbkFJ" + body36[:20], "[redacted:openai-key]"},
		"Anthropic":                      {"sk-" + "ant-api03-" + body36 + "_-" + body36 + "-AA", "[redacted:anthropic-key]"},
		"Google":                         {"key=AI" + "zaSy" + body36[:33] + "&x", "key=[redacted:google-api-key]&x"},
		"npm":                            {"_authToken=np" + "m_" + body36, "_authToken=[redacted:npm-token]"},
		"PyPI":                           {"pypi" + "-AgEIcHlwaS5vcmc" + body36 + body36, "[redacted:pypi-token]"},
		"JSON Web Token":                 {"see " + jwtText + ".", "see [redacted:jwt]."},
		"JSON Web Token behind a header": {"Authorization: Bearer " + jwtText, "Authorization: Bearer [redacted:bearer-token]"},
		"bearer":                         {`-H "authorization: bearer ` + body36 + `" x`, `-H "authorization: bearer [redacted:bearer-token]" x`},
		"basic":                          {"Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1lMQ==\r\n", "Authorization: Basic [redacted:authorization]\r\n"},
		"basic, in quoted JSON":          {`\"Authorization\":\"Basic YWxhZGRpbjpvcGVuc2VzYW1lMQ==\"`, `\"Authorization\":\"Basic [redacted:authorization]\"`},
		"key in a header":                {"x-api-key: " + body36 + "\n", "x-api-key: [redacted:api-key-header]\n"},
		"password in a URL":              {"https://user:p4ssw0rd-99@host/p", "https://user:[redacted:url-password]@host/p"},
		"password without a user":        {"redis://:p4ssw0rd-99@host:6379", "redis://:[redacted:url-password]@host:6379"},
		"webhook":                        {"https://hooks.slack.com/services/T00000000/B00000000/" + body36[:24], "https://[redacted:slack-webhook]"},
	}
	r := New()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := r.String(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAPrivateKeyIsReplacedLineByLine(t *testing.T) {
	const mark = "[redacted:private-key]"
	lines := strings.Count(pemBody, "\n")
	layouts := map[string]func(string) string{
		"in a file":           func(s string) string { return s },
		"in a quoted text":    func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) },
		"in quotes twice":     func(s string) string { return strings.ReplaceAll(s, "\n", `\\n`) },
		"in quotes, Windows":  func(s string) string { return strings.ReplaceAll(s, "\n", `\r\n`) },
		"in quotes, indented": func(s string) string { return strings.ReplaceAll(s, "\n", `\n\t`) },
		"in one line":         func(s string) string { return strings.ReplaceAll(s, "\n", " ") },
		"for Windows":         func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"in a removal":        func(s string) string { return strings.ReplaceAll(s, "\n", "\n-") },
		"in a listing":        func(s string) string { return strings.ReplaceAll(s, "\n", "\n    12→") },
		"in Go source":        func(s string) string { return strings.ReplaceAll(s, "\n", "\\n\" +\n\t\"") },
		"in records": func(s string) string {
			return strings.ReplaceAll(s, "\n", "\"}\n"+`{"type":"stdout","text":"`)
		},
	}
	r := New()
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "} {
				want := "-----" + mark + "\n" + strings.Repeat(mark+"\n", lines) + "-----END " + kind + "PRIVATE KEY-----\n"
				if got, want := r.String(layout(pem(kind, pemBody))), layout(want); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestAPrivateKeyThatIsCutOffIsReplaced(t *testing.T) {
	text := pem("RSA ", pemBody)
	text = text[:len(text)/2]
	got := New().String(text + "\nand so on, for a long while")
	if strings.Contains(got, "MzEfYyjiWA4R4") || !strings.HasSuffix(got, "and so on, for a long while") {
		t.Errorf("got %q", got)
	}
}

func TestWhatOnlyResemblesASecretStays(t *testing.T) {
	tests := map[string]string{
		"the header of a key, which programs look for": "if strings.Contains(s, \"-----BEGIN RSA PRIVATE KEY-----\") { return errors.New(\"the key is not encrypted\") }",
		"a public key":              strings.ReplaceAll(pem("", pemBody), "PRIVATE", "PUBLIC"),
		"a certificate":             "-----BEGIN CERTIFICATE-----\n" + pemBody + "-----END CERTIFICATE-----\n",
		"the example of AWS":        "AKI" + "AIOSFODNN7EXAMPLE / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"a dummy token":             "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"a dummy of words":          "xoxb-your-slack-bot-token-goes-here",
		"a variable in a header":    "Authorization: Bearer $GITHUB_TOKEN",
		"a gap in a header":         "Authorization: Bearer <your-token-goes-here-1>",
		"a word behind bearer":      "the bearer authentication2 scheme",
		"a variable in a URL":       "https://user:${PASSWORD1}@host",
		"a format in a URL":         "postgres://%s:%s@localhost:5432/db1",
		"a port in a URL":           "http://localhost:8080/a@b",
		"a module with its version": "https://proxy.example/github.com/a/b/@v/v1.2.3",
		"a digest":                  "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"a checksum of a module":    "h1:0Ajcgkwbf0n3xWqKhLVl6oWR0rVwCPUdXM2ICZ/7eqs=",
		"a commit":                  "commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"a name with sk- in it":     "task-0123456789012345678901234567890123 risk-abcdefghij",
		"an object in base64":       "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
		"the name of a secret":      "secret_access_key = os.Getenv(\"AWS_SECRET_ACCESS_KEY\")",
		"a replaced secret":         "postgres://u:[redacted:DB]@h Bearer [redacted:bearer-token] -----[redacted:private-key]",
	}
	r := New()
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if got := r.String(text); got != text {
				t.Errorf("%q became %q", text, got)
			}
		})
	}
}

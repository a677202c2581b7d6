//go:build unix

package probe

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// named picks one agent.
func named(t *testing.T, all []Agent, name string) Agent {
	t.Helper()
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no agent %s in %v", name, all)
	return Agent{}
}

func TestAllSixAgentsAreNamedInOrderWhetherTheyAreThereOrNot(t *testing.T) {
	m := newMachine(t)
	p := m.prober()
	p.Environ[0] = "PATH=" + m.bin
	m.script(m.bin, "goose", "echo ' 1.34.0'")
	var got []string
	for _, a := range p.FindAgents(t.Context()) {
		got = append(got, a.Name+" "+a.Version)
		if a.Path == "" && (!strings.Contains(a.Problem, "is not in PATH") || !strings.Contains(a.Fix, "npm install -g ")) {
			t.Errorf("%+v, want what is missing and how to get it", a)
		}
	}
	want := []string{"claude ", "codex ", "gemini ", "opencode ", "qwen ", "goose 1.34.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agents (-want +got)\n%s", diff)
	}
}

func TestAnAgentIsComparedWithTheVersionThatWasTried(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		version string
		old     bool
	}{
		"the same":           {answer: "2.1.329 (Claude Code)", version: "2.1.329"},
		"older, by number":   {answer: "2.1.197 (Claude Code)", version: "2.1.197", old: true},
		"newer":              {answer: "2.2.0", version: "2.2.0"},
		"no number":          {answer: "claude"},
		"after a banner":     {answer: "starting\nversion 1.0.0", version: "1.0.0", old: true},
		"with a pre-release": {answer: "2.1.329-beta.1", version: "2.1.329-beta.1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.env = []string{"ANTHROPIC_API_KEY=k"}
			m.script(m.bin, "claude", "[ \"$*\" = --version ] || exit 1; printf '"+strings.ReplaceAll(c.answer, "\n", "\\n")+"\\n'")
			a := named(t, m.prober().FindAgents(t.Context()), "claude")
			if a.Version != c.version || strings.Contains(a.Problem, "older than 2.1.329") != c.old || strings.Contains(a.Fix, "under Node 24") != c.old {
				t.Errorf("claude = %+v, want version %q, old %v", a, c.version, c.old)
			}
		})
	}
}

func TestAnAgentBehindAShimThatStandsForNothingIsAProblem(t *testing.T) {
	m := newMachine(t)
	shims := m.script(m.home, ".asdf/shims/codex", "printf 'No version is set for command codex\\nasdf install nodejs 24.1.0\\n' >&2; exit 126")
	a := named(t, m.prober(shims).FindAgents(t.Context()), "codex")
	if !strings.HasPrefix(a.Problem, "No version is set for command codex") || !strings.HasPrefix(a.Fix, "asdf install nodejs 24.1.0") {
		t.Errorf("codex = %+v, want the problem of the shim", a)
	}
}

func TestALoginIsFoundAndNeverShown(t *testing.T) {
	const secret = "sk-very-secret"
	const past, future = "1700000000000", "1900000000000"
	for name, c := range map[string]struct {
		agent string
		env   []string
		files tree
		want  Login
		how   string
	}{
		"a key":                        {agent: "claude", env: []string{"ANTHROPIC_API_KEY=" + secret}, want: LoginYes, how: "ANTHROPIC_API_KEY"},
		"an empty key is none":         {agent: "gemini", env: []string{"GEMINI_API_KEY="}, want: LoginNo, how: "neither a key nor a credential file"},
		"a subscription":               {agent: "claude", files: tree{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"` + secret + `","expiresAt":` + future + `}}`}, want: LoginYes, how: "~/.claude/.credentials.json"},
		"a subscription that renews":   {agent: "claude", files: tree{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"a","refreshToken":"` + secret + `","expiresAt":` + past + `}}`}, want: LoginYes, how: "~/.claude/.credentials.json"},
		"a subscription that is over":  {agent: "claude", files: tree{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"` + secret + `","expiresAt":` + past + `}}`}, want: LoginNo, how: "~/.claude/.credentials.json has expired"},
		"a file of another form":       {agent: "claude", files: tree{".claude/.credentials.json": `[` + secret}, want: LoginUnknown, how: "~/.claude/.credentials.json has an unknown form"},
		"codex with tokens":            {agent: "codex", files: tree{".codex/auth.json": `{"OPENAI_API_KEY":null,"tokens":{"access_token":"` + secret + `"}}`}, want: LoginYes, how: "~/.codex/auth.json"},
		"codex with a key in its file": {agent: "codex", files: tree{".codex/auth.json": `{"OPENAI_API_KEY":"` + secret + `"}`}, want: LoginYes, how: "~/.codex/auth.json"},
		"codex logged out":             {agent: "codex", files: tree{".codex/auth.json": `{}`}, want: LoginNo, how: "neither a key nor a credential file"},
		"codex with a keychain":        {agent: "codex", files: tree{".codex/config.toml": ""}, want: LoginUnknown, how: "~/.codex/config.toml says that it was set up; its login may be in the keychain"},
		"gemini with Google":           {agent: "gemini", files: tree{".gemini/oauth_creds.json": `{"access_token":"a","refresh_token":"` + secret + `","expiry_date":` + past + `}`}, want: LoginYes, how: "~/.gemini/oauth_creds.json"},
		"gemini with a file of keys":   {agent: "gemini", files: tree{".gemini/.env": "# x\nexport GEMINI_API_KEY=" + secret + "\n"}, want: LoginYes, how: "~/.gemini/.env"},
		"gemini with an empty key":     {agent: "gemini", files: tree{".gemini/.env": "GEMINI_API_KEY=\nX=1\n"}, want: LoginNo, how: "neither a key nor a credential file"},
		"opencode":                     {agent: "opencode", files: tree{".local/share/opencode/auth.json": `{"anthropic":{"type":"api","key":"` + secret + `"}}`}, want: LoginYes, how: "~/.local/share/opencode/auth.json"},
		"opencode without providers":   {agent: "opencode", files: tree{".local/share/opencode/auth.json": `{}`}, want: LoginNo, how: "neither a key nor a credential file"},
		"qwen that is over":            {agent: "qwen", files: tree{".qwen/oauth_creds.json": `{"access_token":"` + secret + `","expiry_date":` + past + `}`}, want: LoginNo, how: "~/.qwen/oauth_creds.json has expired"},
		"goose without a keyring":      {agent: "goose", files: tree{".config/goose/secrets.yaml": "OPENAI_API_KEY: " + secret}, want: LoginYes, how: "~/.config/goose/secrets.yaml"},
		"goose with a keyring":         {agent: "goose", files: tree{".config/goose/config.yaml": "GOOSE_PROVIDER: openai"}, want: LoginUnknown, how: "~/.config/goose/config.yaml says that it was set up; its login may be in the keychain"},
		"a directory for a file":       {agent: "codex", files: tree{".codex/auth.json/x": ""}, want: LoginUnknown, how: "~/.codex/auth.json: not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.env = c.env
			for file, text := range c.files {
				m.write(file, text)
			}
			m.script(m.bin, c.agent, "echo 99.0.0")
			all := m.prober().FindAgents(t.Context())
			a := named(t, all, c.agent)
			if a.Login != c.want || a.How != c.how {
				t.Errorf("login %s, %q; want %s, %q", a.Login, a.How, c.want, c.how)
			}
			if problem, fix := a.Advice(); (problem != "") != (c.want == LoginNo) || (fix != "") != (c.want == LoginNo) || a.Problem != "" {
				t.Errorf("problem %q, fix %q for login %s, %q of the program", problem, fix, c.want, a.Problem)
			}
			if text, err := json.Marshal(all); err != nil || strings.Contains(string(text), secret) {
				t.Errorf("the answer has the secret in it, or %v: %s", err, text)
			}
		})
	}
}

func TestALoginIsLookedForWhereTheVariablesSay(t *testing.T) {
	m := newMachine(t)
	m.write("other/auth.json", `{"OPENAI_API_KEY":"k"}`)
	m.env = []string{"CODEX_HOME=" + filepath.Join(m.home, "other")}
	if a := named(t, m.prober().FindAgents(t.Context()), "codex"); a.Login != LoginYes || a.How != "~/other/auth.json" {
		t.Errorf("codex = %+v, want the login in CODEX_HOME", a)
	}
}

func TestWithoutAClockNothingHasExpired(t *testing.T) {
	m := newMachine(t)
	m.write(".qwen/oauth_creds.json", `{"access_token":"a","expiry_date":1}`)
	p := m.prober()
	p.Now = p.Now.AddDate(-4000, 0, 0)
	before := named(t, p.FindAgents(t.Context()), "qwen")
	p.Now = (Prober{}).Now
	unknown := named(t, p.FindAgents(t.Context()), "qwen")
	p = m.prober()
	after := named(t, p.FindAgents(t.Context()), "qwen")
	if got, want := []Login{before.Login, unknown.Login, after.Login}, []Login{LoginYes, LoginYes, LoginNo}; !cmp.Equal(got, want) {
		t.Errorf("before, without and after = %v, want %v", got, want)
	}
}

func TestAKeychainIsOnlyGuessedWhereThereIsOne(t *testing.T) {
	m := newMachine(t)
	m.write(".claude.json", "{}")
	want := LoginNo
	if runtime.GOOS == "darwin" {
		want = LoginUnknown
	}
	if a := named(t, m.prober().FindAgents(t.Context()), "claude"); a.Login != want {
		t.Errorf("claude = %+v, want login %s", a, want)
	}
}

func TestVersionsAreOrderedByTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,4}(\.[0-9]{1,4}){1,3}(-[a-z]{1,3})?`)
		a, b, c := number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c")
		if isOlder(a, a) {
			t.Fatalf("%s is older than itself", a)
		}
		if isOlder(a, b) && isOlder(b, a) {
			t.Fatalf("%s and %s are older than each other", a, b)
		}
		if isOlder(a, b) && isOlder(b, c) && !isOlder(a, c) {
			t.Fatalf("%s < %s < %s, but not %s < %s", a, b, c, a, c)
		}
	})
	for _, pair := range [][2]string{{"1.9.0", "1.10.0"}, {"1.2", "1.2.1"}, {"0.9.9", "1.0.0"}} {
		if !isOlder(pair[0], pair[1]) || isOlder(pair[1], pair[0]) {
			t.Errorf("%s is not older than %s", pair[0], pair[1])
		}
	}
}

// TestTheAgentsOfThisMachineAnswer looks at what happens to be installed.
func TestTheAgentsOfThisMachineAnswer(t *testing.T) {
	p := Prober{Exec: proc.Plain{}, Environ: os.Environ(), Home: t.TempDir()}
	for _, a := range p.FindAgents(t.Context()) {
		t.Logf("%+v", a)
		if a.Path != "" && a.Version == "" && a.Problem == "" {
			t.Errorf("%+v, want a version or a problem", a)
		}
	}
}

func TestFreeSpaceIsThatOfTheNearestDirectory(t *testing.T) {
	dir := t.TempDir()
	here, err := Prober{}.FreeDisk(dir)
	if err != nil || here == 0 {
		t.Fatalf("free at %s = %d, %v", dir, here, err)
	}
	there, err := Prober{}.FreeDisk(filepath.Join(dir, "not", "yet"))
	if err != nil || there == 0 {
		t.Errorf("free where nothing is yet = %d, %v", there, err)
	}
	// Others write at the same time: the two may differ, but not by half.
	if there < here/2 || here < there/2 {
		t.Errorf("free = %d and %d, want about the same", here, there)
	}
	if _, err := (Prober{}).FreeDisk(filepath.Join(dir, "a\x00b")); err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("free at a path with NUL = %v, want an error", err)
	}
}

package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const claudeFile = ".claude/.credentials.json"

func TestACredentialIsFoundWhereTheMachineHasOne(t *testing.T) {
	for name, c := range map[string]struct {
		want   Want
		files  map[string]string // below the home
		found  string            // as it prints
		key    string
		scheme Scheme
	}{
		"a key of the vendor":               {Want{Profile: claude, Environ: []string{"ANTHROPIC_API_KEY=k1"}}, nil, "inject anthropic:6ab9f1eb from ANTHROPIC_API_KEY", "k1", XAPIKey},
		"a token that goes as Bearer":       {Want{Profile: claude, Environ: []string{"ANTHROPIC_AUTH_TOKEN=k1"}}, nil, "inject anthropic:6ab9f1eb from ANTHROPIC_AUTH_TOKEN", "k1", Bearer},
		"the key before the token":          {Want{Profile: claude, Environ: []string{"ANTHROPIC_AUTH_TOKEN=k2", "ANTHROPIC_API_KEY=k1"}}, nil, "inject anthropic:6ab9f1eb from ANTHROPIC_API_KEY", "k1", XAPIKey},
		"a key with a line end":             {Want{Profile: qwen, Environ: []string{"OPENAI_API_KEY=k1\n"}}, nil, "inject openai:6ab9f1eb from OPENAI_API_KEY", "k1", Bearer},
		"the second name of a key":          {Want{Profile: qwen, Environ: []string{"OPENAI_API_KEY=", "CODEX_API_KEY=k1"}}, nil, "inject openai:6ab9f1eb from CODEX_API_KEY", "k1", Bearer},
		"the first provider that has a key": {Want{Profile: opencode, Environ: []string{"GOOGLE_API_KEY=k1"}}, nil, "inject gemini:6ab9f1eb from GOOGLE_API_KEY", "k1", XGoogleKey},
		"the provider that is asked for": {
			Want{Profile: opencode, Provider: "openai", Environ: []string{"ANTHROPIC_API_KEY=k2", "OPENAI_API_KEY=k1"}},
			nil,
			"inject openai:6ab9f1eb from OPENAI_API_KEY", "k1", Bearer,
		},
		"a key before a login": {
			Want{Profile: claude, Environ: []string{"ANTHROPIC_API_KEY=k1"}},
			map[string]string{claudeFile: lentLogin},
			"inject anthropic:6ab9f1eb from ANTHROPIC_API_KEY", "k1", XAPIKey,
		},
		"a login, if it is asked for": {
			Want{Profile: claude, Auth: loop.AuthLend, Environ: []string{"ANTHROPIC_API_KEY=k1"}},
			map[string]string{claudeFile: lentLogin},
			"lend claude:03ecb14d from ~/" + claudeFile, "", Keyless,
		},
		"a login beside another vendor's gateway": {
			Want{Profile: claude, Auth: loop.AuthLend, Environ: []string{"OPENAI_BASE_URL=https://gw.example.com"}},
			map[string]string{claudeFile: lentLogin},
			"lend claude:03ecb14d from ~/" + claudeFile, "", Keyless,
		},
		"a login, if there is no key": {Want{Profile: claude}, map[string]string{claudeFile: lentLogin}, "lend claude:03ecb14d from ~/" + claudeFile, "", Keyless},
		"a server of somebody else with its own key": {
			Want{Profile: claude, BaseURL: "https://models.example.com", Environ: []string{"PAWL_API_KEY=k1", "ANTHROPIC_API_KEY=k2"}},
			nil,
			"inject anthropic:6ab9f1eb from PAWL_API_KEY", "k1", XAPIKey,
		},
		"a provider that pawl does not know": {
			Want{Profile: qwen, Provider: "open-router", BaseURL: "https://models.example.com/v1", Environ: []string{"OPEN_ROUTER_API_KEY=k1"}},
			nil,
			"inject openai:6ab9f1eb from OPEN_ROUTER_API_KEY", "k1", Bearer,
		},
		"a base_url of the vendor itself": {
			Want{Profile: opencode, BaseURL: "https://eu.api.openai.com/v1", Environ: []string{"OPENAI_API_KEY=k1", "ANTHROPIC_API_KEY=k2"}},
			nil,
			"inject openai:6ab9f1eb from OPENAI_API_KEY", "k1", Bearer,
		},
		"a server on this machine, without a key": {Want{Profile: qwen, BaseURL: "http://127.0.0.1:11434/v1"}, nil, "inject openai:keyless", "", Keyless},
		"a server on this machine, with a key":    {Want{Profile: qwen, BaseURL: "http://[::1]:4000", Environ: []string{"OPENAI_API_KEY=k1"}}, nil, "inject openai:6ab9f1eb from OPENAI_API_KEY", "k1", Bearer},
		"a gateway that comes with its key": {
			Want{Profile: claude, Environ: []string{"ANTHROPIC_BASE_URL=http://gw.example.com:4000", "ANTHROPIC_AUTH_TOKEN=k1", "PAWL_API_KEY=k2"}},
			nil,
			"inject anthropic:6ab9f1eb from ANTHROPIC_AUTH_TOKEN", "k1", Bearer,
		},
		"a base_url before the gateway, with its own key": {
			Want{Profile: claude, BaseURL: "https://models.example.com", Environ: []string{"ANTHROPIC_BASE_URL=http://gw.example.com", "ANTHROPIC_API_KEY=k2", "PAWL_API_KEY=k1"}},
			nil,
			"inject anthropic:6ab9f1eb from PAWL_API_KEY", "k1", XAPIKey,
		},
		"a base_url that is the gateway": {
			Want{Profile: claude, BaseURL: "https://GW.example.com/v1", Environ: []string{"ANTHROPIC_BASE_URL=https://gw.example.com", "ANTHROPIC_API_KEY=k1"}},
			nil,
			"inject anthropic:6ab9f1eb from ANTHROPIC_API_KEY", "k1", XAPIKey,
		},
		"a server on this machine that is not the gateway of the key": {
			Want{Profile: qwen, BaseURL: "http://127.0.0.1:11434/v1", Environ: []string{"OPENAI_BASE_URL=https://gw.example.com/v1", "OPENAI_API_KEY=k1"}},
			nil,
			"inject openai:keyless", "", Keyless,
		},
		"a gateway on this machine without a key": {Want{Profile: qwen, Environ: []string{"OPENAI_BASE_URL=http://127.0.0.1:11434/v1"}}, nil, "inject openai:keyless", "", Keyless},
		"a gateway that is the vendor":            {Want{Profile: claude, Environ: []string{"ANTHROPIC_BASE_URL=https://api.anthropic.com/"}}, map[string]string{claudeFile: lentLogin}, "lend claude:03ecb14d from ~/" + claudeFile, "", Keyless},
		"any program with a provider":             {Want{Profile: command, Provider: "gemini", Environ: []string{"GEMINI_API_KEY=k1", "OPENAI_API_KEY=k2"}}, nil, "inject gemini:6ab9f1eb from GEMINI_API_KEY", "k1", XGoogleKey},
		"any program with a provider that pawl does not know": {
			Want{Profile: command, Provider: "groq", BaseURL: "https://api.groq.com/openai/v1", Environ: []string{"GROQ_API_KEY=k1"}},
			nil,
			"inject openai:6ab9f1eb from GROQ_API_KEY", "k1", Bearer,
		},
		"a program on its own": {Want{Profile: command}, nil, "no credential", "", Keyless},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Home, c.want.Now = t.TempDir(), now
			for file, text := range c.files {
				writeFile(t, filepath.Join(c.want.Home, filepath.FromSlash(file)), text)
			}
			got, err := Find(c.want)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != c.found || got.Key() != c.key || got.Scheme != c.scheme {
				t.Errorf("Find = %v with %q as %q, want %s with %q as %q", got, got.Key(), got.Scheme, c.found, c.key, c.scheme)
			}
		})
	}
}

func TestACredentialThatIsNotThereIsAFaultWithItsFix(t *testing.T) {
	if got := keychainNote(); (got != "") != (runtime.GOOS == "darwin") {
		t.Errorf("on %s it is said%q", runtime.GOOS, got)
	}
	for name, c := range map[string]struct {
		want     Want
		files    map[string]string
		why, fix string
	}{
		"nothing at all": {
			Want{Profile: claude, SignIn: "run claude and type /login"},
			nil,
			"there is no key: none of ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN is set, and there is no login in ~/" + claudeFile + keychainNote(),
			"set ANTHROPIC_API_KEY, or run claude and type /login",
		},
		"no key": {Want{Profile: claude, Auth: loop.AuthInject}, map[string]string{claudeFile: lentLogin}, "there is no key: none of ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN is set", "set ANTHROPIC_API_KEY"},
		"the vendor's key for another host": {
			Want{Profile: claude, BaseURL: "https://models.example.com", Environ: []string{"ANTHROPIC_API_KEY=k1"}},
			map[string]string{claudeFile: lentLogin},
			"there is no key for models.example.com: PAWL_API_KEY is not set", "set PAWL_API_KEY for models.example.com",
		},
		"the vendor's key without encryption": {
			Want{Profile: claude, BaseURL: "http://api.anthropic.com", Environ: []string{"ANTHROPIC_API_KEY=k1"}},
			nil,
			"there is no key for api.anthropic.com: PAWL_API_KEY is not set", "set PAWL_API_KEY for api.anthropic.com",
		},
		"a login for another host": {
			Want{Profile: claude, Auth: loop.AuthLend, BaseURL: "https://models.example.com"},
			map[string]string{claudeFile: lentLogin},
			"a lent login is for its vendor only, and base_url names models.example.com", "leave base_url away, or write auth: inject",
		},
		"a login that ended": {
			Want{Profile: claude, Auth: loop.AuthLend},
			map[string]string{claudeFile: `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-x","expiresAt":1700000000000}}`},
			"~/" + claudeFile + " has expired", "sign in with claude",
		},
		"no models and no login":    {Want{Profile: agent.Profile{Name: "x", Login: claude.Login}}, nil, "there is no login in ~/" + claudeFile + keychainNote(), "sign in with x"},
		"a file without a login":    {Want{Profile: claude, Auth: loop.AuthLend}, map[string]string{claudeFile: `{}`}, "~/" + claudeFile + " holds no login", "sign in with claude"},
		"a login that is too large": {Want{Profile: claude, Auth: loop.AuthLend}, map[string]string{claudeFile: strings.Repeat(" ", mostLogin+1)}, "~/" + claudeFile + ": it is larger than 65536 bytes", "correct that file, or sign in with claude"},
		"a driver without a login":  {Want{Profile: qwen, Auth: loop.AuthLend}, nil, "it has no login that can be lent", "write auth: inject, and set its key"},
		"a driver without models":   {Want{Profile: agent.Profile{Name: "x"}, Auth: loop.AuthInject}, nil, "its models cannot be reached with a key", "write auth: lend, or leave auth, provider and base_url away"},
		"a program of no provider":  {Want{Profile: command, Auth: loop.AuthInject}, nil, "pawl does not know in whose shape of requests its model is asked", "write provider: anthropic, openai or gemini"},
		"a gateway for another key": {
			Want{Profile: claude, Environ: []string{"ANTHROPIC_BASE_URL=https://gw.example.com", "PAWL_API_KEY=k1"}},
			map[string]string{claudeFile: lentLogin},
			"there is no key for gw.example.com, which ANTHROPIC_BASE_URL names: none of ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN is set",
			"set ANTHROPIC_API_KEY for gw.example.com, or unset ANTHROPIC_BASE_URL",
		},
		"a gateway and a lent login": {
			Want{Profile: claude, Auth: loop.AuthLend, Environ: []string{"ANTHROPIC_BASE_URL=https://gw.example.com", "ANTHROPIC_API_KEY=k1"}},
			map[string]string{claudeFile: lentLogin},
			"a lent login is for its vendor only, and ANTHROPIC_BASE_URL names gw.example.com",
			"unset ANTHROPIC_BASE_URL, or set the key for gw.example.com as ANTHROPIC_API_KEY beside it",
		},
		"the key of a gateway for the vendor": {
			Want{Profile: claude, BaseURL: "https://api.anthropic.com", Environ: []string{"ANTHROPIC_BASE_URL=https://gw.example.com", "ANTHROPIC_API_KEY=k1"}},
			nil,
			"there is no key for api.anthropic.com: PAWL_API_KEY is not set, and the vendor's own key is for the host in ANTHROPIC_BASE_URL",
			"set PAWL_API_KEY for api.anthropic.com, or unset ANTHROPIC_BASE_URL",
		},
		"a gateway that is not an address": {Want{Profile: qwen, Environ: []string{"OPENAI_API_BASE=gw:4000", "OPENAI_API_KEY=k1"}}, nil, "it must begin with http:// or https://", "correct or unset OPENAI_API_BASE"},
		"a provider without address":       {Want{Profile: qwen, Provider: "groq"}, nil, "pawl does not know where the provider groq is", "write base_url: the address of its API, or one of the providers openai"},
		"the providers that there are":     {Want{Profile: opencode, Provider: "groq"}, nil, "pawl does not know where the provider groq is", "write base_url: the address of its API, or one of the providers anthropic, openai, gemini"},
		"a token of two words":             {Want{Profile: claude, Auth: loop.AuthLend, Environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=a b"}}, nil, "CLAUDE_CODE_OAUTH_TOKEN is not a valid token: it contains a blank, a line break or a character beyond ASCII", "set CLAUDE_CODE_OAUTH_TOKEN to the token alone"},
		"a lent login beside a gateway that is not an address": {
			Want{Profile: claude, Auth: loop.AuthLend, Environ: []string{"ANTHROPIC_BASE_URL=gw:4000"}},
			map[string]string{claudeFile: lentLogin},
			"it must begin with http:// or https://", "correct or unset ANTHROPIC_BASE_URL",
		},
		"a provider of another shape": {Want{Profile: qwen, Provider: "gemini"}, nil, "it cannot reach models of the provider gemini", "write one of the providers openai"},
		"a key of two lines":          {Want{Profile: qwen, Environ: []string{"OPENAI_API_KEY=a\nb"}}, nil, "OPENAI_API_KEY is not a valid key: it contains a blank, a line break or a character beyond ASCII", "set OPENAI_API_KEY to the key alone"},
		"no such way":                 {Want{Profile: qwen, Auth: "steal"}, nil, `"steal" is not one of its values`, "write inject or lend"},
		"a base_url with a password":  {Want{Profile: qwen, BaseURL: "https://me:s3cret@example.com"}, nil, "it holds a name or a password, which would be written into every record; the key belongs into the variable PAWL_API_KEY", "write the address of the model's API, such as https://api.example.com/v1 or http://127.0.0.1:11434/v1"},
		"a base_url of another kind":  {Want{Profile: qwen, BaseURL: "file:///etc"}, nil, "it must begin with http:// or https://", "write the address of the model's API, such as https://api.example.com/v1 or http://127.0.0.1:11434/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Home, c.want.Now = t.TempDir(), now
			for file, text := range c.files {
				writeFile(t, filepath.Join(c.want.Home, filepath.FromSlash(file)), text)
			}
			got, err := Find(c.want)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok {
				t.Fatalf("Find = %v, %v, want a fault", got, err)
			}
			if f.Why != c.why || f.Fix != c.fix || f.Exit == loop.ExitOK {
				t.Errorf("the fault is %q, to be mended by %q\nwant %q, by %q", f.Why, f.Fix, c.why, c.fix)
			}
			if name, ok := strings.CutPrefix(f.Fix, "correct or unset "); ok && (f.What != name || f.Exit != loop.ExitMissing) {
				t.Errorf("the fault of %s is about %s and ends with status %d", name, f.What, f.Exit)
			}
		})
	}
}

// A key that could be asked of a server that it is not meant for is lost.
func TestAttack078AKeyGoesToItsVendorOrToTheGatewayThatCameWithIt(t *testing.T) {
	type set map[string]bool
	keys := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "PAWL_API_KEY"}
	gateways := map[string]string{"ANTHROPIC_BASE_URL": "https://a.gw.example.com", "OPENAI_BASE_URL": "https://o.gw.example.com/v1", "GOOGLE_GEMINI_BASE_URL": "https://g.gw.example.com"}
	bases := []string{"", "https://api.anthropic.com", "https://models.example.com", "https://o.gw.example.com", "http://127.0.0.1:4000"}
	rapid.Check(t, func(t *rapid.T) {
		var environ []string
		on := set{}
		for _, name := range keys {
			if rapid.Bool().Draw(t, name) {
				environ, on[name] = append(environ, name+"="+name), true
			}
		}
		for name, at := range gateways {
			if rapid.Bool().Draw(t, name) {
				environ, on[name] = append(environ, name+"="+at), true
			}
		}
		w := Want{
			Profile: rapid.SampledFrom([]agent.Profile{claude, opencode, qwen, command}).Draw(t, "profile"), Environ: environ, Now: now,
			BaseURL: rapid.SampledFrom(bases).Draw(t, "base_url"), Provider: rapid.SampledFrom([]string{"", "anthropic", "openai", "gemini"}).Draw(t, "provider"),
		}
		c, err := Find(w)
		if err != nil || c.Key() == "" {
			return
		}
		host := c.Base.Hostname()
		may := map[string]set{
			"ANTHROPIC": {"api.anthropic.com": !on["ANTHROPIC_BASE_URL"], "a.gw.example.com": on["ANTHROPIC_BASE_URL"], "127.0.0.1": !on["ANTHROPIC_BASE_URL"]},
			"OPENAI":    {"api.openai.com": !on["OPENAI_BASE_URL"], "o.gw.example.com": on["OPENAI_BASE_URL"], "127.0.0.1": !on["OPENAI_BASE_URL"]},
			"GEMINI":    {"generativelanguage.googleapis.com": !on["GOOGLE_GEMINI_BASE_URL"], "g.gw.example.com": on["GOOGLE_GEMINI_BASE_URL"], "127.0.0.1": !on["GOOGLE_GEMINI_BASE_URL"]},
			"PAWL":      {},
		}
		whose, _, _ := strings.Cut(c.Key(), "_")
		if whose == "PAWL" && strings.HasPrefix(w.BaseURL, "http") && strings.Contains(w.BaseURL, host) {
			return // It was set for base_url.
		}
		if !may[whose][host] {
			t.Errorf("%s goes to %s with %v and base_url %q", c.Key(), host, environ, w.BaseURL)
		}
	})
}

func TestALoginIsLookedForWhereVariablesPutIt(t *testing.T) {
	for variable, file := range map[string]string{
		"CLAUDE_CONFIG_DIR": ".claude/.credentials.json", "CODEX_HOME": ".codex/auth.json",
		"XDG_DATA_HOME": ".local/share/opencode/auth.json", "XDG_CONFIG_HOME": ".config/tool/auth.json",
	} {
		t.Run(variable, func(t *testing.T) {
			dir := t.TempDir()
			below := strings.TrimPrefix(file, map[string]string{
				"CLAUDE_CONFIG_DIR": ".claude/", "CODEX_HOME": ".codex/", "XDG_DATA_HOME": ".local/share/", "XDG_CONFIG_HOME": ".config/",
			}[variable])
			writeFile(t, filepath.Join(dir, below), `{"access_token":"0123456789abcdef"}`)
			p := agent.Profile{Name: "x", Login: agent.Login{Files: []string{file}}}
			c, err := Find(Want{Profile: p, Environ: []string{variable + "=" + dir}, Home: t.TempDir(), Now: now})
			if err != nil {
				t.Fatal(err)
			}
			if c.Name != file || !strings.HasSuffix(c.File, filepath.FromSlash(below)) || !strings.HasPrefix(c.From, dir) {
				t.Errorf("Find = %+v at %s for %s", c, c.File, c.Name)
			}
		})
	}
}

func TestALoginBehindALinkIsLentFromWhereItLies(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	real := filepath.Join(t.TempDir(), "shared.json")
	if err := errors.Join(os.Rename(b.loginFile(), real), os.Symlink(real, b.loginFile())); err != nil {
		t.Fatal(err)
	}
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	if r, err := loan.Return(t.Context()); err != nil || r.Back != Renewed {
		t.Fatalf("Return = %+v, %v", r, err)
	}
	if info, err := os.Lstat(b.loginFile()); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the user's link is %v, %v", info, err)
	}
	if got := readFile(t, real); got != renewedLogin {
		t.Errorf("the login is %s", got)
	}
}

func TestAttack077AKeyIsShownByNoWayOfPrinting(t *testing.T) {
	const key = "sk-ant-api03-never-shown"
	c, err := Find(Want{Profile: claude, Environ: []string{"ANTHROPIC_API_KEY=" + key}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("found", slog.Any("credential", c), slog.Any("pointer", &c))
	text, err := json.Marshal(map[string]any{"a": c, "b": &c})
	if err != nil {
		t.Fatal(err)
	}
	hidden := struct{ c Credential }{c}
	shown := &log
	shown.Write(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(shown, verb+verb+verb, c, &c, hidden)
	}
	for _, form := range []string{key, fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), strings.Trim(fmt.Sprintf("%d", []byte(key)), "[]")} {
		if strings.Contains(shown.String(), form) {
			t.Errorf("the key is shown in %s", shown)
		}
	}
	if s := c.Secrets(); len(s) != 1 || s[0].Value != key || s[0].Name != "ANTHROPIC_API_KEY" {
		t.Errorf("Secrets = %d", len(s))
	}
}

// A login is one account wherever its file is, also when one of its copies was renewed.
func TestTheAccountOfALoginIsItsOwners(t *testing.T) {
	account := func(profile agent.Profile, file, text string) string {
		t.Helper()
		home := t.TempDir()
		path := filepath.Join(home, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Find(Want{Profile: profile, Auth: loop.AuthLend, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		return c.Account
	}
	claudes := func(token, organization string) string {
		return account(claude, claudeFile, `{"claudeAiOauth":{"accessToken":"`+token+`-access","refreshToken":"`+token+`-refresh","expiresAt":4000000000000},"organizationUuid":"`+organization+`"}`)
	}
	codexes := func(owner string) string {
		return account(agent.Profile{Name: "codex", Login: agent.Login{Files: []string{".codex/auth.json"}}}, ".codex/auth.json", `{"tokens":{"id_token":"`+readableToken(`{"sub":"`+owner+`","iat":1}`)+`","access_token":"access-`+owner+`","refresh_token":"refresh-`+owner+`"}}`)
	}
	first := claudes("first", "1111-2222")
	switch {
	case first != claudes("second", "1111-2222"):
		t.Errorf("a renewed login is another account than %s", first)
	case first == claudes("first", "9999-8888"), codexes("ada") == codexes("bob"):
		t.Errorf("logins of two owners are one account: %s, %s", first, codexes("ada"))
	case !strings.HasPrefix(first, "claude:") || strings.Contains(first, "1111"):
		t.Errorf("account = %s", first)
	}
	if got := account(claude, claudeFile, strings.Replace(lentLogin, "organizationUuid", "other", 1)); got != "claude:login" {
		t.Errorf("the account of a login that does not name its owner = %s", got)
	}
	if got := account(claude, claudeFile, "a token in a form of its own"); got != "claude:login" {
		t.Errorf("the account of a login in a form that is not known = %s", got)
	}
}

// readableToken is a token with claims that anybody can read.
func readableToken(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

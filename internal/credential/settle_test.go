package credential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestARenewedLoginComesBack(t *testing.T) {
	b := newBench(t, lentLogin)
	if err := os.Chmod(b.file(), 0o640); err != nil {
		t.Fatal(err)
	}
	loan := b.lend(t)
	write(t, b.copied(), renewedLogin)
	if r, err := loan.Return(t.Context()); err != nil || r != (Returned{Back: Renewed}) {
		t.Fatalf("Return = %+v, %v", r, err)
	}
	if got := read(t, b.file()); got != renewedLogin {
		t.Errorf("the user's file is %s", got)
	}
	if info, err := os.Stat(b.file()); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	nothingLeft(t, b)
	if r, err := loan.Return(t.Context()); err != nil || r.Back != Unchanged {
		t.Errorf("a second Return = %+v, %v", r, err)
	}
}

// The forms are those that the programs write when they renew a login.
func TestWhatProgramsMakeOfALoginIsARenewedOne(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"claude finds out the subscription": {
			`{"claudeAiOauth":{"accessToken":"a1","refreshToken":"r1","expiresAt":1795267200000,"scopes":["user:inference"],"subscriptionType":null,"rateLimitTier":null}}`,
			`{"claudeAiOauth":{"accessToken":"a2","refreshToken":"r2","expiresAt":1795296000000,"scopes":["user:inference","user:profile"],` +
				`"subscriptionType":"max","subscriptionTypeSource":"profile","subscriptionTypeVerifiedAt":1795267200000,"rateLimitTier":"default_claude_max_5x","clientId":"9d1c250a-e61b-44d9-88ed-5944d1962f5e"}}`,
		},
		"claude forgets when the refresh token ends": {
			`{"claudeAiOauth":{"accessToken":"a1","refreshToken":"r1","expiresAt":1795267200000,"refreshTokenExpiresAt":1795267200000,"scopes":[]}}`,
			`{"claudeAiOauth":{"accessToken":"a2","refreshToken":"r2","expiresAt":1795296000000,"scopes":[]}}`,
		},
		"codex": {
			`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"h.c.s","access_token":"a1","refresh_token":"r1","account_id":"acc"},"last_refresh":"2026-11-20T10:00:00.123456Z"}`,
			`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"h.c.t","access_token":"a2","refresh_token":"r2","account_id":"acc"},"last_refresh":"2026-11-20T12:00:00.123456Z"}`,
		},
		"gemini": {
			`{"access_token":"a1","refresh_token":"r1","scope":"https://www.googleapis.com/auth/cloud-platform openid","token_type":"Bearer","id_token":"h.c.s","expiry_date":1795267200000}`,
			`{"access_token":"a2","expiry_date":1795270800000,"scope":"openid https://www.googleapis.com/auth/cloud-platform","token_type":"Bearer","id_token":"h.c.t","refresh_token":"r1","refresh_token_expires_in":604799}`,
		},
		"opencode": {
			`{"anthropic":{"type":"oauth","refresh":"r1","access":"a1","expires":1795267200000},"openrouter":{"type":"api","key":"k1"}}`,
			`{"anthropic":{"type":"oauth","refresh":"r2","access":"a2","expires":1795296000000},"openrouter":{"type":"api","key":"k1"}}`,
		},
		"qwen": {
			`{"access_token":"a1","token_type":"Bearer","refresh_token":"r1","resource_url":"portal.qwen.ai","expiry_date":1795267200000}`,
			`{"access_token":"a2","token_type":"Bearer","refresh_token":"r2","resource_url":"portal.qwen.ai","expiry_date":1795288800000}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := renewed([]byte(c.before), []byte(c.after)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALoginThatWasNotRenewedChangesNothing(t *testing.T) {
	b := newBench(t, lentLogin)
	before, err := os.Stat(b.file())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.lend(t).Return(t.Context()); err != nil || r != (Returned{Back: Unchanged}) {
		t.Fatalf("Return = %+v, %v", r, err)
	}
	if after, err := os.Stat(b.file()); err != nil || !os.SameFile(before, after) {
		t.Errorf("the user's file is another one: %v", err)
	}
	nothingLeft(t, b)
}

func TestWhatIsNoRenewedLoginIsNotGivenBack(t *testing.T) {
	change := func(old, text string) func(*testing.T, bench) {
		if !strings.Contains(renewedLogin, old) {
			t.Fatalf("%s is in no login", old)
		}
		return leave(strings.Replace(renewedLogin, old, text, 1))
	}
	for name, c := range map[string]struct {
		do    func(*testing.T, bench)
		why   string
		aside bool // it may be the only login that still holds
	}{
		"garbage":                     {leave("\x00\x01garbage"), "it is not JSON", false},
		"nothing":                     {leave(""), "it is not JSON", false},
		"text of no encoding":         {leave("{\"a\":\"\xff\"}"), "it is not UTF-8", false},
		"a list":                      {leave("[" + renewedLogin + "]"), "it is not a JSON object", false},
		"two logins":                  {leave(renewedLogin + lentLogin), "something follows its JSON", false},
		"a bottomless list":           {leave(strings.Repeat("[", 1000)), "it is nested too deep", false},
		"64 KiB and more":             {leave(renewedLogin + strings.Repeat(" ", mostLogin)), "it is larger than 65536 bytes", false},
		"a member that was not":       {change(`{"claude`, `{"apiKeyHelper":"curl evil","claude`), `its member "apiKeyHelper" is new`, true},
		"a nested one that was not":   {change(`"expiresAt"`, `"hook":"x","expiresAt"`), `its member "hook" is new`, true},
		"a member that is gone":       {change(`,"organizationUuid":"11111111-2222"`, ``), `its member "organizationUuid" is gone`, true},
		"another type":                {change(`"sk-ant-oat01-second-access"`, `{"$ref":"x"}`), `its member "accessToken" has another type`, true},
		"a name that stands twice":    {change(`"accessToken"`, `"accessToken":"x","accessToken"`), `two members have the name "accessToken"`, false},
		"another place to renew it":   {change(`"expiresAt"`, `"tokenUrl":"https://evil.example","expiresAt"`), `its member "tokenUrl" is new`, true},
		"a time of words":             {change(`"expiresAt"`, `"refreshTokenExpiresAt":"never","expiresAt"`), `its member "refreshTokenExpiresAt" is new`, true},
		"a subscription of an object": {change(`"max"`, `{"command":"x"}`), `its member "subscriptionType" has another type`, true},
		"no refresh token":            {change(`"refreshToken":"sk-ant-ort01-second-refresh",`, ``), `its member "refreshToken" is gone`, true},
		"another organization":        {change(`11111111`, `66666666`), `its member "organizationUuid" is different`, true},
		"an emptied token":            {change(`sk-ant-oat01-second-access`, ``), `its member "accessToken" is empty now`, true},
		"a token of two lines":        {change(`second-access`, `second\naccess`), `its member "accessToken" holds what no token does`, true},
		"a time that is none":         {change(`1795296000000`, `-1`), `its member "expiresAt" is no time`, true},
		"a time beyond numbers":       {change(`1795296000000`, `1e999`), `its member "expiresAt" is no time`, true},
		"an earlier end":              {change(`1795296000000`, `1795260000000`), `before the one that was lent`, true},
		"an end in the far future":    {change(`1795296000000`, `4000000000000`), `it claims to end at 2096-10-02`, true},
		"scopes of objects":           {change(`"user:profile"`, `{}`), `its member "scopes" is no list of words`, true},
		"a link to the user's file":   {func(t *testing.T, b bench) { relink(t, b, b.file()) }, "cannot be read", false},
		"a link to another file":      {func(t *testing.T, b bench) { relink(t, b, "/etc/hostname") }, "cannot be read", false},
		"a folder":                    {func(t *testing.T, b bench) { remove(t, b.copied()); write(t, filepath.Join(b.copied(), "x"), "x") }, "cannot be read", false},
		"no file":                     {func(t *testing.T, b bench) { remove(t, b.copied()) }, "cannot be read", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lentLogin)
			loan := b.lend(t)
			c.do(t, b)
			r, err := loan.Return(t.Context())
			if err != nil || r.Back != Refused || !strings.Contains(r.Why, c.why) {
				t.Errorf("Return = %+v, %v, want that it is refused because %s", r, err, c.why)
			}
			if got := read(t, b.file()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
			if (r.Aside != "") != c.aside {
				t.Errorf("%q was put aside", r.Aside)
			}
			b.inside = home(t.TempDir())
			b.lend(t)
		})
	}
}

// leave is a program that ends with this text in place of its login.
func leave(text string) func(*testing.T, bench) {
	return func(t *testing.T, b bench) {
		t.Helper()
		write(t, b.copied(), text)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func relink(t *testing.T, b bench, target string) {
	t.Helper()
	remove(t, b.copied())
	if err := os.Symlink(target, b.copied()); err != nil {
		t.Fatal(err)
	}
}

func TestOfTwoRenewedLoginsNeitherIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs string
		back         Back
		file, aside  string
	}{
		"the program's is later":                      {newestLogin, renewedLogin, Renewed, newestLogin, renewedLogin},
		"the user's is later":                         {renewedLogin, newestLogin, Kept, newestLogin, renewedLogin},
		"they end together":                           {strings.Replace(renewedLogin, "second", "2nd", 2), renewedLogin, Kept, renewedLogin, strings.Replace(renewedLogin, "second", "2nd", 2)},
		"the user signed in to another account":       {newestLogin, otherLogin, Kept, otherLogin, newestLogin},
		"the user's has a form that nobody knows":     {renewedLogin, "encrypted", Kept, "encrypted", renewedLogin},
		"both are the same":                           {renewedLogin, renewedLogin, Unchanged, renewedLogin, ""},
		"only the user's was renewed":                 {lentLogin, renewedLogin, Unchanged, renewedLogin, ""},
		"the program's is poisoned, the user's is ok": {"garbage", renewedLogin, Refused, renewedLogin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lentLogin)
			loan := b.lend(t)
			write(t, b.copied(), c.ours)
			write(t, b.file(), c.theirs)
			r, err := loan.Return(t.Context())
			if err != nil || r.Back != c.back {
				t.Fatalf("Return = %+v, %v, want %s", r, err, c.back)
			}
			if got := read(t, b.file()); got != c.file {
				t.Errorf("the user's file is %s", got)
			}
			aside := ""
			if r.Aside != "" {
				aside = read(t, r.Aside)
				if info, err := os.Stat(r.Aside); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("what was put aside is %v, %v", info.Mode(), err)
				}
			}
			if aside != c.aside {
				t.Errorf("put aside is %q, want %q", aside, c.aside)
			}
		})
	}
}

func TestALoginThatTheUserRemovedStaysRemoved(t *testing.T) {
	b := newBench(t, lentLogin)
	loan := b.lend(t)
	write(t, b.copied(), renewedLogin)
	remove(t, b.file())
	r, err := loan.Return(t.Context())
	if err != nil || r.Back != Kept || r.Aside != "" {
		t.Errorf("Return = %+v, %v", r, err)
	}
	if _, err := os.Lstat(b.file()); err == nil {
		t.Error("the file is there again")
	}
}

func TestAUsersFileThatBecameALinkIsNotWrittenThrough(t *testing.T) {
	b := newBench(t, lentLogin)
	loan := b.lend(t)
	write(t, b.copied(), renewedLogin)
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, lentLogin)
	remove(t, b.file())
	if err := os.Symlink(target, b.file()); err != nil {
		t.Fatal(err)
	}
	r, err := loan.Return(t.Context())
	if err != nil || r.Back != Kept || read(t, r.Aside) != renewedLogin {
		t.Errorf("Return = %+v, %v", r, err)
	}
	if got := read(t, target); got != lentLogin {
		t.Errorf("the target is %s", got)
	}
}

func TestWhatIsPutAsideDoesNotGrow(t *testing.T) {
	b := newBench(t, lentLogin)
	var last Returned
	for i := range 3 * mostAside {
		b.inside = home(t.TempDir())
		loan := b.lend(t)
		write(t, b.copied(), strings.Replace(renewedLogin, "{", `{"n`+strings.Repeat("x", i)+`":1,`, 1))
		var err error
		if last, err = loan.Return(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := filepath.Glob(filepath.Join(b.lender.Dir, "*.aside-*"))
	if err != nil || len(all) > mostAside {
		t.Errorf("%d logins lie aside, %v", len(all), err)
	}
	if _, err := os.Stat(last.Aside); err != nil {
		t.Errorf("the last one is gone: %v", err)
	}
}

// TestALoginOfTheSameFormIsOneWhateverItsTokens holds for all tokens and times.
func TestALoginOfTheSameFormIsOneWhateverItsTokens(t *testing.T) {
	token := rapid.StringMatching(`[A-Za-z0-9._~+/=-]{1,200}`)
	rapid.Check(t, func(t *rapid.T) {
		old, fresh := form{}, form{}
		for range rapid.IntRange(1, 5).Draw(t, "providers") {
			name := rapid.StringMatching(`[a-z]{1,10}`).Draw(t, "provider")
			old[name] = form{"type": "oauth", "access": token.Draw(t, "access"), "refresh": token.Draw(t, "refresh")}
			fresh[name] = form{"type": "oauth", "access": token.Draw(t, "access"), "refresh": token.Draw(t, "refresh")}
		}
		if err := sameForm(old, fresh); err != nil {
			t.Fatalf("%v does not become %v: %v", old, fresh, err)
		}
		name := rapid.SampledFrom(sorted(fresh)).Draw(t, "poisoned")
		extra := rapid.StringMatching(`[a-zA-Z_]{1,12}`).Filter(func(s string) bool {
			_, there := old[name].(form)[s]
			return !there
		}).Draw(t, "member")
		fresh[name].(form)[extra] = token.Draw(t, "value")
		if sameForm(old, fresh) == nil {
			t.Fatalf("%v becomes %v", old, fresh)
		}
	})
}

func FuzzRenewed(f *testing.F) {
	for _, seed := range []string{
		lentLogin, renewedLogin, newestLogin, otherLogin, "", "{}", "[]", `{"a":`, "\x00", `{"claudeAiOauth":null,"organizationUuid":1}`,
		strings.Replace(renewedLogin, "{", `{"a":1,`, 1), strings.Repeat(`{"a":`, 40), `{"claudeAiOauth":{"accessToken":"a","accessToken":"b"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, after []byte) {
		if renewed([]byte(lentLogin), after) != nil {
			return
		}
		old, err := parse([]byte(lentLogin))
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := parse(after)
		if err != nil {
			t.Fatalf("%q is a renewed login and none: %v", after, err)
		}
		if err := sameForm(old, fresh); err != nil {
			t.Fatalf("%q: %v", after, err)
		}
		if !renews(fresh) || fresh["organizationUuid"] != old["organizationUuid"] || ends(fresh).Before(ends(old)) || len(after) > mostLogin {
			t.Fatalf("%q was taken", after)
		}
		if back, err := whole([]byte(lentLogin), after); err != nil || string(back) != string(after) {
			t.Fatalf("%q becomes %q, %v", after, back, err)
		}
	})
}

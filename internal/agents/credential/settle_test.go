package credential

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARenewedLoginComesBack(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	if err := os.Chmod(b.loginFile(), 0o640); err != nil {
		t.Fatal(err)
	}
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	if r, err := loan.Return(t.Context()); err != nil || r.Back != Renewed || b.keptText(t, r.Aside) != lentLogin {
		t.Fatalf("Return = %+v, %v, want that it is renewed and the old one kept", r, err)
	}
	if got := readFile(t, b.loginFile()); got != renewedLogin {
		t.Errorf("the user's file is %s", got)
	}
	if info, err := os.Stat(b.loginFile()); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	wantNothingLeft(t, b)
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
		"a token of another form than it has": {
			`{"access_token":"a.` + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"us"}`)) + `!.c","refresh_token":"r1"}`, `{"access_token":"a2","refresh_token":"r2"}`,
		},
		"qwen": {
			`{"access_token":"a1","token_type":"Bearer","refresh_token":"r1","resource_url":"portal.qwen.ai","expiry_date":1795267200000}`,
			`{"access_token":"a2","token_type":"Bearer","refresh_token":"r2","resource_url":"portal.qwen.ai","expiry_date":1795288800000}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkRenewed([]byte(c.before), []byte(c.after)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALoginThatWasNotRenewedChangesNothing(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	before, err := os.Stat(b.loginFile())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.lend(t).Return(t.Context()); err != nil || r.Back != Unchanged || r.Why != "" || r.Aside != "" {
		t.Fatalf("Return = %+v, %v", r, err)
	}
	if after, err := os.Stat(b.loginFile()); err != nil || !os.SameFile(before, after) {
		t.Errorf("the user's file is another one: %v", err)
	}
	wantNothingLeft(t, b)
}

func TestWhatIsNoRenewedLoginIsNotGivenBack(t *testing.T) {
	change := func(old, text string) func(*testing.T, loanTest) {
		if !strings.Contains(renewedLogin, old) {
			t.Fatalf("%s is in no login", old)
		}
		return leaveLogin(strings.Replace(renewedLogin, old, text, 1))
	}
	for name, c := range map[string]struct {
		do    func(*testing.T, loanTest)
		why   string
		aside bool // it is kept, because it may be the only valid login
	}{
		"garbage":                     {leaveLogin("\x00\x01garbage"), "it is not JSON", false},
		"nothing":                     {leaveLogin(""), "it is not JSON", false},
		"text of no encoding":         {leaveLogin("{\"a\":\"\xff\"}"), "it is not UTF-8", false},
		"a list":                      {leaveLogin("[" + renewedLogin + "]"), "it is not a JSON object", false},
		"two logins":                  {leaveLogin(renewedLogin + lentLogin), "something follows its JSON", false},
		"a bottomless list":           {leaveLogin(strings.Repeat("[", 1000)), "it is nested too deep", false},
		"64 KiB and more":             {leaveLogin(renewedLogin + strings.Repeat(" ", mostLogin)), "it is larger than 65536 bytes", false},
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
		"an invalid time":             {change(`1795296000000`, `-1`), `its member "expiresAt" is not a time`, true},
		"a time beyond numbers":       {change(`1795296000000`, `1e999`), `its member "expiresAt" is not a time`, true},
		"an earlier end":              {change(`1795296000000`, `1795260000000`), `before the one that was lent`, true},
		"an end in the far future":    {change(`1795296000000`, `4000000000000`), `it claims to end at 2096-10-02`, true},
		"scopes of objects":           {change(`"user:profile"`, `{}`), `its member "scopes" is not a list of words`, true},
		"a link to the user's file":   {func(t *testing.T, b loanTest) { linkLogin(t, b, b.loginFile()) }, "cannot be read", false},
		"a link to another file":      {func(t *testing.T, b loanTest) { linkLogin(t, b, "/etc/hostname") }, "cannot be read", false},
		"a folder": {func(t *testing.T, b loanTest) {
			removeFile(t, b.copiedFile())
			writeFile(t, filepath.Join(b.copiedFile(), "x"), "x")
		}, "cannot be read", false},
		"no file": {func(t *testing.T, b loanTest) { removeFile(t, b.copiedFile()) }, "cannot be read", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			loan := b.lend(t)
			c.do(t, b)
			r, err := loan.Return(t.Context())
			if err != nil || r.Back != Refused || !strings.Contains(r.Why, c.why) {
				t.Errorf("Return = %+v, %v, want that it is refused because %s", r, err, c.why)
			}
			if got := readFile(t, b.loginFile()); got != lentLogin {
				t.Errorf("the user's file is %s", got)
			}
			if (r.Aside != "") != c.aside {
				t.Errorf("%q was put aside", r.Aside)
			}
			b.inside = diskHome(t.TempDir())
			b.lend(t)
		})
	}
}

// leaveLogin returns a program that leaves this text in place of its login.
func leaveLogin(text string) func(*testing.T, loanTest) {
	return func(t *testing.T, b loanTest) {
		t.Helper()
		writeFile(t, b.copiedFile(), text)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func linkLogin(t *testing.T, b loanTest, target string) {
	t.Helper()
	removeFile(t, b.copiedFile())
	if err := os.Symlink(target, b.copiedFile()); err != nil {
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
			b := newLoanTest(t, lentLogin)
			loan := b.lend(t)
			writeFile(t, b.copiedFile(), c.ours)
			writeFile(t, b.loginFile(), c.theirs)
			r, err := loan.Return(t.Context())
			if err != nil || r.Back != c.back {
				t.Fatalf("Return = %+v, %v, want %s", r, err, c.back)
			}
			if got := readFile(t, b.loginFile()); got != c.file {
				t.Errorf("the user's file is %s", got)
			}
			aside := b.keptText(t, r.Aside)
			if aside != c.aside {
				t.Errorf("put aside is %q, want %q", aside, c.aside)
			}
		})
	}
}

func TestALoginThatTheUserRemovedStaysRemoved(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	removeFile(t, b.loginFile())
	r, err := loan.Return(t.Context())
	if err != nil || r.Back != Kept || b.keptText(t, r.Aside) != renewedLogin {
		t.Errorf("Return = %+v, %v", r, err)
	}
	if _, err := os.Lstat(b.loginFile()); err == nil {
		t.Error("the file is there again")
	}
}

func TestAUsersFileThatBecameALinkIsNotWrittenThrough(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	target := filepath.Join(t.TempDir(), "target")
	writeFile(t, target, lentLogin)
	removeFile(t, b.loginFile())
	if err := os.Symlink(target, b.loginFile()); err != nil {
		t.Fatal(err)
	}
	r, err := loan.Return(t.Context())
	if err != nil || r.Back != Kept || b.keptText(t, r.Aside) != renewedLogin {
		t.Errorf("Return = %+v, %v", r, err)
	}
	if got := readFile(t, target); got != lentLogin {
		t.Errorf("the target is %s", got)
	}
}

func TestWhatIsPutAsideDoesNotGrow(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	var last Returned
	for i := range 3 * mostKept {
		b.inside = diskHome(t.TempDir())
		loan := b.lend(t)
		writeFile(t, b.copiedFile(), strings.Replace(renewedLogin, "{", `{"n`+strings.Repeat("x", i)+`":1,`, 1))
		var err error
		if last, err = loan.Return(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if all := dirglob.Find(b.lender.Dir, "*.kept"); len(all) != 8 {
		t.Errorf("%d logins lie aside, want the newest eight", len(all))
	}
	b.keptText(t, last.Aside)
}

// TestALoginOfTheSameFormIsOneWhateverItsTokens checks random tokens and times.
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
		name := rapid.SampledFrom(sortedNames(fresh)).Draw(t, "poisoned")
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
		if checkRenewed([]byte(lentLogin), after) != nil {
			return
		}
		old, err := parseLogin([]byte(lentLogin))
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := parseLogin(after)
		if err != nil {
			t.Fatalf("%q is a renewed login and none: %v", after, err)
		}
		if err := sameForm(old, fresh); err != nil {
			t.Fatalf("%q: %v", after, err)
		}
		if !canRenew(fresh) || fresh["organizationUuid"] != old["organizationUuid"] || latestTime(fresh).Before(latestTime(old)) || len(after) > mostLogin {
			t.Fatalf("%q was taken", after)
		}
		if back, err := mergeWithheld([]byte(lentLogin), after); err != nil || string(back) != string(after) {
			t.Fatalf("%q becomes %q, %v", after, back, err)
		}
	})
}

// newJWT returns a token that can be read.
func newJWT(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

func TestALoginOfAnotherAccountIsNotGivenBack(t *testing.T) {
	const mine = `{"sub":"u1","email":"a@example.com","https://api.openai.com/auth":{"chatgpt_account_id":"acc"},"exp":1}`
	holding := func(token string) []byte {
		return []byte(`{"tokens":{"id_token":"` + token + `","access_token":"opaque","refresh_token":"r"}}`)
	}
	of := func(claims string) []byte { return holding(newJWT(claims)) }
	for name, c := range map[string]struct{ claims, why string }{
		"renewed":                {strings.Replace(mine, `"exp":1`, `"exp":2`, 1), ""},
		"another user":           {strings.Replace(mine, "u1", "u2", 1), "of another account"},
		"another address":        {strings.Replace(mine, "a@", "b@", 1), "of another account"},
		"another workspace":      {strings.Replace(mine, `"acc"`, `"other"`, 1), "of another account"},
		"nobody's":               {`{"exp":2}`, "no longer says whose it is"},
		"what cannot be read":    {`not claims`, "no longer says whose it is"},
		"a claim that is a list": {`{"sub":["u1"],"email":"b@example.com"}`, "of another account"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRenewed(of(mine), of(c.claims))
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("renewed = %v, want %q", err, c.why)
			}
		})
	}
	head, rest, _ := strings.Cut(newJWT(mine), ".")
	claims, sum, _ := strings.Cut(rest, ".")
	if err := checkRenewed(of(mine), holding(head+"."+claims+"!."+sum)); err == nil || !strings.Contains(err.Error(), "no longer says whose it is") {
		t.Errorf("with claims that are not base64 to their end: renewed = %v", err)
	}
}

// An agent wrote another token into its file, and the run was refused: the user's file
// had that token afterwards, and the old one was lost.
func TestAttack084ALoginIsReplacedOnlyAfterAGoodRunInWhichItsVendorAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		answered bool
		refused  string
		back     Back
		why      string
	}{
		"renewed":         {true, "", Renewed, "the program renewed it"},
		"a refused run":   {true, "the run was refused", Kept, "the run was refused"},
		"no answer":       {false, "", Kept, "no answer of platform.claude.com, which renews it, was seen"},
		"neither of them": {false, "the run was refused", Kept, "the run was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLoanTest(t, lentLogin)
			loan := b.lend(t)
			writeFile(t, b.copiedFile(), renewedLogin)
			r, err := loan.EndTurn(c.answered)
			if err != nil || r.Back != Pending || readFile(t, b.loginFile()) != lentLogin {
				t.Fatalf("after the turn: %+v, %v, and the file holds %s", r, err, readFile(t, b.loginFile()))
			}
			if r, err = loan.Settle(t.Context(), c.refused); err != nil || r.Back != c.back || r.Why != c.why {
				t.Fatalf("Settle = %+v, %v, want %s because %s", r, err, c.back, c.why)
			}
			if err := loan.Forget(); err != nil {
				t.Fatal(err)
			}
			file, kept := lentLogin, renewedLogin
			if c.back == Renewed {
				file, kept = kept, file
			}
			if readFile(t, b.loginFile()) != file || b.keptText(t, r.Aside) != kept {
				t.Errorf("the user's file is %s, kept is %s", readFile(t, b.loginFile()), b.keptText(t, r.Aside))
			}
			s, err := b.lender.SwapLogin(t.Context(), "claude", "test")
			if err != nil || s.Taken.ID != r.Aside || readFile(t, b.loginFile()) != kept || b.keptText(t, s.Kept) != file {
				t.Fatalf("Swap = %+v, %v, and the file holds %s", s, err, readFile(t, b.loginFile()))
			}
			if s, err = b.lender.SwapLogin(t.Context(), s.Kept, "test"); err != nil || readFile(t, b.loginFile()) != file {
				t.Errorf("a second Swap = %+v, %v, and the file holds %s", s, err, readFile(t, b.loginFile()))
			}
			if list, err := b.lender.ListKept(); err != nil || len(list) != 1 || list[0].Agent != "claude" {
				t.Errorf("kept are %+v, %v", list, err)
			}
		})
	}
}

func TestALoginThatIsNotJSONIsSwappedAsItIs(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	r, err := loan.EndTurn(true)
	if err == nil {
		r, err = loan.Settle(t.Context(), "")
	}
	if err != nil || r.Back != Renewed {
		t.Fatalf("Settle = %+v, %v", r, err)
	}
	if err := loan.Forget(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, b.loginFile(), "no JSON")
	s, err := b.lender.SwapLogin(t.Context(), "claude", "test")
	if err != nil || readFile(t, b.loginFile()) != lentLogin {
		t.Fatalf("Swap = %+v, %v, and the file holds %s", s, err, readFile(t, b.loginFile()))
	}
	// The logins of MCP servers have no place in it; they are kept with the file.
	host := `{"mcpOAuth":{},` + lentLogin[1:]
	writeFile(t, b.loginFile(), host)
	again, err := b.lender.SwapLogin(t.Context(), s.Kept, "test")
	if err != nil || readFile(t, b.loginFile()) != "no JSON" || b.keptText(t, again.Kept) != host {
		t.Errorf("a second Swap = %+v, %v, and the file holds %q", again, err, readFile(t, b.loginFile()))
	}
}

func TestALaterTurnGoesOnWithTheRenewedLoginAndCannotSpoilIt(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	loan := b.lend(t)
	writeFile(t, b.copiedFile(), renewedLogin)
	if r, err := loan.EndTurn(true); err != nil || r.Back != Pending {
		t.Fatalf("the first turn: %+v, %v", r, err)
	}
	if _, err := b.lender.Lend(t.Context(), b.credential(t), diskHome(t.TempDir())); err == nil {
		t.Error("another run gets the old login")
	}
	b.inside = diskHome(t.TempDir())
	if err := loan.LendAgain(t.Context(), b.inside); err != nil || readFile(t, b.copiedFile()) != renewedLogin {
		t.Fatalf("Again = %v, the copy is %s", err, readFile(t, b.copiedFile()))
	}
	writeFile(t, b.copiedFile(), newestLogin)
	r, err := loan.EndTurn(false)
	if err != nil || r.Back != Kept || b.keptText(t, r.Aside) != newestLogin {
		t.Fatalf("the second turn: %+v, %v", r, err)
	}
	b.inside = diskHome(t.TempDir())
	if err := loan.LendAgain(t.Context(), b.inside); err != nil {
		t.Fatal(err)
	}
	if r, err := loan.EndTurn(true); err != nil || r.Back != Pending {
		t.Errorf("a third turn, which left it as it was: %+v, %v, want that Settle decides", r, err)
	}
	if r, err = loan.Settle(t.Context(), ""); err != nil || r.Back != Renewed || readFile(t, b.loginFile()) != renewedLogin {
		t.Errorf("Settle = %+v, %v, and the file holds %s", r, err, readFile(t, b.loginFile()))
	}
	if err := loan.Forget(); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, b)
}

func TestATokenOfTheEnvironmentIsLentWithoutAFile(t *testing.T) {
	const token = "sk-ant-oat01-of-setup-token"
	c, err := Find(Want{Profile: claude, Environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + token}, Home: t.TempDir(), Now: now})
	if err != nil || c.Auth != loop.AuthLend || c.File != "" || c.Key() != token || c.From != "CLAUDE_CODE_OAUTH_TOKEN" {
		t.Fatalf("Find = %+v, %v", c, err)
	}
	if s := c.Secrets(); len(s) != 1 || s[0].Value != token {
		t.Errorf("it has %d secrets, want the token", len(s))
	}
	if c, err := Find(Want{Profile: claude, Environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + token, "ANTHROPIC_API_KEY=k1"}, Now: now}); err != nil || c.Auth != loop.AuthInject {
		t.Errorf("with a key: %v, %v, want the key", c, err)
	}
}

package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func mustParse(t *testing.T, text string) form {
	t.Helper()
	f, err := parseLogin([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return f
}

func TestARenewalChangesTokensScopesAndTimesOnly(t *testing.T) {
	for name, may := range map[string]bool{
		"access_token": true, "accessToken": true, "access": true, "refresh": true, "refresh-token": true, "id_token": true, "idToken": true, "id-token": true, "id.token": true, "token": true, "scope": true,
		"scopes": true, "expiry": true, "expires_at": true, "last_refresh": true, "lastRefresh": true,
		"token_url": false, "token_uri": false, "token_host": false, "token_endpoint": false, "client_token": false, "token_type": false, "token_id": false, "account": false,
		"email": false, "key": false, "mode": false,
	} {
		err := sameForm(form{name: "a"}, form{name: "b"})
		if (err == nil) != may {
			t.Errorf("another %s: %v, want that it may change: %v", name, err, may)
		}
	}
}

func TestARenewalBringsOnlyWhatDescribesALoginAndItsTimes(t *testing.T) {
	long := strings.Repeat("a", mostWord)
	for member, may := range map[string]bool{
		`"subscriptionType":"max"`: true, `"subscriptionType":null`: true, `"subscriptionType":3`: true, `"subscriptionType":"` + long + `"`: true,
		`"subscription_type_source":"a"`: true, `"subscriptionTypeVerifiedAt":1`: true, `"rateLimitTier":"a"`: true,
		`"subscriptionType":"a b"`: false, `"subscriptionType":"é"`: false, `"subscriptionType":"` + long + `a"`: false, `"subscriptionType":{}`: false, `"subscriptionType":true`: false,
		`"expiresAt":1795267200000`: true, `"expires":"2026-11-20T12:00:00Z"`: true, `"last_refresh":1795267200`: true, `"expiresAt":0`: false, `"expiresAt":"never"`: false, `"expiresAt":null`: false,
		`"clientId":"a"`: true, `"client_id":1`: true, `"clientId":null`: false, `"clientId":{}`: false, `"clientIds":"a"`: false,
		`"token":"a"`: false, `"hook":"a"`: false,
	} {
		err := sameForm(form{}, mustParse(t, "{"+member+"}"))
		if (err == nil) != may {
			t.Errorf("%s comes: %v, want that it may: %v", member, err, may)
		}
	}
	for member, may := range map[string]bool{`"subscriptionType":"a"`: true, `"rateLimitTier":"a"`: true, `"expiresAt":1`: true, `"last_refresh":1`: true, `"token":"a"`: false, `"clientId":"a"`: false, `"x":1`: false} {
		if err := sameForm(mustParse(t, "{"+member+"}"), form{}); (err == nil) != may {
			t.Errorf("%s goes: %v, want that it may: %v", member, err, may)
		}
	}
	for change, may := range map[[2]string]bool{
		{`"subscriptionType":null`, `"subscriptionType":"max"`}: true, {`"subscriptionType":"pro"`, `"subscriptionType":null`}: true, {`"subscriptionType":"pro"`, `"subscriptionType":[]`}: false,
		{`"expires":1`, `"expires":2`}: true, {`"expires":1`, `"expires":"2"`}: false, {`"expires":1`, `"expires":0`}: true, {`"expires":1`, `"expires":-1`}: false,
		{`"expires":1`, `"expires":1e15`}: true, {`"expires":1`, `"expires":1.1e15`}: false,
		{`"scopes":["a"]`, `"scopes":["b","c"]`}: true, {`"scopes":["a"]`, `"scopes":["b c"]`}: false, {`"scopes":["a"]`, `"scopes":[1]`}: false,
		{`"token":"a"`, `"token":"a b"`}: true, {`"token":"a"`, `"token":"a\tb"`}: false, {`"token":"a"`, `"token":"é"`}: false, {`"token":"a"`, `"token":""`}: false,
		{`"token":true`, `"token":false`}: false, {`"a":{"token":"x"}`, `"a":{"token":"y"}`}: true, {`"a":{"token":"x"}`, `"a":{"token":"x","b":1}`}: false,
	} {
		if err := sameForm(mustParse(t, "{"+change[0]+"}"), mustParse(t, "{"+change[1]+"}")); (err == nil) != may {
			t.Errorf("%s becomes %s: %v, want that it may: %v", change[0], change[1], err, may)
		}
	}
}

func TestTheEndOfALoginIsReadInEachOfItsForms(t *testing.T) {
	for text, want := range map[string]time.Time{
		`{"expiresAt":1795267200000}`:                         time.UnixMilli(1795267200000),
		`{"expires_at":1795267200}`:                           time.Unix(1795267200, 0),
		`{"expiry":"2026-11-20T12:00:00Z"}`:                   now,
		`{"last_refresh":"2026-11-20T12:00:00Z"}`:             now,
		`{"expiresAt":100000000000}`:                          time.UnixMilli(100000000000),
		`{"expiresAt":99999999999}`:                           time.Unix(99999999999, 0),
		`{"expiresAt":1000000000000000}`:                      time.UnixMilli(1000000000000000),
		`{"expiresAt":1}`:                                     time.Unix(1, 0),
		`{"expiresAt":0}`:                                     {},
		`{"expiresAt":-5}`:                                    {},
		`{"expiresAt":1e16}`:                                  {},
		`{"expiresAt":"soon"}`:                                {},
		`{"issuedAt":1795267200000}`:                          {},
		`{"a":{"expires":5},"b":[{"expires":9}],"expires":7}`: time.Unix(9, 0),
	} {
		if got := latestTime(mustParse(t, text)); !got.Equal(want) {
			t.Errorf("%s ends at %v, want %v", text, got, want)
		}
	}
}

func TestALoginThatEndsLaterThanAnyVendorSaysIsNotARenewedOne(t *testing.T) {
	at := func(end time.Time) []byte { return fmt.Appendf(nil, `{"refresh":"r","expires":%d}`, end.UnixMilli()) }
	for name, c := range map[string]struct {
		before, after time.Time
		ok            bool
	}{
		"the same end":          {now, now, true},
		"a millisecond earlier": {now, now.Add(-time.Millisecond), false},
		"400 days later":        {now, now.Add(400 * 24 * time.Hour), true},
		"a little more":         {now, now.Add(400*24*time.Hour + time.Millisecond), false},
	} {
		if err := checkRenewed(at(c.before), at(c.after)); (err == nil) != c.ok {
			t.Errorf("%s: %v, want that it is one: %v", name, err, c.ok)
		}
	}
	if err := checkRenewed([]byte(`{"refresh":"r"}`), []byte(`{"refresh":"s"}`)); err != nil {
		t.Errorf("a login without an end: %v", err)
	}
	if err := checkRenewed([]byte("token=1"), []byte(lentLogin)); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("a login that was not JSON: %v", err)
	}
}

func TestALoginIsReadUpToItsBounds(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	list := func(n int) string { return `{"a":` + strings.Repeat("[", n) + "1" + strings.Repeat("]", n) + "}" }
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as long as it may be": {lentLogin + strings.Repeat(" ", mostLogin-len(lentLogin)), true},
		"a byte more":          {lentLogin + strings.Repeat(" ", mostLogin-len(lentLogin)+1), false},
		"15 deep":              {nested(mostDepth - 1), true},
		"16 deep":              {nested(mostDepth), false},
		"lists 15 deep":        {list(mostDepth - 2), true},
		"lists 16 deep":        {list(mostDepth - 1), false},
		"an open list":         {`{"a":[1`, false},
		"an open object":       {`{"a":1`, false},
		"an invalid name":      {`{1:2}`, false},
		"a word":               {`"a"`, false},
		"another one behind":   {`{} {}`, false},
	} {
		if _, err := parseLogin([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: parse = %v, want that it is read: %v", name, err, c.ok)
		}
	}
	if got := mustParse(t, `{"a":[1,"b",null,true],"c":{"d":[]}}`); !cmp.Equal(got, form{"a": []any{json.Number("1"), "b", nil, true}, "c": form{"d": []any{}}}) {
		t.Errorf("parse = %#v", got)
	}
}

func TestASecretOfALoginIsKnownByItsName(t *testing.T) {
	for name, want := range map[string]bool{
		"access_token": true, "apiKey": true, "clientSecret": true, "access": true, "refresh": true, "password": true, "jwt": true,
		"tokenType": false, "token_scope": false, "token_url": false, "token_uri": false, "token_expires": false, "account": false, "email": false,
	} {
		if got := len(secretMembers(form{name: "0123-4567"})) == 1; got != want {
			t.Errorf("%s is a secret: %v, want %v", name, got, want)
		}
	}
	for text, want := range map[string]bool{"01234567": true, "0123456": false, "0123 4567": false, "2026-11-20T12:00:00Z": false} {
		if got := len(secretMembers(form{"token": text})) == 1; got != want {
			t.Errorf("a token %q is a secret: %v, want %v", text, got, want)
		}
	}
	if got := secretMembers(form{"a": []any{form{"token": "0123-4567"}}, "tokens": []any{"first-01", "second-2"}}); len(got) != 3 {
		t.Errorf("secrets in lists: %d, want 3", len(got))
	}
}

func TestEachClaimAboutTheOwnerIsCompared(t *testing.T) {
	token := func(claim, value string) form {
		return form{"id_token": "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"iat":1,"`+claim+`":"`+value+`"}`)) + ".s"}
	}
	for _, claim := range []string{"sub", "email", "user_id", "account_id", "organization_id", "chatgpt_user_id", "chatgpt_account_id"} {
		if err := sameAccount(token(claim, "a"), token(claim, "a")); err != nil {
			t.Errorf("the same %s: %v", claim, err)
		}
		if err := sameAccount(token(claim, "a"), token(claim, "b")); err == nil {
			t.Errorf("another %s is taken for the same account", claim)
		}
	}
	if err := sameAccount(token("name", "a"), token("name", "b")); err != nil {
		t.Errorf("another name: %v", err)
	}
	if err := sameAccount(form{"id_token": "a.b"}, form{"id_token": "c.d"}); err != nil {
		t.Errorf("what is not readable: %v", err)
	}
	half := func(owner string) form {
		return form{"id_token": "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+owner+`"}`)) + "!.s"}
	}
	if err := sameAccount(half("a1"), half("b1")); err != nil {
		t.Errorf("what is readable up to its middle: %v", err)
	}
}

func TestTheShapeOfAProviderIsItsOwnOrThatOfOpenAI(t *testing.T) {
	const url = "https://models.example.com"
	for want, c := range map[string][]string{"openai": {"groq", url}, "anthropic": {"anthropic", url}, "groq": {"groq", ""}, "": {"", url}, "gemini": {"gemini", ""}} {
		if got := RequestShape(c[0], c[1]); got != want {
			t.Errorf("the shape of %q behind %q is %q, want %q", c[0], c[1], got, want)
		}
	}
}

func TestEachKeyGoesToItsVendorInItsHeader(t *testing.T) {
	for variable, c := range map[string]struct {
		provider, host string
		scheme         Scheme
	}{
		"ANTHROPIC_API_KEY":    {"anthropic", "api.anthropic.com", XAPIKey},
		"ANTHROPIC_AUTH_TOKEN": {"anthropic", "api.anthropic.com", Bearer},
		"OPENAI_API_KEY":       {"openai", "api.openai.com", Bearer},
		"CODEX_API_KEY":        {"openai", "api.openai.com", Bearer},
		"GEMINI_API_KEY":       {"gemini", "generativelanguage.googleapis.com", XGoogleKey},
		"GOOGLE_API_KEY":       {"gemini", "generativelanguage.googleapis.com", XGoogleKey},
	} {
		got, err := Find(Want{Profile: command, Provider: c.provider, Environ: []string{variable + "=k1"}, Now: now})
		if err != nil || got.Base.String() != "https://"+c.host || got.Scheme != c.scheme || got.Provider != c.provider || got.BaseFrom != "" {
			t.Errorf("%s: %v at %v as %q, %v; want %s as %q", variable, got, got.Base, got.Scheme, err, c.host, c.scheme)
		}
	}
	for gateway, provider := range map[string]string{"ANTHROPIC_BASE_URL": "anthropic", "OPENAI_BASE_URL": "openai", "OPENAI_API_BASE": "openai", "GOOGLE_GEMINI_BASE_URL": "gemini"} {
		environ := []string{gateway + "=https://gw.example.com", "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k"}
		got, err := Find(Want{Profile: command, Provider: provider, Environ: environ, Now: now})
		if err != nil || got.Base.Host != "gw.example.com" || got.BaseFrom != gateway {
			t.Errorf("%s: %v at %v from %s, %v", gateway, got, got.Base, got.BaseFrom, err)
		}
	}
}

func TestAKeyIsOfPrintableASCII(t *testing.T) {
	for r := range rune(0x100) {
		if got, want := isSendable("k"+string(r)), '!' <= r && r <= '~'; got != want {
			t.Errorf("a key with %q can be sent: %v, want %v", r, got, want)
		}
	}
}

func TestTheNameOfAProviderBecomesTheVariableOfItsKey(t *testing.T) {
	for provider, want := range map[string]string{"groq": "GROQ_API_KEY", "open-router": "OPEN_ROUTER_API_KEY", "a1.Z9": "A1_Z9_API_KEY", "{@[/:": "______API_KEY"} {
		if got := keyVariableFor(provider); got != want {
			t.Errorf("variableFor(%q) = %s, want %s", provider, got, want)
		}
	}
}

func TestABaseURLIsAnAddressAndNothingMore(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "https://api.example.com": true, "http://127.0.0.1:11434/v1": true, "http://[::1]/": true,
		"http://": false, "http://:80": false, "https://h?a=b": false, "https://h#f": false, "ftp://h": false, "//h": false, "h": false, "https://u@h": false, "https://u:p@h": false,
		"https://h/%zz": false, "http://a b": false,
	} {
		u, err := BaseURL(text)
		if _, fault := errors.AsType[*loop.Fault](err); fault == ok || (u == nil) != (!ok || text == "") {
			t.Errorf("BaseURL(%q) = %v, %v, want that it is one: %v", text, u, err, ok)
		}
	}
	if _, err := BaseURL("https://me:s3cret@h:port"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestWhichHostsAreThisMachine(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"128.0.0.1": false, "0.0.0.0": false, "::2": false, "localhost.evil.example": false, "example.com": false, "": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("loopback(%q) = %v", host, got)
		}
	}
}

func TestWhatCanNeverWorkIsSaidBeforeARun(t *testing.T) {
	for name, c := range map[string]struct {
		profile       agent.Profile
		provider, url string
		auth          loop.Auth
		ok            bool
	}{
		"nothing asked for":                   {claude, "", "", "", true},
		"a program of its own":                {command, "", "", "", true},
		"a program of its own with a key":     {command, "", "", loop.AuthInject, false},
		"a program of its own, a provider":    {command, "openai", "", loop.AuthInject, true},
		"its provider":                        {claude, "anthropic", "", "", true},
		"another provider":                    {claude, "openai", "", "", false},
		"a provider of no address":            {qwen, "groq", "", "", false},
		"a provider and its address":          {qwen, "groq", "https://api.groq.com", "", true},
		"an address":                          {claude, "", "https://h", "", true},
		"an invalid address":                  {claude, "", "h", "", false},
		"a login":                             {claude, "", "", loop.AuthLend, true},
		"a login of its provider":             {claude, "anthropic", "", loop.AuthLend, true},
		"a login of another provider":         {claude, "openai", "", loop.AuthLend, false},
		"a login for an address":              {claude, "", "https://h", loop.AuthLend, false},
		"a login of a program that has none":  {qwen, "", "", loop.AuthLend, false},
		"no such way":                         {claude, "", "", "steal", false},
		"a key for a program without models":  {agent.Profile{Name: "x"}, "", "", loop.AuthInject, false},
		"an address for one without a model":  {agent.Profile{Name: "x"}, "", "https://h", "", false},
		"a provider for one without a model":  {agent.Profile{Name: "x"}, "openai", "", "", false},
		"nothing for one without a model":     {agent.Profile{Name: "x"}, "", "", "", true},
		"a login that goes with any provider": {agent.Profile{Name: "x", Login: claude.Login}, "", "", loop.AuthLend, true},
	} {
		err := CheckPossible(c.profile, c.provider, c.url, c.auth)
		f, fault := errors.AsType[*loop.Fault](err)
		if (err == nil) != c.ok || err != nil && (!fault || f.Exit != loop.ExitUsage || f.Fix == "") {
			t.Errorf("%s: %v, want that it is possible: %v", name, err, c.ok)
		}
	}
}

func TestADeadLoginIsNotLent(t *testing.T) {
	end := now.UnixMilli()
	for name, c := range map[string]struct{ text, why string }{
		"nothing":                         {" \n", "is empty"},
		"no tokens":                       {`{"theme":"dark-mode-1"}`, "holds no login"},
		"a token that ended":              {fmt.Sprintf(`{"access":"0123-4567","expires":%d}`, end-1), "has expired"},
		"a token that ends now":           {fmt.Sprintf(`{"access":"0123-4567","expires":%d}`, end), ""},
		"a token that can be renewed":     {fmt.Sprintf(`{"access":"0123-4567","refresh":"r","expires":%d}`, end-1), ""},
		"nothing to renew it with":        {fmt.Sprintf(`{"access":"0123-4567","refresh":"","expires":%d}`, end-1), "has expired"},
		"when it was refreshed is a time": {fmt.Sprintf(`{"access":"0123-4567","last_refresh":"2020-01-01T00:00:00Z","expires":%d}`, end-1), "has expired"},
		"a form that nobody knows":        {"TOKEN=0123-4567", ""},
		"a token that never ends":         {`{"access":"0123-4567"}`, ""},
	} {
		user := t.TempDir()
		writeFile(t, filepath.Join(user, claudeFile), c.text)
		_, err := Find(Want{Profile: claude, Auth: loop.AuthLend, Home: user, Now: now})
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

func TestWhereALoginIsLookedForIsWrittenAsPeopleDo(t *testing.T) {
	user := t.TempDir()
	for name, c := range map[string]struct {
		want Want
		why  string
	}{
		"no home":              {Want{}, "the user has no home"},
		"a home":               {Want{Home: user}, "there is no login in ~/" + claudeFile},
		"a relative folder":    {Want{Home: user, Environ: []string{"CLAUDE_CONFIG_DIR=x"}}, "there is no login in ~/" + claudeFile},
		"a folder in the home": {Want{Home: user, Environ: []string{"CLAUDE_CONFIG_DIR=" + user + "/c"}}, "there is no login in ~/c/.credentials.json"},
		"a folder elsewhere":   {Want{Home: user, Environ: []string{"CLAUDE_CONFIG_DIR=/nowhere/c"}}, "there is no login in /nowhere/c/.credentials.json"},
		"another program's":    {Want{Home: user, Environ: []string{"CODEX_HOME=/nowhere/c"}}, "there is no login in ~/" + claudeFile},
	} {
		c.want.Profile, c.want.Auth, c.want.Now = claude, loop.AuthLend, now
		if _, err := Find(c.want); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

func TestALoginBehindALoopOfLinksIsNamed(t *testing.T) {
	user := t.TempDir()
	path := filepath.Join(user, claudeFile)
	writeFile(t, path, "")
	if err := errors.Join(os.Remove(path), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(Want{Profile: claude, Auth: loop.AuthLend, Home: user, Now: now}); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("Find = %v, want what is wrong with the link", err)
	}
}

func TestAFileIsReplacedOnlyIfItIsWhatItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "login.json")
	writeFile(t, path, "old")
	if err := overwriteFile(t.Context(), path, []byte("older"), []byte("new")); err == nil || readFile(t, path) != "old" {
		t.Errorf("overwrite = %v, and the file holds %s", err, readFile(t, path))
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("beside it lies %v, %v", all, err)
	}
	if err := replaceFile(filepath.Join(path, "below"), []byte("new"), nil); err == nil {
		t.Error("a file below a file was written")
	}
	if err := overwriteFile(t.Context(), path, []byte("old"), []byte("new")); err != nil || readFile(t, path) != "new" {
		t.Errorf("overwrite = %v, and the file holds %s", err, readFile(t, path))
	}
}

func TestALoginIsNotSwappedForWhatIsNoFile(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	if _, err := b.lender.keepAside(note{Agent: "claude", File: b.loginFile()}, []byte(renewedLogin), "why"); err != nil {
		t.Fatal(err)
	}
	removeFile(t, b.loginFile())
	writeFile(t, filepath.Join(b.loginFile(), "x"), "x")
	_, err := b.lender.SwapLogin(t.Context(), "claude", "test")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || !strings.Contains(f.Why, "not a regular file") {
		t.Errorf("Swap = %v, want that it is not a regular file", err)
	}
}

func TestAHomeThatCannotBeWrittenGetsNoLogin(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	if _, err := b.lender.Lend(t.Context(), b.credential(t), diskHome(file)); err == nil {
		t.Error("Lend says that the login is there")
	}
}

func TestAHostIsAVendorsByItsNameAlone(t *testing.T) {
	openai, _ := vendorOf("openai")
	for host, want := range map[string]bool{
		"api.openai.com": true, "API.OpenAI.com.": true, "eu.api.openai.com": true,
		"xapi.openai.com": false, "api.openai.com.evil.example": false, "openai.com": false, "": false,
	} {
		if got := openai.ownsHost(host); got != want {
			t.Errorf("owns(%q) = %v", host, got)
		}
	}
}

func TestKeptLoginsAreListedTheNewestFirst(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	var ids []string
	for i, login := range []string{renewedLogin, newestLogin, otherLogin} {
		n := note{Agent: "claude", From: "~/x", File: b.loginFile(), Run: "rn_1"}
		if i == 2 {
			n.Agent = "codex"
		}
		id, err := b.lender.keepAside(n, []byte(login), "why")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(b.lender.keptPath(id), now, now.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	writeFile(t, filepath.Join(b.lender.Dir, "other.kept"), `{"id":"another"}`)
	writeFile(t, filepath.Join(b.lender.Dir, "broken.kept"), `{`)
	list, err := b.lender.ListKept()
	if len(ids[0]) != len("claude-1f2e3d4c") || !strings.HasPrefix(ids[0], "claude-") || !strings.HasPrefix(ids[2], "codex-") {
		t.Errorf("ids = %q, want the driver and eight hexadecimal digits", ids)
	}
	if err != nil || len(list) != 3 || list[0].ID != ids[2] || list[1].ID != ids[1] || list[2].ID != ids[0] || !list[1].At.Equal(now.Add(time.Hour)) || list[0].Why != "why" || list[0].From != "~/x" {
		t.Errorf("List = %+v, %v, want %v from the end", list, err, ids)
	}
	if list, err := (Lender{Dir: filepath.Join(b.lender.Dir, "other.kept")}).ListKept(); err == nil {
		t.Errorf("List = %+v of a folder that is a file", list)
	}
	if k, err := b.lender.FindKept("claude"); err != nil || k.ID != ids[1] {
		t.Errorf("Find(claude) = %+v, %v, want the newest", k, err)
	}
	if k, err := b.lender.FindKept(ids[0]); err != nil || k.ID != ids[0] {
		t.Errorf("Find of an id = %+v, %v", k, err)
	}
	if _, err := b.lender.FindKept("nobody"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Find(nobody) = %v, want that it is not found", err)
	}
}

func TestACredentialSaysWhatItIs(t *testing.T) {
	key := "k1"
	if all := (Credential{From: "X_KEY"}).Secrets(); all != nil {
		t.Errorf("without a key the secrets are %v", all)
	}
	for want, c := range map[string]Credential{
		"no credential":                  {},
		"inject openai:keyless":          {Auth: loop.AuthInject, Account: "openai:keyless"},
		"lend claude:login from ~/login": {Auth: loop.AuthLend, Account: "claude:login", From: "~/login", key: &key},
	} {
		if c.String() != want || fmt.Sprintf("%v%#v%d", c, c, c) != strings.Repeat(want, 3) || c.GoString() != want || c.LogValue().String() != want {
			t.Errorf("it prints as %v, %#v and %v, want %s", c, c, c.LogValue(), want)
		}
	}
	text, err := json.Marshal(Credential{Auth: loop.AuthLend, Account: "a", From: "b", key: &key})
	if err != nil || string(text) != `{"auth":"lend","account":"a","from":"b"}` {
		t.Errorf("as JSON it is %s, %v", text, err)
	}
	said := map[string]bool{}
	for _, auth := range []loop.Auth{loop.AuthInject, loop.AuthLend, ""} {
		said[DescribeAuth(auth)] = true
	}
	if len(said) != 3 {
		t.Errorf("the promises are %v, want three", said)
	}
}

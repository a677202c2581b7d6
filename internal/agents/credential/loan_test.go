package credential

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// now is before the end of the logins below.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	lentLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-first-access","refreshToken":"sk-ant-ort01-first-refresh",` +
		`"expiresAt":1795267200000,"scopes":["user:inference","user:profile"],"subscriptionType":"max"},"organizationUuid":"11111111-2222"}`
	renewedLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-second-access","refreshToken":"sk-ant-ort01-second-refresh",` +
		`"expiresAt":1795296000000,"scopes":["user:inference","user:profile"],"subscriptionType":"max"},"organizationUuid":"11111111-2222"}`
	newestLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-third-access","refreshToken":"sk-ant-ort01-third-refresh",` +
		`"expiresAt":1795299600000,"scopes":["user:inference","user:profile"],"subscriptionType":"max"},"organizationUuid":"11111111-2222"}`
	otherLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-other-access","refreshToken":"sk-ant-ort01-other-refresh",` +
		`"expiresAt":1795290000000,"scopes":["user:inference","user:profile"],"subscriptionType":"pro"},"organizationUuid":"99999999-8888"}`
)

var (
	claude = agent.Profile{
		Name: "claude", Program: "claude", Home: true, Providers: []string{"anthropic"},
		Login: agent.Login{Files: []string{".claude/.credentials.json"}, Hosts: []string{"api.anthropic.com"}, Renews: []string{"platform.claude.com"}, Variables: []string{"CLAUDE_CODE_OAUTH_TOKEN"}},
	}
	opencode = agent.Profile{
		Name: "opencode", Program: "opencode", Home: true, Providers: []string{"anthropic", "openai", "gemini"},
		Login: agent.Login{Files: []string{".local/share/opencode/auth.json"}},
	}
	qwen    = agent.Profile{Name: "qwen", Program: "qwen", Home: true, Providers: []string{"openai"}}
	command = agent.Profile{Name: "command", AnyProvider: true}
)

// diskHome is a program's home in a directory.
type diskHome string

func (h diskHome) Path() string { return string(h) }

func (h diskHome) Write(name string, content []byte) error {
	path := filepath.Join(string(h), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func (h diskHome) Read(name string) ([]byte, error) {
	path := filepath.Join(string(h), filepath.FromSlash(name))
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// loanTest is a user with a login, and a run that needs it.
type loanTest struct {
	user   string // the home of the user
	inside diskHome
	lender Lender
}

func newLoanTest(t *testing.T, login string) loanTest {
	t.Helper()
	b := loanTest{user: t.TempDir(), inside: diskHome(t.TempDir())}
	// If the name were used as a pattern, nothing below it would be found.
	b.lender = Lender{Dir: filepath.Join(t.TempDir(), "a[b", "logins"), Holder: loop.Holder{PID: 4711, Host: "here"}, Run: "rn_1"}
	writeFile(t, b.loginFile(), login)
	return b
}

func (b loanTest) loginFile() string { return filepath.Join(b.user, ".claude", ".credentials.json") }

// copiedFile returns the path of the login in the program's home.
func (b loanTest) copiedFile() string {
	return filepath.Join(string(b.inside), ".claude", ".credentials.json")
}

func (b loanTest) credential(t *testing.T) Credential {
	t.Helper()
	c, err := Find(Want{Profile: claude, Auth: loop.AuthLend, Home: b.user, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b loanTest) lend(t *testing.T) *Loan {
	t.Helper()
	loan, err := b.lender.Lend(t.Context(), b.credential(t), b.inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = loan.Return(t.Context()) })
	return loan
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Return ends a loan as a run does that has one turn, in which the vendor answered.
func (l *Loan) Return(ctx context.Context) (Returned, error) {
	defer l.Close()
	r, err := l.EndTurn(true)
	if err != nil || r.Back != Pending {
		return r, err
	}
	if r, err = l.Settle(ctx, ""); err == nil {
		err = l.Forget()
	}
	return r, err
}

// keptText returns the kept login with an id, "" for an empty id.
func (b loanTest) keptText(t *testing.T, id string) string {
	t.Helper()
	if id == "" {
		return ""
	}
	k, err := b.lender.findKeptFile(id)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(b.lender.keptPath(id))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kept login is %v, %v", info.Mode(), err)
	}
	return string(k.Login)
}

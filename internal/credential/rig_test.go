package credential

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
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

// home is a program's home on a disk.
type home string

func (h home) Path() string { return string(h) }

func (h home) Write(name string, content []byte) error {
	path := filepath.Join(string(h), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func (h home) Read(name string) ([]byte, error) {
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

// bench is a user with a login, and a run that wants it.
type bench struct {
	user   string // the home of the user
	inside home
	lender Lender
}

func newBench(t *testing.T, login string) bench {
	t.Helper()
	b := bench{user: t.TempDir(), inside: home(t.TempDir())}
	// A pattern would not find what is below such a name.
	b.lender = Lender{Dir: filepath.Join(t.TempDir(), "a[b", "logins"), Holder: loop.Holder{PID: 4711, Node: "here"}, Run: "rn_1"}
	write(t, b.file(), login)
	return b
}

func (b bench) file() string { return filepath.Join(b.user, ".claude", ".credentials.json") }

// copied is the login as the program sees it.
func (b bench) copied() string {
	return filepath.Join(string(b.inside), ".claude", ".credentials.json")
}

func (b bench) credential(t *testing.T) Credential {
	t.Helper()
	c, err := Find(Want{Profile: claude, Auth: loop.AuthLend, Home: b.user, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b bench) lend(t *testing.T) *Loan {
	t.Helper()
	loan, err := b.lender.Lend(t.Context(), b.credential(t), b.inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = loan.Return(t.Context()) })
	return loan
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Return ends a loan as a run of one turn does, in which the vendor answered.
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

// kept is the login that is kept by an id, and empty for none.
func (b bench) kept(t *testing.T, id string) string {
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

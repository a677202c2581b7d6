package engine_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// confinedLogin is a program in the sandbox that has a login, and may reach the
// host that renews it.
type confinedLogin struct{ command.Driver }

func (confinedLogin) Profile() agent.Profile {
	hosts := []string{"tokens.example.com", "models.example.com"}
	return agent.Profile{Name: "signed", Program: "sh", Home: true, Login: agent.Login{Files: []string{loginName}, Hosts: hosts, Renews: hosts[:1]}}
}

// greets is what a client says first to a host with which it wants to speak TLS.
func greets(t *testing.T, host string) string {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(here, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS13}).HandshakeContext(t.Context())
	}()
	first := make([]byte, 16<<10)
	n, err := there.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	_ = there.Close()
	return string(first[:n])
}

// A program in the sandbox writes another login. Whether the user's file gets it
// depends on what the run came to, and on whether the host that renews it has
// answered.
func TestAttack084InFullALoginThatTheAgentReplacedIsKeptBesideTheUsers(t *testing.T) {
	const asks = `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n' $1 $1 >&3; read -r line <&3; read -r line <&3
cat $2 >&3; head -c 5 <&3; printf reply >&3; head -c 6 <&3`
	for name, c := range map[string]struct {
		host    string // that is asked
		change  string
		outcome loop.Outcome
		back    bool
	}{
		"renewed":                        {"tokens.example.com", "echo two >src/a.txt", loop.OutcomeProposed, true},
		"a refused run":                  {"tokens.example.com", "echo two >elsewhere", loop.OutcomeRefused, false},
		"only another host has answered": {"models.example.com", "echo two >src/a.txt", loop.OutcomeProposed, false},
		"the host did not answer":        {"", "echo two >src/a.txt", loop.OutcomeProposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, file := lender(t)
			first, second := read(t, file), login("second", time.Now().Add(2*time.Hour))
			p.confine()
			p.deps.Drivers["signed"] = turn.Driver(confinedLogin{})
			p.deps.Egress = func(e *meter.Egress) {
				e.Resolve = func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
				}
				e.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
					here, there := net.Pipe()
					go func() {
						defer there.Close()
						_, _ = there.Read(make([]byte, 16<<10))
						_, _ = io.WriteString(there, "greet")
						_, _ = io.ReadFull(there, make([]byte, 5))
						_, _ = io.WriteString(there, "answer")
					}()
					return here, nil
				}
			}
			p.engine = engine.New(p.deps)
			gittest.WriteFile(t, filepath.Join(p.root, "asks.sh"), asks)
			gittest.WriteFile(t, filepath.Join(p.root, "second.json"), second)
			script := "cp second.json $HOME/" + loginName + "; " + c.change
			if c.host != "" {
				gittest.WriteFile(t, filepath.Join(p.root, "hello"), greets(t, c.host))
				script = "timeout 10 bash asks.sh " + c.host + " hello >/tmp/said 2>&1; cat /tmp/said; " + script
			}
			gittest.Run(t, p.root, "add", "-A")
			gittest.Run(t, p.root, "commit", "-q", "-m", "more")
			target := p.signs("a", false)
			target.Definition.AgentCommand, target.Definition.Sandbox, target.Definition.Setup = script, "full", "none"
			run := p.run(target, engine.Firing{})
			told := p.told(run.ID)
			if run.Outcome != c.outcome {
				t.Fatalf("run = %s %s %q, want %s\n%s", run.Outcome, run.Reason, run.Detail, c.outcome, told)
			}
			file1, kept := first, second
			if c.back {
				file1, kept = second, first
			}
			if got := read(t, file); got != file1 {
				t.Errorf("the user's login = %s, want %s\n%s", got, file1, told)
			}
			if got := p.keptLogin(told); got != kept {
				t.Errorf("kept is %q, want %q\n%s", got, kept, told)
			}
			var links []loop.Link
			if err := p.deps.Store.View(t.Context(), func(r *store.Reader) (err error) {
				links, err = r.Chain(t.Context(), run.LoopID)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(links, func(l loop.Link) bool {
				return l.Kind == loop.LinkLogin && l.RunID == run.ID && strings.Contains(l.Body, `"agent":"signed"`) && !strings.Contains(l.Body, "tok-")
			}) {
				t.Errorf("the audit chain says nothing of it: %+v", links)
			}
		})
	}
}

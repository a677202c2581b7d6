package engine_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// confine makes the rig run programs in the full sandbox, which a Linux host
// must have for the tests.
func (r *rig) confine() {
	r.t.Helper()
	if err := sandbox.Check(r.t.Context(), r.home, sandbox.Full); err != nil {
		r.t.Fatal(err)
	}
	r.deps.Environ = proc.WithVariables(r.deps.Environ, "HTTPS_PROXY=", "https_proxy=")
	r.deps.Exec, r.deps.Drivers = proc.Tree{}, map[string]turn.Driver{"command": command.Driver{}}
	r.engine = engine.New(r.deps)
}

// packages is a host of packages in the world outside, which really is on
// loopback. It counts what it was asked for.
func (r *rig) packages(name string) *atomic.Int64 {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "a dependency\n")
	}))
	r.t.Cleanup(server.Close)
	public := netip.MustParseAddr("93.184.216.34")
	r.deps.Egress = func(e *meter.Egress) {
		e.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host != name {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return []netip.Addr{public}, nil
		}
		e.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}
	}
	return &asked
}

// fetch prints what http://HOST/ answers, by the shell's own means.
const fetch = `fetch() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "GET http://'$1'/ HTTP/1.1\r\nHost: '$1'\r\nConnection: close\r\n\r\n" >&3; cat <&3'; }; `

func TestDependenciesArePreparedOnceAndNoProgramChangesThem(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		asked := r.packages("packages.test")
		r.confine()
		gittest.WriteFile(t, filepath.Join(r.root, ".gitignore"), "deps/\n")
		gittest.Run(t, r.root, "add", "-A")
		gittest.Run(t, r.root, "commit", "-q", "-m", "ignore")
		target := r.target("u", boardLike{nil, []string{"work"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Sandbox: "full", MaxIterations: 1,
			Setup: fetch + `mkdir -p deps && fetch packages.test > deps/a && cd src && echo mine > a.txt`, Network: []string{"packages.test"},
			AgentCommand: `grep -q "a dependency" deps/a && echo spoiled > deps/a && echo more > deps/b && echo two > src/a.txt`,
			Verify:       `grep -q "a dependency" deps/a && test ! -e deps/b && grep -q two src/a.txt && echo gate > deps/a`,
			Guard:        `test -e deps/a`,
		})
		for i := range 2 {
			target.Protocol = boardLike{nil, []string{"work " + strings.Repeat("x", i)}}
			run := r.run(target, engine.Firing{})
			if run.Outcome != loop.OutcomeProposed {
				t.Fatalf("run %d = %s %s %q\n%s", i, run.Outcome, run.Reason, run.Detail, r.said())
			}
			if got := gittest.Run(t, r.root, "diff", "--name-only", run.BaseCommit, run.Branch); got != "src/a.txt" {
				t.Errorf("run %d proposes %q", i, got)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("the host of packages was asked %d times, want once", n)
		}
	})
}

func TestAHostThatTheDefinitionDoesNotNameIsDeniedAndSaid(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		asked := r.packages("elsewhere.test")
		r.confine()
		target := r.target("u", boardLike{nil, []string{"work"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Sandbox: "full", MaxIterations: 1, Setup: "none",
			AgentCommand: fetch + `fetch elsewhere.test; echo two > src/a.txt`, Verify: "true",
		})
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || asked.Load() != 0 {
			t.Errorf("run = %s %q, the host was asked %d times", run.Outcome, run.Detail, asked.Load())
		}
		for _, want := range []string{"elsewhere.test:80", "network: [elsewhere.test", "403"} {
			if !strings.Contains(r.said(), want) {
				t.Errorf("nothing says %q:\n%s", want, r.said())
			}
		}
	})
}

func TestASetUpThatFailsEndsTheRunBeforeAnyTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.confine()
		target := r.target("u", boardLike{nil, []string{"work"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, Sandbox: "full",
			Setup: "echo the lockfile is broken; exit 3", AgentCommand: "echo two > src/a.txt", Verify: "true",
		})
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonSetupFailed || !strings.Contains(run.Detail, "the lockfile is broken") || run.Usage.Output != 0 {
			t.Errorf("run = %s %s %q, used %+v", run.Outcome, run.Reason, run.Detail, run.Usage)
		}
		if left := left(t, r.home); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if entries, _ := os.ReadDir(filepath.Join(r.home, "setups")); strings.Contains(names(entries), "tree") || len(entries) > 1 {
			t.Errorf("a failed set-up is kept: %s", names(entries))
		}
	})
}

func names(entries []os.DirEntry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// said is all that the events of the rig's runs say.
func (r *rig) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		b.WriteString(e.Kind + ": " + e.Text + "\n")
	}
	return b.String()
}

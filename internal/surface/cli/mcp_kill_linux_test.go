package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/test/sample"
)

// victims are what is killed in the middle of a call.
var victims = map[string]struct {
	withDaemon bool
	kill       func(call, daemon *exec.Cmd)
}{
	"the client with the server in whose process it runs": {false, func(call, _ *exec.Cmd) { _ = syscall.Kill(-call.Process.Pid, syscall.SIGKILL) }},
	"the client, whose server lives on":                   {false, func(call, _ *exec.Cmd) { _ = call.Process.Kill() }},
	"the daemon":                                          {true, func(_, daemon *exec.Cmd) { _ = daemon.Process.Kill() }},
}

// TestACallWithAKeyThatIsKilledActsOnce creates loops and carries out a step of each, kills
// somebody in the middle of the calls, and repeats each call until it is answered: there is one
// loop and one run for each key.
func TestACallWithAKeyThatIsKilledActsOnce(t *testing.T) {
	t.Parallel()
	for name, victim := range victims {
		draw := rand.New(rand.NewPCG(3, uint64(len(name))))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, t.TempDir())
			p.pawl("init", "--yes", "--no-loop")
			p.pawl("agent", "create", "@slow", "--driver", "command", "--agent-command", "sleep 0.1; date +%s%N >src/x.txt; sleep 0.1")
			kills, repeated := 0, 0
			// insist calls a tool until it is answered. It kills within a time at first.
			insist := func(within time.Duration, into any, args ...string) {
				t.Helper()
				for {
					var daemon *exec.Cmd
					if victim.withDaemon {
						daemon = p.up()
					}
					call := exec.Command("mcpclient", append([]string{"--structured"}, args...)...)
					call.Dir, call.Env, call.SysProcAttr = filepath.Join(p.dir, "repo"), p.env, &syscall.SysProcAttr{Setpgid: true}
					var out, said strings.Builder
					call.Stdout, call.Stderr, call.WaitDelay = &out, &said, time.Minute // A server that lives on has standard error, too.
					if err := call.Start(); err != nil {
						t.Fatal(err)
					}
					killed := time.AfterFunc(time.Duration(draw.Int64N(int64(within))), func() { victim.kill(call, daemon) })
					err := call.Wait()
					if !killed.Stop() {
						kills++
					}
					if victim.withDaemon {
						_ = daemon.Process.Kill()
						_ = daemon.Wait()
					}
					switch {
					case err == nil:
						if err := json.Unmarshal([]byte(out.String()), into); err != nil {
							t.Fatalf("%v: %s", err, out.String())
						}
						return
					case err.Error() != "signal: killed" && !victim.withDaemon:
						t.Fatalf("%v: %v: %s", args, err, said.String())
					}
					repeated++
					within += within / 4 // A machine that is busy must not kill each try.
				}
			}
			for try := range sample.Size(2, 67) {
				var made struct{ Spec struct{ ID string } }
				insist(300*time.Millisecond, &made, "loop_create", fmt.Sprintf("goal=Number %d.", try), "agentId=slow", fmt.Sprintf("idempotency_key=c%d", try))
				id := made.Spec.ID
				var stepped struct {
					Run struct{ Spec struct{ ID string } }
				}
				insist(1200*time.Millisecond, &stepped, "loop_run_step", "loopId="+id, fmt.Sprintf("idempotency_key=s%d", try))
				if stepped.Run.Spec.ID != id || id == "" {
					t.Fatalf("the loop %s was stepped, want %s", stepped.Run.Spec.ID, id)
				}
				p.pawl("recover")
				for want, args := range map[string][]string{
					fmt.Sprint(try + 1): {"spec", "list", "--limit", "1000", "--jq", ".data | length"},
					"1":                 {"show", id, "--jq", ".last_n"},
				} {
					shown := strings.TrimSpace(p.pawl(args...)) // A warning that the daemon has died may be before it.
					if have := shown[strings.LastIndex(shown, "\n")+1:]; have != want {
						t.Fatalf("after try %d, %d kills and %d repeated calls, pawl %v says %s, want %s", try, kills, repeated, args, have, want)
					}
				}
			}
			t.Logf("%d kills, %d calls repeated", kills, repeated)
		})
	}
}

// up starts a daemon that the caller ends.
func (p *place) up() *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command("pawl", "up")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for !strings.Contains(p.transcript([]string{"up", "--socket"}), "exit status 0") {
		time.Sleep(20 * time.Millisecond)
	}
	return cmd
}

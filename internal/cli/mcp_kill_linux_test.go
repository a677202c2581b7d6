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

// TestACallWithAKeyThatIsKilledRunsOnce kills the client with its server, or the daemon, in the
// middle of a call, and repeats the call until it is answered: there is one run for each key.
func TestACallWithAKeyThatIsKilledRunsOnce(t *testing.T) {
	t.Parallel()
	for name, withDaemon := range map[string]bool{"the server in whose process it runs": false, "the daemon": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, t.TempDir())
			p.write("repo/.loops/slow/loop.config.yaml", loopDefinition("name", "slow", "agent_command", "sleep 0.1; date +%s%N >src/x.txt; sleep 0.1", "scope", "src/x.txt", "guard", "true"))
			draw := rand.New(rand.NewPCG(3, 5))
			kills := 0
			for try := range sample.Size(6, 100) {
				args := []string{"--structured", "loop_run", "loop=slow", "wait=true", fmt.Sprintf("idempotency_key=k%d", try)}
				for answered := false; !answered; {
					var victim *exec.Cmd
					if withDaemon {
						victim = p.up()
					}
					call := exec.Command("mcpclient", args...)
					call.Dir, call.Env, call.SysProcAttr = filepath.Join(p.dir, "repo"), p.env, &syscall.SysProcAttr{Setpgid: true}
					var out, said strings.Builder
					call.Stdout, call.Stderr = &out, &said
					if err := call.Start(); err != nil {
						t.Fatal(err)
					}
					kill := func() { _ = syscall.Kill(-call.Process.Pid, syscall.SIGKILL) }
					if withDaemon {
						kill = func() { _ = victim.Process.Kill() }
					}
					killed := time.AfterFunc(time.Duration(draw.IntN(1500))*time.Millisecond, kill)
					err := call.Wait()
					if !killed.Stop() {
						kills++
					}
					if withDaemon {
						_ = victim.Process.Kill()
						_ = victim.Wait()
					}
					if answered = err == nil; !answered && err.Error() != "signal: killed" && !withDaemon {
						t.Fatalf("%v: %s", err, said.String())
					}
					if answered {
						var run struct{ ID, State string }
						if err := json.Unmarshal([]byte(out.String()), &run); err != nil || run.State != "ended" {
							t.Fatalf("%v: %s", err, out.String())
						}
					}
				}
				p.pawl("recover")
				shown := strings.TrimSpace(p.pawl("show", "slow", "--jq", ".last_n")) // A warning that the daemon has died may be before it.
				if have := shown[strings.LastIndex(shown, "\n")+1:]; have != fmt.Sprint(try+1) {
					t.Fatalf("after %d keys and %d kills there are %s runs", try+1, kills, have)
				}
			}
			t.Logf("%d kills", kills)
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

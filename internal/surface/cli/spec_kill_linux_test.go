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

// TestASpecThatIsKilledAtRandomCountsNoIterationTwiceAndKeepsToItsBudget kills runs of specs
// at random points, again and again, until each has used up its budget.
func TestASpecThatIsKilledAtRandomCountsNoIterationTwiceAndKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	const mostIterations, mostTokens = 5, 100_000
	p := newPlace(t, t.TempDir())
	p.pawl("agent", "create", "@slow", "--driver", "command", "--agent-command", `sleep 0.05; date +%s%N >src/b.txt; sleep 0.05; printf '{"outcome":"done"}' >"$PAWL_REPORT"`)
	p.write("repo/spec.json", fmt.Sprintf(`{"agentId": "@slow", "goal": "It says two.", "loopType": "deterministic", "trigger": {"type": "manual"}, "stateSource": "diff",
		"gates": [{"name": "two", "kind": "command", "check": "grep -q two src/a.txt"}], "budget": {"maxIterations": %d, "maxTokens": %d, "maxWallClockMs": 9000000},
		"giveUp": "same gate 99× → stop", "errorPolicy": "retry 1×, then stop", "guardrails": ["edits limited to /src"], "humanGate": ""}`, mostIterations, mostTokens))
	draw := rand.New(rand.NewPCG(7, 11))
	const shortest = 700 * time.Millisecond
	within := shortest
	for kills := 0; kills < sample.Size(12, 150); {
		id := strings.TrimSpace(p.pawl("spec", "create", "--file", "spec.json"))
		for status := ""; status != "gave_up"; {
			cmd := exec.Command("pawl", "run", id, "--sandbox", "none")
			cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), p.env
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killed := time.AfterFunc(time.Duration(draw.Int64N(int64(within))), func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			_ = cmd.Wait()
			if !killed.Stop() {
				kills++
				within += within / 4 // A machine that is busy must not kill each run before it did anything.
			} else {
				within = shortest
			}
			p.pawl("recover")
			var v struct {
				Status     string `json:"status"`
				TokensUsed int64  `json:"tokensUsed"`
				Iterations []struct {
					N      int   `json:"n"`
					Tokens int64 `json:"tokens"`
				} `json:"iterations"`
			}
			if err := json.Unmarshal([]byte(p.pawl("spec", "get", id, "--json")), &v); err != nil {
				t.Fatal(err)
			}
			var list struct {
				Data []struct {
					ID         string `json:"id"`
					Iterations int    `json:"iterations"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(p.pawl("spec", "list", "--json")), &list); err != nil {
				t.Fatal(err)
			}
			var sum int64
			for i, it := range v.Iterations {
				sum += it.Tokens
				if it.N != i+1 {
					t.Fatalf("iteration %d has the number %d", i+1, it.N)
				}
			}
			counted := -1
			for _, row := range list.Data {
				if row.ID == id {
					counted = row.Iterations
				}
			}
			if counted != len(v.Iterations) || counted > mostIterations || sum != v.TokensUsed || v.TokensUsed > mostTokens {
				t.Fatalf("after %d kills: %d iterations are counted, the trace has %d with %d tokens, and %d tokens are counted", kills, counted, len(v.Iterations), sum, v.TokensUsed)
			}
			status = v.Status
		}
	}
}

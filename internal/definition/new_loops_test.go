package definition_test

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/pattern"
	"github.com/pawl-run/pawl/internal/protocol/spine"
)

func TestNewLoopsAreSimpleForEveryPatternAndTier(t *testing.T) {
	n := 0
	for _, p := range pattern.All() {
		for _, tier := range []loop.Tier{loop.TierReport, loop.TierAssisted, loop.TierUnattended} {
			files, err := spine.Scaffold(spine.LoopRequest{
				Name: "x-1", Pattern: p.Name, Tier: tier, Cadence: "0 9 * * 1-5", Sense: `gh pr list --search "is: #1"`, Setup: "npm ci", LandVia: "fleet-ops",
				Agent: "command", AgentCommand: "my-agent --yes", Env: []string{"HOME", "TERM"}, Now: time.Unix(1e9, 0),
			})
			if err != nil {
				t.Fatal(err)
			}
			text := string(files[len(files)-1].Body)
			if n++; !definition.CheckSimple(t, text) {
				t.Errorf("%s at %s: not simple:\n%s", p.Name, tier, text)
			}
		}
	}
	if want := 3 * len(pattern.Names()); n != want || n == 0 {
		t.Errorf("%d definitions, want %d", n, want)
	}
}

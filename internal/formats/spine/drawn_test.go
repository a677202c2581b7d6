package spine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

// The definitions of new loops are drawn into one file, of each pattern at each tier,
// which the tests of package definition read as well.
func TestNewLoopsDrawn(t *testing.T) {
	var all []string
	for _, p := range pattern.All() {
		for _, tier := range []loop.Tier{loop.TierReport, loop.TierAssisted, loop.TierUnattended} {
			files, err := spine.Scaffold(format.LoopRequest{
				Name: "x-1", Pattern: p.Name, Tier: tier, Cadence: "0 9 * * 1-5", Sense: `gh pr list --search "is: #1"`, Setup: "npm ci", LandVia: "fleet-ops",
				Agent: "command", AgentCommand: "my-agent --yes", Env: []string{"HOME", "TERM"}, Now: time.Unix(1e9, 0),
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(files[len(files)-1].Body))
		}
	}
	drawn.File(t, "testdata/newloops.txt", strings.Join(all, "\f\n"))
}

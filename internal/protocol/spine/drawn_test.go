package spine_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/pattern"
	"github.com/pawl-run/pawl/internal/protocol/spine"
)

var update = flag.Bool("update", false, "rewrite testdata/newloops.txt")

// The definitions of new loops are drawn into one file, of each pattern at each tier,
// which the tests of package definition read as well.
func TestNewLoopsDrawn(t *testing.T) {
	const file = "testdata/newloops.txt"
	var all []string
	for _, p := range pattern.All() {
		for _, tier := range []loop.Tier{loop.TierReport, loop.TierAssisted, loop.TierUnattended} {
			files, err := spine.Scaffold(spine.LoopRequest{
				Name: "x-1", Pattern: p.Name, Tier: tier, Cadence: "0 9 * * 1-5", Sense: `gh pr list --search "is: #1"`, Setup: "npm ci", LandVia: "fleet-ops",
				Agent: "command", AgentCommand: "my-agent --yes", Env: []string{"HOME", "TERM"}, Now: time.Unix(1e9, 0),
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(files[len(files)-1].Body))
		}
	}
	drawn := strings.Join(all, "\f\n")
	if *update {
		if err := os.WriteFile(file, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), drawn); diff != "" {
		t.Errorf("%s is stale; if the change is meant, run: go test ./internal/protocol/spine -run Drawn -update\n(-file +now)\n%s", file, diff)
	}
}

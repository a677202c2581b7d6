package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/definitions/config"
)

// simulatedMonth lets pawl sim, as a whole process, simulate 30 days of 200 loops that fire
// every six hours.
func simulatedMonth(b *testing.B) []row {
	b.Helper()
	bin := buildPawl(b)
	s := newFixture(b, 5, "")
	for i := range 200 {
		s.loopEvery(fmt.Sprintf("l%03d", i), "L2", "6h", writes)
	}
	var r sim.Result
	var took []time.Duration
	for range 3 {
		took = append(took, timed(func() {
			cmd := exec.CommandContext(b.Context(), bin, "sim", "--days", "30", "--json")
			cmd.Dir, cmd.Env = s.root, append(os.Environ(), config.EnvHome+"="+s.home)
			out, err := cmd.Output()
			s.must(err)
			s.must(json.Unmarshal(out, &r))
		}))
	}
	if r.Total.Planned != 24_000 {
		b.Fatalf("%d runs were planned, want 24,000", r.Total.Planned)
	}
	return []row{{"`pawl sim --days 30` of 200 loops at 6 h, 24,000 runs, as a whole process", millis(median(took)), "< 10 s", perSecond(r.Total.Planned, median(took)), ""}}
}

// fewLoops measures the memory of a daemon with a hundred loops of which nothing is due.
func fewLoops(b *testing.B) []row {
	b.Helper()
	s := newFixture(b, 5, "")
	for i := range 100 {
		s.loop(fmt.Sprintf("l%03d", i), "L1", "agent: command\nagent_command: 'true'")
	}
	d := s.up(buildPawl(b), "")
	defer d.end()
	time.Sleep(10 * time.Second)
	return []row{{"memory of pawl up with 100 loops", d.memory(), "< 40 MB", "", ""}}
}

package definition

import (
	"testing"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// realistic is an L2 definition of twenty lines, as people keep them.
const realistic = `# keep-green: watches CI and repairs what is small.
name: keep-green
pattern: ci-watch            # of the catalogue
tier: L2                     # graduated from L1 in March
permission_mode: acceptEdits
cadence: "*/15 8-18 * * 1-5" # office hours
goal: "Detect red CI, classify it and propose a fix for #flaky ones; never merge"
scope:
  - "src/**"
  - internal/**/*.go         # not the generated ones
  - docs/*.md

# What judges the work.
verify: go test ./...
guard: go vet ./... && go build ./...
worktree: true
land_via: human
escalation: flaky or infra failures, and anything near deploy or secrets
budget_tokens: 200000        # output tokens of one run
kill_switch: ".loops/keep-green/PAUSED exists, OR the loop-pause label is set"
`

func BenchmarkCheck(b *testing.B) {
	data := []byte(realistic)
	b.ReportAllocs()
	for b.Loop() {
		doc, err := Parse("loop.config.yaml", data)
		if err != nil {
			b.Fatal(err)
		}
		verdict, more := doc.Check()
		if verdict.Score() != 100 || !verdict.Ready(readiness.LeastScore, true) || len(more) > 0 {
			b.Fatal(verdict, more)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "configs/s")
}

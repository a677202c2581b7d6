package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goccy/go-yaml/parser"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/test/hostile"
)

// keepGreen is an L2 definition of twenty lines, as people keep them.
const keepGreen = `# keep-green: watches CI and repairs what is small.
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
agent: command
`

// definitionsPerSecond reads and judges a definition over and over on one core,
// the collector included, in turns with a YAML parser that does nothing else.
func definitionsPerSecond(b *testing.B) []row {
	b.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	data := []byte(keepGreen)
	const rounds, each = 21, 500
	var checked, bare []time.Duration
	for range rounds {
		checked = append(checked, timed(func() {
			for range each {
				checkOnce(b, data)
			}
		}))
		bare = append(bare, timed(func() {
			for range each {
				if _, err := parser.ParseBytes(data, 0); err != nil {
					b.Fatal(err)
				}
			}
		}))
	}
	ours, theirs := median(checked), median(bare)
	return []row{{
		"definitions read and checked, one core", perSecond(each, ours), "≥ 10,000/s", "goccy's parser alone " + perSecond(each, theirs), ratio(ours, theirs),
	}}
}

// hostileDefinitions says how long the one that takes longest is read, of those
// that are intricate and not just long.
func hostileDefinitions(b *testing.B) []row {
	b.Helper()
	var worst time.Duration
	var name string
	for what, text := range hostile.Texts() {
		if len(text.Text) >= hostile.Large {
			continue
		}
		var took []time.Duration
		for range 5 {
			took = append(took, timed(func() { _, _ = definition.Parse("loop.config.yaml", []byte(text.Text)) }))
		}
		if m := median(took); m > worst {
			worst, name = m, what
		}
	}
	return []row{{"hostile definition that is read slowest", millis(worst), "< 50 ms", name, ""}}
}

func checkOnce(b *testing.B, data []byte) {
	b.Helper()
	doc, err := definition.Parse("loop.config.yaml", data)
	if err != nil {
		b.Fatal(err)
	}
	verdict, more := doc.Check()
	if verdict.Score() != 100 || !verdict.Ready(readiness.LeastScore, true) || len(more) > 0 {
		b.Fatal(verdict, more)
	}
}

func perSecond(n int, took time.Duration) string {
	return fmt.Sprintf("%.0f/s", float64(n)/took.Seconds())
}

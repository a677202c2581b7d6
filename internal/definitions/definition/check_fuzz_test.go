package definition

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// checkStarts are the beginnings of the messages that count.
var checkStarts = regexp.MustCompile(`^(name: missing or placeholder|pattern: missing|tier: must be |cadence: .|` +
	`goal: missing or placeholder|escalation: undefined|kill_switch: undefined|budget_tokens: missing or non-numeric|` +
	`scope: missing|scope: unfilled placeholder \('.*'\)|scope: unbounded \('.*'\)|permission_mode: missing|` +
	`permission_mode: invalid \('.*'\)|permission_mode '.*'|verify: no gate command|guard: no must-always-pass command|` +
	`worktree: must be true|land_via: undefined|L3 declares no isolation)`)

func FuzzCheck(f *testing.F) {
	for _, line := range oddLines {
		f.Add([]byte(realistic + line + "\n"))
	}
	f.Add([]byte(configA))
	f.Add([]byte(strings.ReplaceAll(configB, "\n", "\r\n")))
	f.Add([]byte("\ufefftier: L3\nescalation: in a container\nscope: [\"*\"]\n"))
	f.Add([]byte("cadence: 0 0 31 2 *\npermission_mode: default\nbudget_tokens: 99999999999999999999\n"))
	f.Add([]byte("tier:L1\nscope:\n- <x>\n- **\n\xff\xfe"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse("x.yaml", data)
		if err != nil {
			return
		}
		verdict, more := doc.Check()
		if s := verdict.Score(); s < 0 || s > 100 || verdict.Passed > verdict.Total {
			t.Fatalf("score %d, %d of %d", s, verdict.Passed, verdict.Total)
		}
		if verdict.Errors+verdict.Warnings != len(verdict.Findings) || verdict.Tier == "" {
			t.Fatalf("verdict %+v", verdict)
		}
		for _, finding := range verdict.Findings {
			if finding.Kind != readiness.KindCheck || !checkStarts.MatchString(finding.Message) {
				t.Fatalf("finding %+v", finding)
			}
			checkShape(t, finding)
		}
		for _, finding := range more {
			if finding.Kind == readiness.KindCheck {
				t.Fatalf("finding %+v", finding)
			}
			checkShape(t, finding)
		}
		for _, row := range readiness.DoctorRows(doc.Config(), 1, true) {
			if strings.ContainsAny(row.Detail+row.Fix, "\t\n\r\x1b") {
				t.Fatalf("row %+v", row)
			}
		}
	})
}

func checkShape(t *testing.T, f readiness.Finding) {
	t.Helper()
	if strings.ContainsAny(f.Message, "\n\r\x1b") || f.Line < 1 || f.Column < 1 || f.Severity == "" {
		t.Fatalf("finding %+v: want one line at a place", f)
	}
}

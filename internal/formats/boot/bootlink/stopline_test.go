package bootlink

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

const stopTable = `# Stop lines

| Condition | Action |
|---|---|
| Errors | see below |

| Metric | Warning | Critical |
|:--|--:|--:|
| Iterations | 10 | 20 |
| Error count | > 2 | ≥ 4 |
| Time (minutes) | 15 | 45 minutes |
| Confidence | below 0.8 | < 60% |
| Tokens | 1 | 2 |
`

func TestStopLinesAreReadFromTheirTable(t *testing.T) {
	lines, findings, notes := ParseStopLines([]byte(stopTable))
	want := []stopline.Line{
		{Metric: stopline.Iterations, Warning: new(10.0), Critical: new(20.0)}, {Metric: stopline.Errors, Warning: new(2.0), Critical: new(4.0)}, {Metric: stopline.Minutes, Warning: new(15.0), Critical: new(45.0)}, {Metric: stopline.Confidence, Warning: new(0.8), Critical: new(0.6)},
	}
	if diff := cmp.Diff(want, lines); diff != "" || len(findings) > 0 {
		t.Error(findings, diff)
	}
	if len(notes) != 1 || notes[0].String() != "13:3: 'Tokens' is not counted by pawl, and is not enforced" {
		t.Errorf("notes = %v", notes)
	}
}

func TestAMetricWithoutARowHasItsDefault(t *testing.T) {
	lines, findings, _ := ParseStopLines([]byte("| Metric | Unit | Critical | Warning |\n|---|---|---|---|\n| Time (hours) | h | 2 | 1 |\n| Errors | - | 9 | none |\n"))
	want := []stopline.Line{
		{Metric: stopline.Iterations, Warning: new(50.0), Critical: new(100.0)}, {Metric: stopline.Errors, Warning: nil, Critical: new(9.0)}, {Metric: stopline.Minutes, Warning: new(60.0), Critical: new(120.0)}, {Metric: stopline.Confidence, Warning: new(0.7), Critical: new(0.5)},
	}
	if diff := cmp.Diff(want, lines); diff != "" || len(findings) > 0 {
		t.Error(findings, diff)
	}
	if lines, findings, notes := ParseStopLines([]byte("# Nothing\n")); len(findings)+len(notes) > 0 || cmp.Diff(stopline.Defaults(), lines) != "" {
		t.Errorf("without a table the lines are %v %v %v", lines, findings, notes)
	}
}

func TestARowThatIsWrittenTwiceAlikeIsOneRow(t *testing.T) {
	for row, other := range map[string]string{"| errors | - | 9 |": "| errors | 3 | 9 |", "| errors | 3 | none |": "| errors | 3 | 9 |"} {
		head := "| Metric | Warning | Critical |\n|---|---|---|\n" + row + "\n"
		if _, findings, _ := ParseStopLines([]byte(head + row + "\n")); len(findings) > 0 {
			t.Errorf("%s twice: %v", row, findings)
		}
		if _, findings, _ := ParseStopLines([]byte(head + other + "\n")); len(findings) != 1 {
			t.Errorf("%s and %s: %v", row, other, findings)
		}
	}
}

func TestALimitThatCannotBeReadIsNotGuessed(t *testing.T) {
	head := "| Metric | Warning | Critical |\n|---|---|---|\n"
	for row, want := range map[string]string{
		"| errors | three | 5 |":                     "3:12: errors: 'three' is not a limit; write a number",
		"| minutes | 30 | 60 iterations |":           "3:18: minutes: '60 iterations' is not a limit; write a number",
		"| confidence | 0.7 | 50 |":                  "3:22: confidence: '50' is not a limit; write a number",
		"| errors | -3 | 5 |":                        "3:12: errors: '-3' is not a limit; write a number",
		"| errors | NaN | Inf |":                     "3:12: errors: 'NaN' is not a limit; write a number\n3:18: errors: 'Inf' is not a limit; write a number",
		"| errors | 0x10 | 5 |":                      "3:12: errors: '0x10' is not a limit; write a number",
		"| errors | 6 | 5 |":                         "3:3: errors halts before it warns; swap the limits",
		"| confidence | 0.5 | 0.7 |":                 "3:3: confidence halts before it warns; swap the limits",
		"| errors | 3 | 5 |\n| Error rate | 3 | 6 |": "4:3: errors has two rows with other limits; remove one",
	} {
		lines, findings, _ := ParseStopLines([]byte(head + row + "\n"))
		var got []string
		for _, f := range findings {
			got = append(got, f.String())
			if f.Reason != loop.ReasonBootMalformed {
				t.Errorf("%s: reason %s", row, f.Reason)
			}
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: findings %q, want %q (lines %v)", row, got, want, lines)
		}
	}
}

func FuzzParseStopLines(f *testing.F) {
	f.Add(stopTable)
	f.Add("| Metric | Critical | Warning |\n|-|-|-|\n| time | 1e9 | 1 |\n| errors | | |\n| confidence | 100% |\n")
	f.Fuzz(func(t *testing.T, src string) {
		lines, findings, notes := ParseStopLines([]byte(src))
		for _, one := range append(findings, notes...) {
			if one.Line < 1 || one.Column < 1 || one.Message == "" {
				t.Fatalf("finding %+v", one)
			}
		}
		if len(lines) != 4 {
			t.Fatalf("lines %v", lines)
		}
		if len(findings) > 0 {
			return
		}
		for _, l := range lines {
			for _, limit := range []*float64{l.Warning, l.Critical} {
				if limit != nil && !(*limit >= 0 && *limit <= 1e11) {
					t.Fatalf("the limit %v of %s", *limit, l.Metric)
				}
			}
		}
		// More of everything never takes a halt back.
		few := stopline.Judge(lines, stopline.Counters{Iterations: 3, Errors: 3, Minutes: 3, Confidence: new(0.6)})
		many := stopline.Judge(lines, stopline.Counters{Iterations: 30, Errors: 30, Minutes: 30, Confidence: new(0.3)})
		for _, one := range few {
			if one.Critical && (len(many) == 0 || !many[0].Critical) {
				t.Fatalf("%v, and later %v", few, many)
			}
		}
	})
}

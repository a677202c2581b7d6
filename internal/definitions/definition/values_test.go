package definition

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestADurationIsReadOrRefused(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1w": 7 * day, "2w": 14 * day, "1w1d": 8 * day, "1w2d3h": 9*day + 3*time.Hour, "1w30m": 7*day + 30*time.Minute, "1d": day, "2d": 2 * day,
		"1d12h": 36 * time.Hour, "90s": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "1ms": time.Millisecond,
		"52w2d": 366 * day, "366d": 366 * day,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("duration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "more than nothing", "0s": "more than nothing", "0w": "more than nothing", "0d": "more than nothing", "7": "expected a duration", "0": "expected a duration",
		"1d1w": "expected a duration", "1w1w": "expected a duration", "w": "expected a duration", "-1w": "expected a duration", "+1w": "expected a duration",
		"1.5w": "expected a duration", "1 w": "expected a duration", "1W": "expected a duration", "1w-1h": "expected a duration", "1000w": "expected a duration",
		"53w": "at most a year", "367d": "at most a year", "9000h": "at most a year", "999w": "at most a year", "9223372036s": "at most a year",
	} {
		if got, err := parseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("duration(%q) = %v, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestACountIsAWholeNumberWithinItsBounds(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "007": 7, "50": 50, "0": 0, "51": 0, "-1": 0, "+1": 0, "1.5": 0, "1e1": 0, "": 0, " 1": 0, "99999999999999999999": 0} {
		if got, err := parsePositive(text, 50); got != want || (err == nil) != (want > 0) {
			t.Errorf("positive(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestARuleForFlakyTestsIsSomeOfAtMostTen(t *testing.T) {
	for text, want := range map[string]string{
		"2 of 3": "2 of 3", " 2  of\t3 ": "2 of 3", "1 of 1": "1 of 1", "10 of 10": "10 of 10", "02 of 3": "2 of 3",
		"3 of 2": "", "0 of 3": "", "1 of 0": "", "1 of 11": "", "11 of 11": "", "2": "", "2of3": "", "a of b": "", "": "", "1 of 2 of 3": "",
	} {
		if got, err := flakyRule(text); got != want || (err == nil) != (want != "") {
			t.Errorf("flakyRule(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestDollarsAreReadToTheMillionth(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1e6, "2.50": 2_500_000, "0.000001": 1, "1000000": 1e12, "0.5": 500_000, "999999.999999": 999_999_999_999,
		"0": 0, "0.0": 0, "-1": 0, "1.": 0, ".5": 0, "1.0000001": 0, "1000001": 0, "1e3": 0, "$1": 0, "": 0,
	} {
		if got, err := parseDollars(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("dollars(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestAFileIsReadUpToItsBounds(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "key%d: x\n", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as long as it may be":        {"name: x\n#" + strings.Repeat("x", MaxBytes-len("name: x\n#")), true},
		"a byte more":                 {"name: x\n#" + strings.Repeat("x", MaxBytes-len("name: x\n#")+1), false},
		"as many keys as it may have": {"name: x\n" + keys(maxKeys-1), true},
		"a key more":                  {"name: x\n" + keys(maxKeys), false},
		"a key more that is not YAML": {"tier:L1\nname: x\n" + keys(maxKeys), false},
		"as deep as it may be":        {"name:\n" + strings.Repeat("- ", maxDashes) + "x\n", true},
		"a level more":                {"name:\n" + strings.Repeat("- ", maxDashes+1) + "x\n", false},
		"as many brackets":            {"name: x\n# " + strings.Repeat("[", maxOpeners/2) + strings.Repeat("{", maxOpeners/2) + "\n", true},
		"a bracket more":              {"name: x\n# " + strings.Repeat("[", maxOpeners/2) + strings.Repeat("{", maxOpeners/2+1) + "\n", false},
	} {
		if _, err := Parse("loop.config.yaml", []byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: Parse = %.200v, want that it is read: %v", name, err, c.ok)
		}
	}
}

func TestATextThatIsTooDeepIsNamedAsThat(t *testing.T) {
	deep := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String() + strings.Repeat(" ", n) + "b: c\n"
	}
	for name, text := range map[string]string{"mappings": deep(maxDepth + 1), "lists": "name:\n" + strings.Repeat("- ", maxDashes+1) + "x\n", "brackets": "name: " + strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2) + "\n"} {
		if _, err := Parse("loop.config.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "nested deeper than 64 levels") {
			t.Errorf("%s: Parse = %v, want that they are nested too deeply", name, err)
		}
	}
}

// A text that would take the parser long is read line by line, which says so.
func TestATextIsParsedUpToItsBounds(t *testing.T) {
	const tree = "mcp: {a: b}\n"
	for name, text := range map[string]func(more int) string{
		"bytes": func(more int) string {
			line := "# " + strings.Repeat("x", 1<<10-3) + "\n"
			text := tree + strings.Repeat(line, maxTreeBytes>>10-1)
			return text + "#" + strings.Repeat("x", maxTreeBytes-len(text)-2+more) + "\n"
		},
		"empty lines":  func(more int) string { return tree + strings.Repeat("\n", maxBlank+more) + "name: x\n" },
		"bytes a line": func(more int) string { return tree + "#" + strings.Repeat("x", maxLine-1+more) + "\n" },
		"items of all": func(more int) string {
			return tree + "scope:\n" + strings.Repeat("- a\n", maxItems/2) + "verify:\n" + strings.Repeat("- b\n", maxItems/2+more)
		},
		"items of flow": func(more int) string { return "scope: [" + strings.Repeat("a, ", maxItems-1+more) + "{b: c}]\n" },
	} {
		if doc := parse(t, text(0)); doc.Notice != "" {
			t.Errorf("as many %s as may be: %s", name, doc.Notice)
		}
		if doc := parse(t, text(1)); !strings.Contains(doc.Notice, "read line by line") {
			t.Errorf("one more of the %s: notice %q, want that it is read line by line", name, doc.Notice)
		}
	}
}

func TestNoInstructionsStandAlone(t *testing.T) {
	for text, want := range map[string]int{"none": 0, "[none]": 0, "[AGENTS.md, docs/*.md]": 0, "[none, AGENTS.md]": 1, "[AGENTS.md, none]": 1} {
		if _, findings, _ := convert(t, configA+"instructions: "+text+"\n"); len(findings) != want {
			t.Errorf("instructions: %s gives %+v, want %d findings", text, findings, want)
		}
	}
}

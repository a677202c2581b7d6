package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// told makes accounts of runs that all have a line.
func told(n int, at time.Time) []account {
	var list []account
	for i := range n {
		outcomes := []loop.Outcome{loop.OutcomeQuiet, loop.OutcomeProposed, loop.OutcomeFailed}
		list = append(list, account{
			N: int64(i + 1), Outcome: outcomes[i%3], Branch: fmt.Sprintf("pawl/x/%d", i+1), Commit: "c", Tokens: int64(i), at: at.Add(time.Duration(i) * time.Minute),
			lined: int64(i + 1),
		})
	}
	return list
}

func numbersOf(list []account) (numbers []int64) {
	for _, a := range list {
		numbers = append(numbers, a.N)
	}
	return numbers
}

func logOf(list []account) []string {
	lines := strings.SplitAfter(runlog.Header("x"), "\n")
	lines = lines[:len(lines)-1]
	for _, a := range list {
		if forms := a.lines("log"); forms != nil {
			lines = append(lines, forms[0]+"\n")
		}
	}
	return lines
}

func TestEveryEditOfALogIsFoundAtItsLine(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	const header = 2
	rapid.Check(t, func(t *rapid.T) {
		list := told(rapid.IntRange(2, 8).Draw(t, "runs"), at)
		for i, n := range rapid.Permutation(numbersOf(list)).Draw(t, "numbers") { // Runs end in any order.
			list[i].N = n
		}
		lines := logOf(list)
		if f := compareLog(strings.Join(lines, ""), "log", at, list); len(f.breaks) > 0 || f.lines != len(list) {
			t.Fatalf("an untouched log: %d lines, %v", f.lines, f.breaks)
		}
		i := rapid.IntRange(header, len(lines)-1).Draw(t, "line")
		var want int
		switch rapid.SampledFrom([]string{"edit", "remove", "insert", "repeat", "swap", "cut"}).Draw(t, "deed") {
		case "edit":
			text := []byte(lines[i])
			j := rapid.IntRange(len("2026-09-03T08:00:00Z  "), len(text)-2).Draw(t, "byte")
			text[j] ^= 1
			lines[i], want = string(text), i+1
		case "remove":
			lines, want = slices.Delete(lines, i, i+1), i+1
		case "insert":
			lines, want = slices.Insert(lines, i, strings.Replace(lines[i], "run#", "run#9", 1)), i+1
		case "repeat":
			lines, want = slices.Insert(lines, i, lines[i]), i+2
		case "swap":
			j := max(i-1, header)
			lines[i], lines[j] = lines[j], lines[i]
			if want = i + 1; i == j {
				return
			}
		case "cut":
			lines, want = lines[:i], i+1
		}
		f := compareLog(strings.Join(lines, ""), "log", at, list)
		if !slices.ContainsFunc(f.breaks, func(b Break) bool { return b.Line == want }) {
			t.Fatalf("no break at line %d: %v\n%s", want, f.breaks, strings.Join(lines, ""))
		}
	})
}

func TestALineThatTheChainWantsIsThatLineThoughTheClockWasSetBack(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	list := told(3, at)
	f := compareLog(strings.Join(logOf(list), ""), "log", at.Add(2*time.Hour), list)
	if len(f.breaks) > 0 || f.lines != 3 || len(f.earlier) != 0 {
		t.Errorf("%d lines, %d earlier, breaks %v; want the 3 lines of the chain", f.lines, len(f.earlier), f.breaks)
	}
}

func TestLinesFromBeforeTheChainAreCountedAndNotVouchedFor(t *testing.T) {
	at := time.Date(2026, 9, 3, 8, 0, 0, 0, time.UTC)
	old := "2026-06-22T14:05:00Z run#142 action=reported pr=412 outcome=escalated tokens=18420\n"
	list := told(2, at)
	lines := logOf(list)
	above := strings.Join(slices.Insert(slices.Clone(lines), 2, old), "")
	if f := compareLog(above, "log", at, list); len(f.breaks) > 0 || len(f.earlier) != 1 {
		t.Errorf("above: %v, %d earlier", f.breaks, len(f.earlier))
	}
	// What another program left is not a line of the chain that somebody changed: a line
	// that was cut off, a remark, a run of the second in which the chain begins.
	cut, remark, same := old[:40]+"\n", "moved here\n", strings.Replace(old, "2026-06-22T14:05:00Z", "2026-09-03T08:00:00Z", 1)
	goesOn := slices.Clone(list)
	for i := range goesOn {
		goesOn[i].N += 142
	}
	adopted := strings.Join(slices.Insert(logOf(goesOn), 2, remark, old, cut, same, cut), "")
	if f := compareLog(adopted, "log", at, goesOn); len(f.breaks) > 0 || len(f.earlier) != 5 {
		t.Errorf("adopted: %v, %d earlier", f.breaks, len(f.earlier))
	}
	if f := compareLog(remark+strings.Join(lines, ""), "log", at, list); len(f.breaks) != 1 {
		t.Errorf("a remark above a log that nobody adopted: %v, want a break", f.breaks)
	}
	below := strings.Join(append(slices.Clone(lines), old), "")
	if f := compareLog(below, "log", at, list); len(f.breaks) != 1 || f.breaks[0].Line != 5 {
		t.Errorf("below the chain's own lines: %v, want a break at line 5", f.breaks)
	}
}

func FuzzACopyNeverVerifiesWithOtherEntries(f *testing.F) {
	var links []loop.Link
	s, err := store.Open(context.Background(), store.Options{Database: filepath.Join(f.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.Update(context.Background(), func(tx *store.Tx) error {
		for i := range 3 {
			if err := tx.Link(context.Background(), "lp", loop.LinkKill, "", map[string]int{"i": i}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.View(context.Background(), func(r *store.Reader) (err error) {
			links, err = r.Chain(context.Background(), "lp")
			return err
		})
	}
	if err != nil {
		f.Fatal(err)
	}
	head := fmt.Sprintf(`{"schema":"pawl.audit/v1","chains":[{"chain":"lp","links":3,"head":%q}]}`, links[2].Hash)
	var body strings.Builder
	for _, l := range links {
		line, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		body.WriteString(string(line) + "\n")
	}
	f.Add(body.String())
	f.Add(strings.Replace(body.String(), `"seq":2`, `"seq":3`, 1))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		chains, err := readCopy(strings.NewReader(head + "\n" + text))
		if err != nil || !audited(chains).Intact {
			return
		}
		for i, l := range chains[0].Entries {
			if l != links[i] {
				t.Errorf("entry %d is %+v, want %+v", i+1, l, links[i])
			}
		}
	})
}

func TestOnlyAYesOpensAPullRequestInTheLog(t *testing.T) {
	for reason, want := range map[loop.Reason]bool{loop.ReasonApproved: true, loop.ReasonGatesPass: false} {
		a := account{N: 1, Outcome: loop.OutcomeProposed, Reason: reason, Subject: "pr=https://x.test/31"}
		if got := strings.Contains(strings.Join(a.lines("log"), "\n"), "outcome="+runlog.PullRequest); got != want {
			t.Errorf("%s: the lines are %q, want a pull request: %v", reason, a.lines("log"), want)
		}
	}
}

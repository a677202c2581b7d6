package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

const (
	longName   = "keep-the-whole-test-suite-of-the-payment-service-green-on-every-branch"
	longPhrase = "the gates of the base branch failed three times in a row in the same way, and a person has to look at them before the next attempt"
	longPath   = "/home/somebody/work/some-company/some-repository/packages/payment-service/src/internal/handlers/refunds_test.go"
)

// tables prints each table of a command with long names, long reasons and wide values.
func tables(t *testing.T) map[string]func(p *output.Printer) error {
	t.Helper()
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	listed := []loops.Row{
		{Name: longName, Tier: loop.TierUnattended, State: "paused", LastN: 1234567, LastRun: &at, Outcome: loop.OutcomeInterrupted, Tokens: 123456789012},
		{Name: "x", State: "idle"},
	}
	ran := []runs.View{
		{Loop: longName, N: 1234567, State: "ended", Outcome: loop.OutcomeProposed, Started: &at, Branch: "pawl/" + longName + "/1234567", Tokens: runs.Tokens{Input: 1 << 40}},
		{Loop: "x", N: 1, State: "ended", Outcome: loop.OutcomeFailed, Started: &at, Reason: loop.ReasonGateFailed, Detail: longPhrase},
		{Loop: "x", N: 2, State: "ended", Outcome: loop.OutcomeReported, Started: &at, Summary: longPhrase},
	}
	asked := []approvals.View{
		{ID: "ap_06h0iqrr3vg8k6usjnpi7vrh00", Run: longName + "#1234567", State: loop.ApprovalRejected, By: "somebody.with.a.long.name@a-host.example.org", Does: longPhrase, Files: 100, Added: 123456, Removed: 123456},
		{ID: "ap_06h0iqrr3vg8k6usjnpi7vrh01", Run: "x#1", State: loop.ApprovalOpen, Expires: at.AddDate(1, 0, 0), Does: "pushes pawl/x/1 (0123456789ab) to origin and opens a pull request for main"},
	}
	capped := []budgets.Row{
		{Scope: loop.BudgetLoop, Name: longName, Window: loop.WindowMonth, What: "tokens", Cap: 1 << 50, Used: 1 << 49, Reserved: 1 << 48, Left: 1 << 49, Opens: &at, By: longPath},
	}
	models := budgets.PriceList{Meta: budgets.PricesMeta{AsOf: "2026-06-01", Source: longPath}, Data: []price.Model{{ID: "claude-a-model-with-a-long-name-and-a-date-20260601-preview-with-thinking", MinPrefix: 4096}}}
	snapshots := []runs.Snapshot{
		{Ref: "refs/pawl/snapshots/" + longName + "/7", Loop: longName, N: 7, When: at, Files: 1234567, Bytes: 1 << 50, Waits: longPhrase},
		{Loop: "x", N: 8, When: at, Dir: longPath},
	}
	logins := []roster.Login{{KeptLogin: roster.KeptLogin{ID: "lg_06h0iqrr3vg8k6usjnpi7vrh00", Agent: "claude", From: longPath, At: at, Why: longPhrase}}}
	agents := []agentRow{{Entry: roster.Entry{Agent: loop.Agent{Handle: longName, Driver: "command", Model: "claude-a-model-with-a-long-name", Role: longPhrase, Board: longName, ID: "ag_06h0iqrr3vg8k6usjnpi7vrh00"}}}}
	channels := []notices.View{
		{Channel: loop.Channel{Name: longName, Kind: loop.ChannelCommand, Target: longPath, Only: loop.NoticeNeedsYou}, NodeName: longName, Pending: 1 << 40, Last: loop.DeliveryGaveUp, Error: longPhrase, Ended: &at},
		{Channel: loop.Channel{Name: "x", Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/x"}},
	}
	told := []notices.Logged{{
		Notice:     loop.Notice{Seq: 1234567, Kind: loop.NoticeNeedsYou, Title: longName + "#1234567 " + longPhrase, At: at},
		Deliveries: []loop.NoticeDelivery{{Channel: longName, State: loop.DeliveryPending, Tries: 1 << 40, Error: longPhrase}, {Channel: "x", State: loop.DeliveryDelivered}},
	}}
	tried := []notices.Tried{{Channel: longName, Kind: loop.ChannelWebhook, Result: notices.Failed, Error: longPhrase}, {Channel: "x", Result: notices.Elsewhere, Node: longName}}
	return map[string]func(p *output.Printer) error{
		"notify list":  func(p *output.Printer) error { return printChannels(p, channels) },
		"notify log":   func(p *output.Printer) error { return printNotices(p, told) },
		"notify test":  func(p *output.Printer) error { return printTried(p, tried) },
		"ls":           func(p *output.Printer) error { return printLoops(p, "/", listed) },
		"runs":         func(p *output.Printer) error { return printRuns(p, ran) },
		"approvals":    func(p *output.Printer) error { return printApprovals(p, asked, true) },
		"budget show":  func(p *output.Printer) error { return printBudgets(p, capped) },
		"prices":       func(p *output.Printer) error { return printPrices(p, models) },
		"recover":      func(p *output.Printer) error { return printSnapshotTable(p, snapshots) },
		"agent logins": func(p *output.Printer) error { return printLogins(p, logins) },
		"agent list":   func(p *output.Printer) error { return printAgents(p, agents) },
	}
}

// printed is what a table looks like on a terminal so wide, or in a pipe.
func printed(t *testing.T, print func(p *output.Printer) error, columns int) string {
	t.Helper()
	var out, errOut bytes.Buffer
	p := &output.Printer{
		Out: &out, ErrOut: &errOut, Terminal: columns > 0, Width: func() int { return columns },
		Now: func() time.Time { return time.Date(2026, 6, 22, 14, 5, 0, 0, time.UTC) },
	}
	if err := print(p); err != nil {
		t.Fatal(err)
	}
	return output.Clean(out.String())
}

func TestNoTableBreaksAWordOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	for name, print := range tables(t) {
		table, _, _ := strings.Cut(printed(t, print, 0), "\n\n")
		for _, columns := range []int{1, 20, 40, 80, 120} {
			t.Run(fmt.Sprint(name, " at ", columns), func(t *testing.T) {
				narrow := printed(t, print, columns)
				has := map[string]bool{}
				for line := range strings.SplitSeq(narrow, "\n") {
					for word := range strings.FieldsSeq(line) {
						has[word] = true
					}
					text := strings.TrimSpace(line)
					label, rest, _ := strings.Cut(text, "  ")
					one := !strings.Contains(text, " ") || !strings.Contains(strings.TrimSpace(rest), " ") && strings.ToUpper(label) == label
					if utf8.RuneCountInString(line) > columns && columns >= 80 && !one {
						t.Errorf("a line has %d columns and more than one word:\n%s", utf8.RuneCountInString(line), line)
					}
				}
				for word := range strings.FieldsSeq(table) {
					if !has[word] {
						t.Errorf("%q is broken or missing:\n%s", word, narrow)
					}
				}
			})
		}
	}
}

func TestATableInAPipeIsOneLineARow(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]int{"ls": 3, "runs": 4, "approvals": 3, "budget show": 2, "recover": 3, "agent logins": 2, "agent list": 2, "notify list": 3, "notify log": 2, "notify test": 3} {
		if got := strings.Count(printed(t, tables(t)[name], 0), "\n"); got != rows {
			t.Errorf("%s: %d lines, want %d", name, got, rows)
		}
	}
}

func TestAnExcerptEndsWithAWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"short":                       "short",
		"twelve chars":                "twelve chars",
		"the gate failed three times": "the gate …",
		"onewordthatislong":           "onewordthat…",
		"a onewordthatislong":         "a onewordth…",
	} {
		if got := excerpt(in, 12); got != want {
			t.Errorf("excerpt(%q) = %q, want %q", in, got, want)
		}
	}
}

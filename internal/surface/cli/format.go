package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// runName is how people name a run.
func runName(v runs.View) string { return fmt.Sprintf("%s#%d", output.CleanLine(v.Loop), v.N) }

// describeTokens is a usage in words, with its source: never a bare number.
func describeTokens(t runs.Tokens) string {
	if t.Source == "" {
		return "0"
	}
	text := fmt.Sprintf("%s (%s: %s in, %s out", formatNumber(loop.Usage(t).ChargedTokens()), t.Source, formatNumber(t.Input+t.CacheWrite), formatNumber(t.Output))
	if t.CacheRead > 0 {
		text += ", " + formatNumber(t.CacheRead) + " read from cache"
	}
	return text + ")"
}

// describeTimes says where the time of a run went.
func describeTimes(s runs.Spent) string {
	return fmt.Sprintf("%s: agent %s, gates %s, sense and overhead %s", formatMillis(s.Total), formatMillis(s.Agent), formatMillis(s.Gates), formatMillis(s.Overhead))
}

// describeSandbox says what confined the agent.
func describeSandbox(tier string) string {
	if tier == "none" || tier == "" {
		return "none: the agent works in a copy, with all rights of your user"
	}
	return tier
}

// styleOutcome is an outcome with a mark, so that nobody needs colors to tell
// them apart.
func styleOutcome(s output.Style, o loop.Outcome) string {
	switch {
	case o == "":
		return ""
	case o == loop.OutcomeQuiet:
		return "– " + string(o)
	case o.IsSuccess():
		return s.Green("✓ " + string(o))
	case o.Meaning().Exit == loop.ExitWaiting, o == loop.OutcomePaused:
		return s.Yellow("! " + string(o))
	}
	return s.Red("✗ " + string(o))
}

// styleResult is an outcome with its reason, or the state of a run that has not
// ended.
func styleResult(s output.Style, o loop.Outcome, r loop.Reason, state string) string {
	if o == "" {
		return state
	}
	return joinNonEmpty(": ", styleOutcome(s, o), r.Sentence())
}

// printDetail prints the detail of a run's end. The words of an agent are quoted.
func printDetail(p *output.Printer, label string, reason loop.Reason, detail string) {
	if reason.OfAgent() {
		p.QuotedField("  ", label, detail)
		return
	}
	p.Field("  ", label, output.QuoteBelow(detail))
}

// quoteFeedback is the feedback on an attempt. If it passed, or its agent gave
// up, these are the agent's own words.
func quoteFeedback(verdict loop.Verdict, reason loop.Reason, text string) string {
	if text == "" || verdict != loop.VerdictPass && !reason.OfAgent() {
		return output.QuoteBelow(text)
	}
	if text = output.Quote(text); strings.Contains(text, "\n") {
		return "the agent says\n" + text
	}
	return text
}

// countTries says how the tries of a flaky gate went.
func countTries(g runs.Gate) string {
	if len(g.Tries) < 2 {
		return ""
	}
	passed := 0
	for _, t := range g.Tries {
		if t.Pass {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d tries passed", passed, len(g.Tries))
}

// countTests says how many tests reported, and how many on the base.
func countTests(g runs.Gate) string {
	switch {
	case g.Tests == nil:
		return ""
	case g.Base == nil:
		return pluralize(g.Tests.Ran(), "test") + " reported"
	}
	return fmt.Sprintf("%s reported, %d on the base", pluralize(g.Tests.Ran(), "test"), g.Base.Ran())
}

// formatNumber groups thousands.
func formatNumber(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// formatMillis is a time in milliseconds with a unit that suits its length.
func formatMillis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 100_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}

// formatMoney writes a finite amount for people, without a currency sign: four
// decimals below 1, else two and a comma between the thousands.
func formatMoney(x float64) string {
	if x < 1 {
		return strconv.FormatFloat(x, 'f', 4, 64)
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(x, 'f', 2, 64), ".")
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String() + "." + cents
}

// formatBytes is a number of bytes with a unit that suits it.
func formatBytes(n int64) string {
	const step = 1024
	switch {
	case n < step:
		return fmt.Sprintf("%d B", n)
	case n < step*step:
		return fmt.Sprintf("%.1f KiB", float64(n)/step)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/step/step)
}

// formatMinute is a time of UTC without seconds.
func formatMinute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// pluralize is a number and the noun that it counts.
func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// joinNonEmpty joins the parts that are not empty.
func joinNonEmpty(separator string, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, separator)
}

// excerpt is the beginning of a text on one line. It ends with a word, unless that
// would leave less than half of it.
func excerpt(text string, most int) string {
	runes := []rune(strings.TrimSpace(output.CleanLine(text)))
	if len(runes) <= most {
		return string(runes)
	}
	shown := string(runes[:max(0, most-1)])
	if at := strings.LastIndexByte(shown, ' '); at > len(shown)/2 {
		shown = shown[:at+1]
	}
	return shown + "…"
}

// clearIfEqual returns the text, or nothing if the other one says the same.
func clearIfEqual(text, other string) string {
	if text == other {
		return ""
	}
	return text
}

func orDash(text string) string { return cmp.Or(text, "–") }

// mark tells good from bad without a color.
func mark(s output.Style, ok bool) string {
	if ok {
		return s.Green("✓")
	}
	return s.Yellow("!")
}

func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// quoteArg quotes what a person typed.
func quoteArg(text string) string { return strconv.Quote(output.Clean(text)) }

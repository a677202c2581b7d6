package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

// runName is how people name a run.
func runName(v control.RunView) string { return fmt.Sprintf("%s#%d", cleanLine(v.Loop), v.N) }

// tokens is a usage in words, with how it came to be: never a bare number.
func tokens(t control.TokenView) string {
	sum := loop.Usage(t).Charged()
	if t.Source == "" {
		return "0"
	}
	text := fmt.Sprintf("%s (%s: %s in, %s out", number(sum), t.Source, number(t.Input+t.CacheWrite), number(t.Output))
	if t.CacheRead > 0 {
		text += ", " + number(t.CacheRead) + " read from cache"
	}
	return text + ")"
}

// number groups thousands.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// spent is where the time of a run went.
func spent(s control.SpentView) string {
	return fmt.Sprintf("%s: agent %s, gates %s, sense and overhead %s", millis(s.Total), millis(s.Agent), millis(s.Gates), millis(s.Overhead))
}

// millis is a time in milliseconds as people read it.
func millis(ms float64) string {
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

// ago is a time relative to now.
func ago(now time.Time, at *time.Time) string {
	if at == nil || at.IsZero() {
		return "–"
	}
	switch d := now.Sub(*at); {
	case d < 0:
		return at.UTC().Format(time.RFC3339)
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// sandbox says honestly what confined the agent.
func sandbox(tier string) string {
	if tier == "none" || tier == "" {
		return "none: the agent works in a copy, with all rights of your user"
	}
	return tier
}

// result is the outcome with its reason.
func (s style) result(o loop.Outcome, r loop.Reason, state string) string {
	if o == "" {
		return state
	}
	return joined(": ", s.outcome(o), r.Sentence())
}

// excerpt is the beginning of a text on one line. It ends with a word, unless that
// would leave less than half of it.
func excerpt(text string, most int) string {
	runes := []rune(strings.TrimSpace(cleanLine(text)))
	if len(runes) <= most {
		return string(runes)
	}
	shown := string(runes[:max(0, most-1)])
	if at := strings.LastIndexByte(shown, ' '); at > len(shown)/2 {
		shown = shown[:at+1]
	}
	return shown + "…"
}

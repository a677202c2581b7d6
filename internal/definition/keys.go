package definition

import (
	"slices"
	"strings"
)

// seedKeys are the keys of the format, in the order of its table.
var seedKeys = []string{
	"name", "pattern", "tier", "cadence", "goal", "scope", "verify", "guard", "permission_mode", "worktree",
	"escalation", "budget_tokens", "kill_switch", "land_via",
}

// ownKeys are the optional keys beside them that have an effect.
var ownKeys = []string{
	"agent", "agent_command", "model", "protocol", "sense", "base", "protect", "max_iterations", "max_step_timeout",
	"max_wall_clock", "max_items", "give_up_after", "on_blocked", "on_failure", "retry_blocked_after", "sandbox", "env",
}

// NotYet lists the keys that are defined and that this version does not
// honour. Definition never ignores one silently: it refuses those whose absence
// would change what a run may do or how it is judged, and warns of the others.
var NotYet = []string{
	"invariants", "reviewer", "reviewer_agent", "reviewer_model", "setup", "budget_usd_day", "budget_tokens_day", "on",
	"autoland", "human_gate", "stop_lines", "commit_state", "include_dirty", "provider", "base_url", "auth", "network",
	"priority", "timezone", "catch_up", "jitter",
}

// harmlessNotYet are those of NotYet without which a run is no freer: they say
// when a loop runs and who helps.
var harmlessNotYet = []string{
	"priority", "timezone", "catch_up", "jitter", "on", "autoland", "reviewer_agent", "reviewer_model",
}

// notYetDefaults are values that say what happens anyway.
var notYetDefaults = map[string]string{
	"commit_state": "false", "include_dirty": "false", "human_gate": "propose", "autoland": "none", "reviewer": "none",
	"invariants": "none", "stop_lines": "none", "on": "none", "budget_usd_day": "none", "budget_tokens_day": "none",
	"timezone": "UTC", "catch_up": "one", "jitter": "0",
}

var knownKeys = slices.Concat(seedKeys, ownKeys, NotYet)

// similarKey is the known key that an unknown one was probably meant to be, or
// nothing.
func similarKey(name string) string {
	name = strings.ReplaceAll(snake(name), "-", "_")
	best, nearest := "", 3
	for _, known := range knownKeys {
		// A short word is near many others.
		most := min(2, len(known)/3)
		if d := distance(name, known, most); d <= most && d < nearest {
			best, nearest = known, d
		}
	}
	return best
}

// snake writes killSwitch and KillSwitch as kill_switch.
func snake(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			if i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z' {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// distance counts insertions, deletions, replacements and swaps of neighbours
// between two names; above most it may give any larger number.
func distance(a, b string, most int) int {
	if gap := len(a) - len(b); gap > most || -gap > most {
		return most + 1
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j]+cost, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

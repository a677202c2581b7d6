package definition

import (
	"slices"
	"strings"
)

// seedKeys are the keys of the format, in the order of its table.
var seedKeys = named(func(f Field) bool { return f.Format })

// ownKeys are the optional keys beside them that have an effect.
var ownKeys = named(func(f Field) bool { return !f.Format && f.NotYet == "" })

// NotYet lists the keys that are defined and that this version does not
// honour. Definition never ignores one silently: it refuses those whose absence
// would change what a run may do or how it is judged, and warns of the others.
var NotYet = named(func(f Field) bool { return f.NotYet != "" })

// harmlessNotYet are those of NotYet without which a run is no freer: they say
// when a loop runs and who helps.
var harmlessNotYet = named(func(f Field) bool { return f.NotYet == NoEffect })

// notYetDefaults are values that say what happens anyway.
var notYetDefaults = defaultsOf(NotYet)

var knownKeys = slices.Concat(seedKeys, ownKeys, NotYet)

// named lists the keys for which a rule holds, in the table's order.
func named(holds func(Field) bool) []string {
	var names []string
	for _, f := range fields {
		if holds(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

func defaultsOf(names []string) map[string]string {
	defaults := map[string]string{}
	for _, f := range fields {
		if f.Default != "" && slices.Contains(names, f.Name) {
			defaults[f.Name] = f.Default
		}
	}
	return defaults
}

func similarKey(name string) string { return Similar(name) }

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

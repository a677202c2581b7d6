package definition

import "slices"

// seedKeys are the keys of the format, in the order of its table.
var seedKeys = keysWhere(func(f Field) bool { return f.Format })

// ownKeys are the optional keys of pawl that have an effect.
var ownKeys = keysWhere(func(f Field) bool { return !f.Format && f.NotYet == "" })

// NotYet lists the keys that are defined but that this version does not support. Definition
// refuses them: they would change what a run may do or how it is judged.
var NotYet = keysWhere(func(f Field) bool { return f.NotYet != "" })

// notYetDefaults are the values of these keys that describe what this version does.
var notYetDefaults = defaultsOf(NotYet)

var knownKeys = slices.Concat(seedKeys, ownKeys, NotYet)

// keysWhere returns the keys for which holds is true, in the table's order.
func keysWhere(holds func(Field) bool) []string {
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

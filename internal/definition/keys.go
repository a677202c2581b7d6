package definition

import "slices"

// seedKeys are the keys of the format, in the order of its table.
var seedKeys = keysWhere(func(f Field) bool { return f.Format })

// ownKeys are the optional keys beside them that have an effect.
var ownKeys = keysWhere(func(f Field) bool { return !f.Format && f.NotYet == "" })

// NotYet lists the keys that are defined and that this version does not
// honour. Definition never ignores one silently: it refuses those whose absence
// would change what a run may do or how it is judged, and warns of the others.
var NotYet = keysWhere(func(f Field) bool { return f.NotYet != "" })

// harmlessNotYet are those of NotYet without which a run is no freer: they say
// when a loop runs and who helps.
var harmlessNotYet = keysWhere(func(f Field) bool { return f.NotYet == NoEffect })

// notYetDefaults are values that say what happens anyway.
var notYetDefaults = defaultsOf(NotYet)

var knownKeys = slices.Concat(seedKeys, ownKeys, NotYet)

// keysWhere lists the keys for which a rule holds, in the table's order.
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

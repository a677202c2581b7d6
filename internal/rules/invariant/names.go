package invariant

// Name is a name or a function of the language of invariants.
type Name struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Example string `json:"example"` // an invariant
}

// Names lists everything of which an invariant may be made.
func Names() []Name {
	return []Name{
		{"diff.files", "how many files differ from the base", "diff.files <= 3"},
		{"diff.added", "how many lines were added", "diff.added <= 200"},
		{"diff.removed", "how many lines were removed", "diff.removed < diff.added"},
		{"diff.paths", "the paths that differ from the base", `all(diff.paths, # startsWith "src/")`},
		{"files", "the paths of all files of the candidate", `"README.md" in files`},
		{"json", "what a file of the candidate says, as JSON", `json("cov.json").total >= 80`},
		{"yaml", "what a file of the candidate says, as YAML", `yaml("app.yaml").replicas in [1, 2, 3]`},
		{"output", "what a command gate printed in this iteration", `not (output("verify") contains "deprecated")`},
		{"iteration", "the number of this iteration; the first is 1", "iteration <= 5"},
		{"tokens", "the tokens that were used so far", "tokens < 300000"},
		{"base.files", "the paths of all files of the base", "len(files) <= len(base.files) + 1"},
		{"base.json", "what a file of the base says, as JSON", `json("cov.json").total >= base.json("cov.json").total`},
		{"base.yaml", "what a file of the base says, as YAML", `yaml("app.yaml").version == base.yaml("app.yaml").version`},
		{"base.output", "what a command gate prints on the base", `len(output("lint")) <= len(base.output("lint"))`},

		{"all", "whether something is true of every value of a list", `all(files, not (# endsWith ".orig"))`},
		{"any", "whether something is true of at least one value", `any(diff.paths, # endsWith "_test.go")`},
		{"none", "whether something is true of no value", `none(diff.paths, # startsWith "vendor/")`},
		{"one", "whether something is true of exactly one value", `one(files, # endsWith "go.mod")`},
		{"filter", "the values of which something is true", `len(filter(files, # endsWith ".go")) >= 2`},
		{"map", "what is computed of each value", `max(map(values(json("cov.json").packages), #.missed)) <= 9`},
		{"find", "the first value of which something is true; nil if there is none", `find(files, # endsWith ".orig") == nil`},
		{"count", "of how many values something is true", `count(split(output("lint"), "\n"), # contains "warning") <= 1`},
		{"sum", "the sum of a list of numbers, or of what is computed of each value", `sum(values(json("cov.json").packages), #.missed) <= 12`},
		{"len", "how many values a list or an object has, or characters a text", "len(diff.paths) == diff.files"},
		{"first", "the first value of a list; nil if it is empty", `first(diff.paths) != nil`},
		{"last", "the last value of a list; nil if it is empty", `last(split("a.b", ".")) == "b"`},
		{"keys", "the names of an object, sorted", `"total" in keys(json("cov.json"))`},
		{"values", "the values of an object, in the order of its names", `all(values(json("cov.json").packages), #.missed < 10)`},
		{"min", "the smallest of some numbers, or of a list of them", "min(diff.added, diff.removed) < 50"},
		{"max", "the largest of some numbers, or of a list of them", "max(diff.added, diff.removed) < 500"},
		{"abs", "a number without its sign", "abs(diff.added - diff.removed) < 100"},
		{"floor", "the next smaller whole number", `floor(json("cov.json").total) >= 81`},
		{"ceil", "the next larger whole number", `ceil(json("cov.json").total) <= 100`},
		{"round", "the nearest whole number", `round(json("cov.json").total) >= 81`},
		{"int", "a number without what is behind its point, also of a text", `int(trim(last(split(output("size"), "=")))) <= 4096`},
		{"float", "a number, also of a text", `float("81.5") <= json("cov.json").total`},
		{"string", "a number as a text", `string(diff.files) == "2"`},
		{"lower", "a text in small letters", `lower(output("verify")) contains "ok"`},
		{"upper", "a text in capital letters", `upper(trim(output("size"))) == "SIZE=4000"`},
		{"trim", "a text without the spaces around it", `trim(output("size")) matches "^size=[0-9]+$"`},
		{"split", "the parts of a text", `len(split(output("lint"), "\n")) <= 4`},

		{"== !=", "two values are equal, or not", "diff.files == len(diff.paths)"},
		{"< <= > >=", "two numbers, or two texts in the order of their bytes", "1 <= diff.files <= 20"},
		{"+ - * / %", "numbers; + also joins texts", "diff.added + diff.removed <= 2 * 300"},
		{"and or not", "conditions, also written && || !", `diff.files <= 3 and not any(diff.paths, # endsWith ".sum")`},
		{"in", "a value is in a list, or a name in an object", `"total" in json("cov.json")`},
		{"contains startsWith endsWith", "a text has another one in it, at its start or at its end", `output("verify") contains "ok"`},
		{"matches", "a text matches a regular expression of Go, which is a constant", `output("verify") matches "(?m)^ok"`},
		{"? :", "one value or another", `"cov.json" in base.files ? json("cov.json").total >= base.json("cov.json").total : true`},
		{"?. ??", "a value that may be missing, and what to take then", `(json("cov.json")?.branches ?? 0) >= 0`},
		{"#", "the value that all, any, filter and the others look at", `all(diff.paths, len(#) < 100)`},
	}
}

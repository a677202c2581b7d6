package draft07

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// Finding is one fault of a document.
type Finding struct {
	Pointer string // of the value that is meant; of the object, if a name is missing
	Keyword string // of the schema that is not met, such as required or enum
	Name    string // that is required and missing, or that is not allowed
	Message string
	Line    int // from 1
	Column  int // characters from 1

	at int
}

// String is the finding with its place.
func (f Finding) String() string {
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, describe(f.Pointer, f.Message))
}

// mostFindings bounds what one document is told.
const mostFindings = 1000

// Validate holds a document against one of the files. It returns the findings in the
// order of their places. The source is that of the tree, or nil if it has none: then
// findings have no line.
func (s *Set) Validate(file string, doc *jsontree.Value, src []byte) []Finding {
	c := checker{s, map[pair][]Finding{}}
	found := slices.Clone(c.check(s.files[file], doc, ""))
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(a.at-b.at, strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Keyword+a.Name, b.Keyword+b.Name))
	})
	if len(found) > mostFindings {
		found = append(found[:mostFindings], Finding{Message: "and more", at: found[mostFindings].at})
	}
	if src != nil {
		lines := jsontree.NewLines(src)
		for i := range found {
			found[i].Line, found[i].Column = lines.Place(found[i].at)
		}
	}
	return found
}

// Has reports whether the set has a file.
func (s *Set) Has(file string) bool { return s.files[file] != nil }

// pair is a schema that a $ref names, and what is held against it.
type pair struct{ schema, value *jsontree.Value }

// checker holds one document against schemas.
type checker struct {
	set  *Set
	done map[pair][]Finding
}

func (c checker) check(schema, v *jsontree.Value, pointer string) []Finding {
	j := judgement{c, schema, v, pointer, nil}
	j.judge()
	found := withoutCopies(j.found)
	return found[:min(len(found), mostFindings+1)]
}

// follow holds a value against what a $ref names. Each pair is judged once: otherwise a
// schema that refers to itself has no end, and one that refers to others twice, and they
// to others, would take for ever.
func (c checker) follow(to, v *jsontree.Value, pointer string) []Finding {
	key := pair{to, v}
	found, done := c.done[key]
	if !done {
		c.done[key] = nil
		found = c.check(to, v, pointer)
		c.done[key] = found
	}
	return slices.Clone(found)
}

// withoutCopies drops findings that several parts of a schema say. Otherwise a schema of
// a few lines could say the same a billion times.
func withoutCopies(found []Finding) []Finding {
	if len(found) < 2 {
		return found
	}
	seen := make(map[Finding]bool, len(found))
	return slices.DeleteFunc(found, func(f Finding) bool {
		before := seen[f]
		seen[f] = true
		return before
	})
}

// judgement is what one schema says about one value.
type judgement struct {
	checker
	schema, v *jsontree.Value
	pointer   string
	found     []Finding
}

func (j *judgement) report(keyword, format string, args ...any) {
	j.found = append(j.found, Finding{Pointer: j.pointer, Keyword: keyword, Message: fmt.Sprintf(format, args...), at: j.v.At})
}

func (j *judgement) keyword(name string, check func(k *jsontree.Value)) {
	if k := j.schema.Get(name); k != nil {
		check(k)
	}
}

func (j *judgement) judge() {
	if j.schema.Kind == jsontree.Bool {
		if j.schema.Text == "false" {
			j.report("false", "nothing is allowed here")
		}
		return
	}
	if to := j.set.refs[j.schema]; to != nil {
		j.found = j.follow(to, j.v, j.pointer)
		return
	}
	j.keyword("type", j.judgeType)
	j.keyword("enum", func(k *jsontree.Value) {
		if !slices.ContainsFunc(k.Items, func(allowed *jsontree.Value) bool { return normal(allowed) == normal(j.v) }) {
			j.report("enum", "%s is not one of %s", excerpt(j.v), strings.Join(excerpts(k.Items), ", "))
		}
	})
	j.keyword("const", func(k *jsontree.Value) {
		if normal(k) != normal(j.v) {
			j.report("const", "%s is not %s", excerpt(j.v), excerpt(k))
		}
	})
	switch j.v.Kind {
	case jsontree.Number:
		j.judgeNumber()
	case jsontree.Text:
		j.judgeText()
	case jsontree.List:
		j.judgeList()
	case jsontree.Object:
		j.judgeObject()
	case jsontree.Bool, jsontree.Null:
	}
	j.judgeCombined()
}

func (j *judgement) judgeType(k *jsontree.Value) {
	names := []string{k.Text}
	if k.Kind == jsontree.List {
		names = nil
		for _, item := range k.Items {
			names = append(names, item.Text)
		}
	}
	has := map[jsontree.Kind]string{
		jsontree.Object: "object", jsontree.List: "array", jsontree.Text: "string", jsontree.Number: "number",
		jsontree.Bool: "boolean", jsontree.Null: "null",
	}[j.v.Kind]
	if slices.Contains(names, has) || has == "number" && slices.Contains(names, "integer") && isInteger(j.v.Text) {
		return
	}
	j.report("type", "is %s, not %s", has, strings.Join(names, " or "))
}

func (j *judgement) judgeNumber() {
	n, ok := rational(j.v.Text)
	bound := func(name, words string, holds func(order int) bool) {
		j.keyword(name, func(k *jsontree.Value) {
			if limit, readable := rational(k.Text); !ok || !readable || !holds(n.Cmp(limit)) {
				j.report(name, "%s is not %s %s", j.v.Text, words, k.Text)
			}
		})
	}
	bound("minimum", "at least", func(order int) bool { return order >= 0 })
	bound("maximum", "at most", func(order int) bool { return order <= 0 })
	bound("exclusiveMinimum", "more than", func(order int) bool { return order > 0 })
	bound("exclusiveMaximum", "less than", func(order int) bool { return order < 0 })
	j.keyword("multipleOf", func(k *jsontree.Value) {
		if step, readable := rational(k.Text); !ok || !readable || !new(big.Rat).Quo(n, step).IsInt() {
			j.report("multipleOf", "%s is not a multiple of %s", j.v.Text, k.Text)
		}
	})
}

func (j *judgement) judgeText() {
	length := int64(utf8.RuneCountInString(j.v.Text))
	j.judgeSize("Length", length, "characters")
	j.keyword("pattern", func(k *jsontree.Value) {
		if !j.set.patterns[k.Text].MatchString(j.v.Text) {
			j.report("pattern", "%s does not match %s", excerpt(j.v), k.Text)
		}
	})
	j.keyword("format", func(k *jsontree.Value) {
		if isFormat, known := formats[k.Text]; known && !isFormat(j.v.Text) {
			j.report("format", "%s is not a %s", excerpt(j.v), k.Text)
		}
	})
}

func (j *judgement) judgeSize(what string, n int64, words string) {
	j.keyword("min"+what, func(k *jsontree.Value) {
		// A bound that does not fit a number is more than anything has.
		if limit, ok := wholeNumber(k.Text); !ok || n < limit {
			j.report("min"+what, "has %d %s, not at least %s", n, words, k.Text)
		}
	})
	j.keyword("max"+what, func(k *jsontree.Value) {
		if limit, ok := wholeNumber(k.Text); ok && n > limit {
			j.report("max"+what, "has %d %s, not at most %s", n, words, k.Text)
		}
	})
}

// below holds a part of the value against a schema, until there is more to say than
// anybody is told.
func (j *judgement) below(schema, v *jsontree.Value, name string) {
	if len(j.found) > mostFindings {
		return
	}
	j.found = append(j.found, j.check(schema, v, jsontree.Join(j.pointer, name))...)
}

func (j *judgement) judgeList() {
	j.judgeSize("Items", int64(len(j.v.Items)), "items")
	items, more := j.schema.Get("items"), j.schema.Get("additionalItems")
	for i, item := range j.v.Items {
		switch {
		case items == nil:
		case items.Kind != jsontree.List:
			j.below(items, item, strconv.Itoa(i))
		case i < len(items.Items):
			j.below(items.Items[i], item, strconv.Itoa(i))
		case more != nil:
			j.below(more, item, strconv.Itoa(i))
		}
	}
	j.keyword("uniqueItems", func(k *jsontree.Value) {
		if k.Text != "true" {
			return
		}
		first := map[string]int{}
		for i, item := range j.v.Items {
			key := normal(item)
			if before, twice := first[key]; twice {
				j.report("uniqueItems", "the items %d and %d are alike", before, i)
				return
			}
			first[key] = i
		}
	})
	j.keyword("contains", func(k *jsontree.Value) {
		for i, item := range j.v.Items {
			if len(j.check(k, item, jsontree.Join(j.pointer, strconv.Itoa(i)))) == 0 {
				return
			}
		}
		j.report("contains", "has no item of the kind that is required")
	})
}

func (j *judgement) judgeObject() {
	j.judgeSize("Properties", int64(len(j.v.Members)), "names")
	j.keyword("required", func(k *jsontree.Value) { j.require("required", k.Items) })
	properties, patterns, others := j.schema.Get("properties"), j.schema.Get("patternProperties"), j.schema.Get("additionalProperties")
	for _, m := range j.v.Members {
		known := false
		if p := properties.Get(m.Name); p != nil {
			known = true
			j.below(p, m.Value, m.Name)
		}
		if patterns != nil {
			for _, p := range patterns.Members {
				if j.set.patterns[p.Name].MatchString(m.Name) {
					known = true
					j.below(p.Value, m.Value, m.Name)
				}
			}
		}
		switch {
		case known || others == nil:
		case others.Kind == jsontree.Bool && others.Text == "false":
			j.found = append(j.found, Finding{
				Pointer: jsontree.Join(j.pointer, m.Name), Keyword: "additionalProperties", Name: m.Name, at: m.At,
				Message: "the name " + strconv.Quote(m.Name) + " is not allowed here",
			})
		default:
			j.below(others, m.Value, m.Name)
		}
	}
	j.keyword("propertyNames", func(k *jsontree.Value) {
		for _, m := range j.v.Members {
			j.below(k, &jsontree.Value{Kind: jsontree.Text, Text: m.Name, At: m.At}, m.Name)
		}
	})
	j.keyword("dependencies", func(k *jsontree.Value) {
		for _, d := range k.Members {
			switch {
			case j.v.Get(d.Name) == nil:
			case d.Value.Kind == jsontree.List:
				j.require("dependencies", d.Value.Items)
			default:
				j.found = append(j.found, j.check(d.Value, j.v, j.pointer)...)
			}
		}
	})
}

func (j *judgement) require(keyword string, names []*jsontree.Value) {
	for _, name := range names {
		if j.v.Get(name.Text) == nil {
			j.found = append(j.found, Finding{
				Pointer: j.pointer, Keyword: keyword, Name: name.Text, at: j.v.At, Message: strconv.Quote(name.Text) + " is missing",
			})
		}
	}
}

func (j *judgement) judgeCombined() {
	meets := func(schema *jsontree.Value) bool { return len(j.check(schema, j.v, j.pointer)) == 0 }
	count := func(k *jsontree.Value) (n int) {
		for _, schema := range k.Items {
			if meets(schema) {
				n++
			}
		}
		return n
	}
	j.keyword("allOf", func(k *jsontree.Value) {
		for _, schema := range k.Items {
			j.found = append(j.found, j.check(schema, j.v, j.pointer)...)
		}
	})
	j.keyword("anyOf", func(k *jsontree.Value) {
		if count(k) == 0 {
			j.report("anyOf", "fits none of %d alternatives", len(k.Items))
		}
	})
	j.keyword("oneOf", func(k *jsontree.Value) {
		if n := count(k); n != 1 {
			j.report("oneOf", "fits %d of %d alternatives, not one", n, len(k.Items))
		}
	})
	j.keyword("not", func(k *jsontree.Value) {
		if meets(k) {
			j.report("not", "is what is not allowed here")
		}
	})
	j.keyword("if", func(k *jsontree.Value) {
		branch := "then"
		if !meets(k) {
			branch = "else"
		}
		j.keyword(branch, func(then *jsontree.Value) { j.found = append(j.found, j.check(then, j.v, j.pointer)...) })
	})
}

// excerpt is a value for a message.
func excerpt(v *jsontree.Value) string {
	switch v.Kind {
	case jsontree.Text:
		text := v.Text
		if runes := []rune(text); len(runes) > 40 {
			text = string(runes[:40]) + "…"
		}
		return strconv.Quote(text)
	case jsontree.Object, jsontree.List:
		return string(v.Kind)
	case jsontree.Number, jsontree.Bool, jsontree.Null:
	}
	return v.Text
}

func excerpts(values []*jsontree.Value) []string {
	var texts []string
	for _, v := range values {
		texts = append(texts, excerpt(v))
	}
	return texts
}

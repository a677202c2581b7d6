package definition

import (
	"slices"

	"github.com/pawl-run/pawl/internal/readiness"
)

// Field is what there is to know about one key of a definition. Every list of
// keys, the schema, the page of keys and what explain prints are drawn from it.
type Field struct {
	Name     string   `json:"name"`
	Format   bool     `json:"format"`             // a key of the published format, not pawl's own
	Required string   `json:"required,omitempty"` // one of the Required constants; empty: may be absent
	Kind     Kind     `json:"kind"`               // how the value is written
	Values   []string `json:"values,omitempty"`   // that the key may have, or that are known if it is Open
	Open     bool     `json:"open"`               // other values than Values are allowed
	Default  string   `json:"default,omitempty"`  // value that applies when the key is absent, as one would write it
	Absent   string   `json:"absent,omitempty"`   // in words, what applies when no value says it; used if Default is empty
	Meaning  string   `json:"meaning"`            // one sentence
	More     string   `json:"more,omitempty"`     // a paragraph: what the key interacts with, units, traps
	Example  string   `json:"example,omitempty"`  // value as written in a file after the key's colon
	NotYet   string   `json:"not_yet,omitempty"`  // one of Refused and NoEffect; empty: the key is honoured
}

// Whether a key must be there. Definition reports an error if one that is
// required is absent, and a warning if one that is advised is.
const (
	RequiredAlways  = "yes"
	RequiredFromL2  = "L2+"
	RequiredAdvised = "recommended"
)

// What this version does with a key that it does not honour, unless the value
// is the key's Default, which says what happens anyway.
const (
	Refused  = "refused"   // an error: without the key a run would be freer, or judged otherwise
	NoEffect = "no effect" // a warning
)

// Kind is how the value of a key is written.
type Kind string

// The kinds of values.
const (
	KindText     Kind = "text"
	KindCommand  Kind = "command"  // a line for /bin/sh -c
	KindEnum     Kind = "enum"     // one of Field.Values
	KindCadence  Kind = "cadence"  // an interval or five cron fields
	KindGlobs    Kind = "globs"    // a list of globs, or one
	KindList     Kind = "list"     // a list of texts, or one
	KindCount    Kind = "count"    // a whole number from 1, in digits
	KindAmount   Kind = "amount"   // US dollars
	KindDuration Kind = "duration" // like 90s, 10m, 1h30m, 2d, 1w
	KindSize     Kind = "size"     // bytes of disk, like 8GiB or 500MB
	KindFlag     Kind = "flag"     // true or false
)

var fields = slices.Concat(formatFields, ownFields, laterFields)

// Fields lists every key: those of the format in its order, pawl's own that
// have an effect, and those that this version does not honour. The caller owns
// the list, not the Values in it.
func Fields() []Field { return slices.Clone(fields) }

// LookupField finds a key by its exact name.
func LookupField(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Fallback says what applies when the key is absent: its default or, where no
// value says it, words. It is empty if nothing does.
func (f Field) Fallback() string {
	if f.Default != "" {
		return f.Default
	}
	return f.Absent
}

// ExampleLine is the example as written in a file.
func (f Field) ExampleLine() string { return f.Name + ": " + f.Example }

// SimilarKey is the known key that an unknown one was probably meant to be, or
// nothing. A known key is similar to itself.
func SimilarKey(name string) string { return readiness.NearestName(name, knownKeys) }

// valuesOf are the values of a key that has a fixed set of them. A name that
// is not in the table is a mistake of this package.
func valuesOf(name string) []string {
	f, ok := LookupField(name)
	if !ok || len(f.Values) == 0 {
		panic("definition: no values are known for the key " + name)
	}
	return f.Values
}

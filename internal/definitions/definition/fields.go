package definition

import (
	"slices"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Field describes one key of a definition. Every list of keys, the schema, the page of keys
// and what explain prints are made from it.
type Field struct {
	Name     string   `json:"name"`
	Format   bool     `json:"format"`             // a key of the published format, not pawl's own
	Required string   `json:"required,omitempty"` // one of the Required constants; empty: may be absent
	Kind     Kind     `json:"kind"`               // how the value is written
	Values   []string `json:"values,omitempty"`   // that the key may have, or that are known if it is Open
	Open     bool     `json:"open"`               // other values than Values are allowed
	Default  string   `json:"default,omitempty"`  // value that applies when the key is absent, as one would write it
	Absent   string   `json:"absent,omitempty"`   // in words, what applies without the key; used if Default is empty
	Meaning  string   `json:"meaning"`            // one sentence
	More     string   `json:"more,omitempty"`     // a paragraph: what the key interacts with, units, traps
	Example  string   `json:"example,omitempty"`  // value as written in a file after the key's colon
	NotYet   string   `json:"not_yet,omitempty"`  // Refused; empty: the key is supported
}

// Whether a key must be present. Definition reports an error if a required key is absent,
// and a warning if a recommended one is.
const (
	RequiredAlways  = "yes"
	RequiredFromL2  = "L2+"
	RequiredAdvised = "recommended"
)

// Refused is what this version does with a key that it does not support, unless the value
// is the key's Default, which describes what it does: without the key a run would be
// freer, or judged otherwise.
const Refused = "refused"

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

// Fields returns every key: those of the format in its order, pawl's own, and those that
// this version does not support. The caller owns the list, but not the Values in it.
func Fields() []Field { return slices.Clone(fields) }

// LookupField finds a key by its exact name.
func LookupField(name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Fallback returns what applies if the key is absent: its default, or words if no value
// says it. It is empty if nothing applies.
func (f Field) Fallback() string {
	if f.Default != "" {
		return f.Default
	}
	return f.Absent
}

// ExampleLine returns the example as written in a file.
func (f Field) ExampleLine() string { return f.Name + ": " + f.Example }

// SimilarKey returns the key that was probably meant by an unknown one; empty if there is
// none. A known key is similar to itself.
func SimilarKey(name string) string { return readiness.NearestName(name, knownKeys) }

// valuesOf returns the fixed values of a key. An unknown name is a mistake of this
// package.
func valuesOf(name string) []string {
	f, ok := LookupField(name)
	if !ok || len(f.Values) == 0 {
		panic("definition: no values are known for the key " + name)
	}
	return f.Values
}

// Package jsontree reads JSON strictly into a tree that knows where each value is in
// its text, and writes trees in one form.
//
// It does no I/O. It never guesses: a text that two programs might read differently,
// such as one that has a name twice in an object, has a Problem. Numbers and the order
// of names are kept as they were written.
package jsontree

import (
	"slices"
	"strconv"
	"strings"
)

// Kind is what a value is, in the words of a message.
type Kind string

// Kinds of values.
const (
	Object Kind = "an object"
	List   Kind = "a list"
	Text   Kind = "text"
	Number Kind = "a number"
	Bool   Kind = "true or false"
	Null   Kind = "null"
)

// Value is a JSON value. A tree may be changed by whoever has made or cloned it.
type Value struct {
	Kind    Kind
	Text    string   // what a text says; a number, true or false as it is written
	At      int      // the byte of its document at which it begins; 0 if it was not read from one
	Members []Member // of an object, in the order of the document
	Items   []*Value // of a list
}

// Member is a name of an object and its value.
type Member struct {
	Name  string
	At    int
	Value *Value
}

// NewText returns a text.
func NewText(text string) *Value { return &Value{Kind: Text, Text: text} }

// NewNull returns null.
func NewNull() *Value { return &Value{Kind: Null, Text: "null"} }

// NewInt returns a number.
func NewInt(n int64) *Value { return &Value{Kind: Number, Text: strconv.FormatInt(n, 10)} }

// NewList returns a list of the items.
func NewList(items ...*Value) *Value { return &Value{Kind: List, Items: items} }

// NewObject returns an object with the members, whose names must differ.
func NewObject(members ...Member) *Value { return &Value{Kind: Object, Members: members} }

// Get returns the value that a name has in an object, and nil if it has none or if v
// is not an object or nil.
func (v *Value) Get(name string) *Value {
	if i := v.index(name); i >= 0 {
		return v.Members[i].Value
	}
	return nil
}

func (v *Value) index(name string) int {
	if v == nil {
		return -1
	}
	return slices.IndexFunc(v.Members, func(m Member) bool { return m.Name == name })
}

// GetText returns the text that a name has, and "" if it has none.
func (v *Value) GetText(name string) string {
	if found := v.Get(name); found != nil && found.Kind == Text {
		return found.Text
	}
	return ""
}

// Set gives a name of an object another value, in its place; a new name comes last.
func (v *Value) Set(name string, to *Value) {
	if i := v.index(name); i >= 0 {
		v.Members[i].Value = to
		return
	}
	v.Members = append(v.Members, Member{Name: name, Value: to})
}

// SetInOrder is Set, but a new name comes before the first one that is after it in the
// order given.
func (v *Value) SetInOrder(name string, to *Value, order []string) {
	if v.index(name) >= 0 {
		v.Set(name, to)
		return
	}
	after := order[slices.Index(order, name)+1:]
	i := slices.IndexFunc(v.Members, func(m Member) bool { return slices.Contains(after, m.Name) })
	if i < 0 {
		i = len(v.Members)
	}
	v.Members = slices.Insert(v.Members, i, Member{Name: name, Value: to})
}

// Remove takes a name out of an object.
func (v *Value) Remove(name string) {
	if i := v.index(name); i >= 0 {
		v.Members = slices.Delete(v.Members, i, i+1)
	}
}

// Clone returns a copy that shares nothing with v.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	c := *v
	c.Members, c.Items = slices.Clone(v.Members), slices.Clone(v.Items)
	for i := range c.Members {
		c.Members[i].Value = c.Members[i].Value.Clone()
	}
	for i := range c.Items {
		c.Items[i] = c.Items[i].Clone()
	}
	return &c
}

// Find returns what a JSON pointer names, and nil if there is nothing. The empty
// pointer names v.
func (v *Value) Find(pointer string) *Value {
	if pointer == "" {
		return v
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = unescape.Replace(step)
		switch {
		case v == nil:
			return nil
		case v.Kind == List:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v.Items) || strconv.Itoa(n) != step {
				return nil
			}
			v = v.Items[n]
		default:
			v = v.Get(step)
		}
	}
	return v
}

// How names are written in pointers.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// Join returns the JSON pointer of a name below another pointer.
func Join(pointer, name string) string { return pointer + "/" + escape.Replace(name) }

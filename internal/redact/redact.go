// Package redact replaces secrets in text that is about to be written: to a
// store, a file, a commit or a terminal.
//
// It knows two kinds. Values that the caller names are found as they are and
// in the spellings that programs give them: base64 at every alignment, hex,
// percent, JSON, shell, HTML and backslash escapes, UTF-16. Secrets of a
// well-known shape, such as a GitHub token or a private key, are found
// without being named. What is found becomes [redacted:NAME]; every other
// byte is passed on unchanged and in order. How a stream is cut into chunks
// never matters.
//
// It never looks into compressed or encrypted data, never undoes a disguise
// that someone chose on purpose (reversed, spelled out, base64 of base64),
// never guesses by entropy, never logs, and reads no file and no
// environment by itself.
package redact

import "slices"

// Secret is a value that must not be written. Name stands in its place.
type Secret struct {
	Name  string
	Value string
}

// Refused is a value that New did not take, and why. It never holds the value.
type Refused struct {
	Name   string
	Reason string
}

// Redactor finds secrets. It is made by New, cannot be changed, and may be used
// by any number of goroutines. The zero Redactor panics when it is used, so
// that a forgotten New never lets a secret pass.
type Redactor struct {
	rules   []rule
	index   *index
	refused []Refused
}

// rule is one thing to look for: a needle of a known value, or a shape.
type rule struct {
	name   string
	needle needle // of a known value; empty for a shape
	shape  *shape
}

// New returns a Redactor for these values and all built-in shapes. A value is
// refused if replacing it would erase ordinary text: see Refused. Of two equal
// values the first gives the name.
func New(values ...Secret) *Redactor {
	known, refused := vet(values)
	r := compile(known)
	if renamed := r.anonymous(known); renamed {
		r = compile(known)
	}
	r.refused = refused
	return r
}

// Refused lists the values that are not looked for, in the order of New.
func (r *Redactor) Refused() []Refused { return slices.Clone(r.refused) }

// anonymous takes away names that would themselves give a secret away.
func (r *Redactor) anonymous(known []Secret) bool {
	renamed := false
	for i := range known {
		if len(r.Find([]byte(mark(known[i].Name)))) > 0 {
			known[i].Name, renamed = unnamed, true
		}
	}
	return renamed
}

func compile(known []Secret) *Redactor {
	r := &Redactor{index: newIndex()}
	for i := range shapes {
		r.add(rule{name: shapes[i].name, shape: &shapes[i]})
	}
	spell := newSpeller()
	marks := allMarks(known)
	for _, k := range known {
		for _, value := range parts(k.Value) {
			for _, n := range spell.needles(apart(value, marks)) {
				r.add(rule{name: k.Name, needle: n})
			}
		}
	}
	return r
}

func (r *Redactor) add(one rule) {
	id := len(r.rules)
	r.rules = append(r.rules, one)
	add := func(head [headLen]byte) { r.index.add(head, id) }
	if one.shape != nil {
		one.shape.heads(add)
		return
	}
	one.needle.heads(add)
}

// String returns s with every secret replaced.
func (r *Redactor) String(s string) string {
	text := []byte(s)
	if i := r.index.next(text, 0); i+headLen > len(text) {
		return s
	}
	out := &written{}
	scan := scanner{r: r, buf: text, sink: out}
	scan.scan(true)
	return string(out.text)
}

// mark is what stands in the place of a secret.
func mark(name string) string { return opening + name + "]" }

const (
	opening = "[redacted:"
	unnamed = "secret"
)

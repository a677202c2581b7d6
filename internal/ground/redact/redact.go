// Package redact replaces secrets in text before it is written to a store, a
// file, a commit or a terminal.
//
// It knows two kinds of secrets. Values that the caller names are found as they
// are and in the encodings that programs use: base64 at every alignment, hex,
// percent, JSON, shell, HTML and backslash escapes, UTF-16. Secrets of a
// well-known shape, such as a GitHub token or a private key, are found without
// being named. Each secret becomes [redacted:NAME]; every other byte is passed on
// unchanged and in order. The result does not depend on how a stream is cut into
// chunks.
//
// It never looks into compressed or encrypted data, never undoes a deliberate
// disguise (reversed, spelled out, base64 of base64), never guesses by entropy,
// never logs, and reads no file and no environment by itself.
package redact

import "slices"

// Secret is a value that must not be written. Its name is written instead.
type Secret struct {
	Name  string
	Value string
}

// Refused is a value that New does not look for, and the reason. It never holds
// the value.
type Refused struct {
	Name   string
	Reason string
}

// Redactor finds secrets. New makes it; it cannot be changed and is safe for
// concurrent use. The zero Redactor panics when it is used, so that forgetting
// New never lets a secret pass.
type Redactor struct {
	rules   []rule
	index   *index
	refused []Refused
}

// rule is one thing to look for: an encoding of a known value, or a shape.
type rule struct {
	name   string
	needle needle // of a known value; empty for a shape
	shape  *shape
}

// New returns a Redactor for these values and all built-in shapes. A value is
// refused if replacing it would remove ordinary text: see Refused. If two values
// are equal, the first one's name is used.
func New(values ...Secret) *Redactor {
	known, refused := checkValues(values)
	r := compileRules(known)
	if renamed := r.removeTellingNames(known); renamed {
		r = compileRules(known)
	}
	r.refused = refused
	return r
}

// Refused lists the values that are not looked for, in the order in which New got
// them.
func (r *Redactor) Refused() []Refused { return slices.Clone(r.refused) }

// removeTellingNames replaces names that contain a secret themselves. It reports
// whether there was one.
func (r *Redactor) removeTellingNames(known []Secret) bool {
	renamed := false
	for i := range known {
		if len(r.Find([]byte(redactionMark(known[i].Name)))) > 0 {
			known[i].Name, renamed = unnamed, true
		}
	}
	return renamed
}

func compileRules(known []Secret) *Redactor {
	r := &Redactor{index: newIndex()}
	for i := range shapes {
		r.addRule(rule{name: shapes[i].name, shape: &shapes[i]})
	}
	spell := newSpeller()
	marks := allMarks(known)
	for _, k := range known {
		for _, value := range valueAndKeyLines(k.Value) {
			for _, n := range spell.allNeedles(trimMarkEdges(value, marks)) {
				r.addRule(rule{name: k.Name, needle: n})
			}
		}
	}
	return r
}

func (r *Redactor) addRule(one rule) {
	id := len(r.rules)
	r.rules = append(r.rules, one)
	add := func(head [headLen]byte) { r.index.addHead(head, id) }
	if one.shape != nil {
		one.shape.eachHead(add)
		return
	}
	one.needle.eachHead(add)
}

// String returns s with every secret replaced.
func (r *Redactor) String(s string) string {
	text := []byte(s)
	if i := r.index.nextCandidate(text, 0); i+headLen > len(text) {
		return s
	}
	out := &collector{}
	scan := scanner{r: r, buf: text, sink: out}
	scan.scan(true)
	return string(out.text)
}

// redactionMark returns the text that replaces a secret.
func redactionMark(name string) string { return opening + name + "]" }

const (
	opening = "[redacted:"
	unnamed = "secret"
)

package redact

import "bytes"

// MaxFound is how many secrets Find reports at most.
const MaxFound = 1000

// Found is the place of a secret in a text. It never holds the secret.
type Found struct {
	Name   string
	Offset int // of its first byte, from 0
	Line   int // from 1
}

// Find returns where data contains secrets, in order, at most MaxFound of them.
// Data may be binary.
func (r *Redactor) Find(data []byte) []Found {
	out := &locator{data: data, line: 1}
	scan := scanner{r: r, buf: data, sink: out}
	scan.scan(true)
	return out.found
}

// locator is a sink that notes secrets and counts lines.
type locator struct {
	data  []byte
	found []Found
	line  int
	seen  int // the offset at which line was counted
}

func (l *locator) plain([]byte) {}

func (l *locator) secret(s span) {
	if s.more || len(l.found) == MaxFound {
		return
	}
	l.line += bytes.Count(l.data[l.seen:s.start], []byte{'\n'})
	l.seen = s.start
	l.found = append(l.found, Found{Name: s.name, Offset: s.start, Line: l.line})
}

package redact

import (
	"cmp"
	"slices"
)

// span is a piece of text to be replaced.
type span struct {
	name       string
	start, end int
	known      bool // a value of the caller's, whose name is preferred
	more       bool // goes on with a secret that an earlier span began
}

// sink takes what the scanner has decided, in order.
type sink interface {
	plain(text []byte)
	secret(s span)
}

// scanner walks through a text once. What it decides about a place depends
// only on the bytes from there on and on what was passed on before it, never on
// how much of the text has come: if that is too little, it waits. So a stream
// reads the same however it is cut.
type scanner struct {
	r    *Redactor
	sink sink

	buf   []byte
	at    int    // the first place that is not decided
	sent  int    // all before it is passed on or replaced
	floor int    // where the last replaced text ends
	spans []span // found, and not before at when they were last settled
	last  *shape // the shape that matched last, and where its match ends
	end   int
}

// lookback is how many decided bytes are kept, for edge.
const lookback = 12

// scan decides as much as it can. With final, the text ends here.
func (s *scanner) scan(final bool) {
	for {
		s.at = s.r.index.next(s.buf, s.at)
		if s.at+headLen > len(s.buf) {
			s.tail(final)
			break
		}
		if wait := s.try(final); wait {
			break
		}
		s.at++
	}
	s.settle()
}

// tail decides the last bytes, which are too few for a head.
func (s *scanner) tail(final bool) {
	for !final && s.at < len(s.buf) {
		if s.r.index.begins(s.buf[s.at:]) {
			return
		}
		s.at++
	}
	s.at = len(s.buf)
}

// try asks the rules that may match here, and says whether the answer must wait
// for more text.
func (s *scanner) try(final bool) (wait bool) {
	ids := s.r.index.at(s.buf[s.at:])
	if len(ids) == 0 {
		return false
	}
	s.settle()
	had, last, end := len(s.spans), s.last, s.end
	for _, id := range ids {
		if more := s.apply(&s.r.rules[id]); more && !final {
			s.spans, s.last, s.end = s.spans[:had], last, end
			return true
		}
	}
	return false
}

func (s *scanner) apply(one *rule) (more bool) {
	text := s.buf[s.at:]
	if one.shape == nil {
		length, more := one.needle.match(text)
		if length > 0 {
			s.spans = append(s.spans, span{name: one.name, start: s.at, end: s.at + length, known: true})
		}
		return more
	}
	// Within a match of its own a shape has nothing to add. To ask it again at
	// every byte would let a text of nothing but beginnings take for ever.
	if one.shape == s.last && s.at < s.end || one.shape.alone != nil && !s.edge(one.shape.alone) {
		return false
	}
	t := view{b: text}
	for i, found := range one.shape.match(&t) {
		if found.name == "" {
			found.name = one.name
		}
		found.start += s.at
		found.end += s.at
		s.spans = append(s.spans, found)
		if i == 0 {
			s.last, s.end = one.shape, found.end
		}
	}
	return t.short
}

// settle passes on all text before at, except what is replaced. Spans that
// touch the same bytes become one, under the name of the first.
func (s *scanner) settle() {
	slices.SortFunc(s.spans, first)
	done := 0
	for _, f := range s.spans {
		if f.start >= s.at {
			break
		}
		done++
		if f.start >= s.sent {
			s.pass(f.start)
			s.sink.secret(f)
		}
		s.sent = max(s.sent, f.end)
		s.floor = s.sent
	}
	s.spans = slices.Delete(s.spans, 0, done)
	s.pass(s.at)
}

func (s *scanner) pass(end int) {
	end = max(end, s.sent)
	s.sink.plain(s.buf[s.sent:end])
	s.sent = end
}

func first(a, b span) int {
	if c := cmp.Compare(a.start, b.start); c != 0 {
		return c
	}
	if a.known != b.known {
		if a.known {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.end, a.end)
}

// edge says whether the byte before at does not belong to the same word. It
// looks at what was passed on, where a mark ends a word: so redacting twice
// finds nothing new. The letter of an escape such as \n belongs to no word.
func (s *scanner) edge(in *class) bool {
	if s.at < s.floor {
		return false // inside of what is replaced already
	}
	before := s.buf[max(s.floor, s.at-lookback):s.at]
	n := len(before)
	if n == 0 || !in.has(before[n-1]) {
		return true
	}
	return escape(before)
}

// escape says whether text ends with one: \n, \u003d, %3D or a colour.
func escape(text []byte) bool {
	n := len(text)
	switch {
	case n >= 2 && text[n-2] == '\\':
		return true
	case n >= 3 && text[n-3] == '%':
		return true
	case n >= 6 && text[n-6] == '\\' && text[n-5] == 'u':
		return true
	}
	if text[n-1] != 'm' {
		return false
	}
	i := n - 1
	for i > 0 && (digits.has(text[i-1]) || text[i-1] == ';') {
		i--
	}
	return i > 0 && text[i-1] == '['
}

// forget drops the bytes that nothing looks at any more.
func (s *scanner) forget() {
	drop := max(s.at-lookback, 0)
	s.buf = s.buf[:copy(s.buf, s.buf[drop:])]
	s.at -= drop
	s.sent -= drop
	s.end -= drop
	s.floor = max(s.floor-drop, 0)
	for i := range s.spans {
		s.spans[i].start -= drop
		s.spans[i].end -= drop
	}
}

package redact

import (
	"cmp"
	"slices"
)

// span is a piece of text to replace.
type span struct {
	name       string
	start, end int
	known      bool // a value from the caller, whose name takes precedence
	more       bool // continues a secret that an earlier span began
}

// sink receives the result of a scanner, in order.
type sink interface {
	plain(text []byte)
	secret(s span)
}

// scanner scans a text once. What it decides about a place depends only on the
// bytes from there on and on what it passed on before, never on how much of the
// text has arrived: if that is too little, it waits. So the result does not
// depend on how a stream is cut.
type scanner struct {
	r    *Redactor
	sink sink

	buf   []byte
	at    int    // the first place that is not decided yet
	sent  int    // everything before it has been passed on or replaced
	floor int    // where the last replaced text ends
	spans []span // found, but not passed on yet
	last  *shape // the shape that matched last; its match ends at end
	end   int
}

// lookback is how many decided bytes are kept for atWordStart.
const lookback = 12

// scan decides as much as it can. If final, the text ends here.
func (s *scanner) scan(final bool) {
	for {
		s.at = s.r.index.nextCandidate(s.buf, s.at)
		if s.at+headLen > len(s.buf) {
			s.scanTail(final)
			break
		}
		if wait := s.tryRules(final); wait {
			break
		}
		s.at++
	}
	s.passSettled()
}

// scanTail decides about the last bytes, which are fewer than a head.
func (s *scanner) scanTail(final bool) {
	for !final && s.at < len(s.buf) {
		if s.r.index.mayBegin(s.buf[s.at:]) {
			return
		}
		s.at++
	}
	s.at = len(s.buf)
}

// tryRules tries the rules that may match at this place, and reports whether the
// answer needs more text.
func (s *scanner) tryRules(final bool) (wait bool) {
	ids := s.r.index.rulesAt(s.buf[s.at:])
	if len(ids) == 0 {
		return false
	}
	s.passSettled()
	had, last, end := len(s.spans), s.last, s.end
	for _, id := range ids {
		if more := s.applyRule(&s.r.rules[id]); more && !final {
			s.spans, s.last, s.end = s.spans[:had], last, end
			return true
		}
	}
	return false
}

func (s *scanner) applyRule(one *rule) (more bool) {
	text := s.buf[s.at:]
	if one.shape == nil {
		length, more := one.needle.matchPrefix(text)
		if length > 0 {
			s.spans = append(s.spans, span{name: one.name, start: s.at, end: s.at + length, known: true})
		}
		return more
	}
	// A shape is not tried again within its own match. Otherwise a text that
	// consists of nothing but beginnings would take quadratic time.
	if one.shape == s.last && s.at < s.end || one.shape.alone != nil && !s.atWordStart(one.shape.alone) {
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

// passSettled passes on all text before at, with its secrets replaced. Spans that
// overlap become one, with the name of the first.
func (s *scanner) passSettled() {
	slices.SortFunc(s.spans, compareSpans)
	done := 0
	for _, f := range s.spans {
		if f.start >= s.at {
			break
		}
		done++
		if f.start >= s.sent {
			s.passUntil(f.start)
			s.sink.secret(f)
		}
		s.sent = max(s.sent, f.end)
		s.floor = s.sent
	}
	s.spans = slices.Delete(s.spans, 0, done)
	s.passUntil(s.at)
}

func (s *scanner) passUntil(end int) {
	end = max(end, s.sent)
	s.sink.plain(s.buf[s.sent:end])
	s.sent = end
}

func compareSpans(a, b span) int {
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

// atWordStart reports whether the byte before at does not belong to the same
// word. It looks at what was passed on, where a mark ends a word: so redacting a
// text twice finds nothing new. The letter of an escape such as \n belongs to no
// word.
func (s *scanner) atWordStart(in *class) bool {
	if s.at < s.floor {
		return false // inside of a replaced secret
	}
	before := s.buf[max(s.floor, s.at-lookback):s.at]
	n := len(before)
	if n == 0 || !in.has(before[n-1]) {
		return true
	}
	return endsInEscape(before)
}

// endsInEscape reports whether text ends with an escape: \n, \u003d, %3D or a
// color.
func endsInEscape(text []byte) bool {
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

// dropDecided drops the bytes that are no longer needed.
func (s *scanner) dropDecided() {
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

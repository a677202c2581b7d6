package gate

import "bytes"

// maxLine bounds the length of a line that is examined. Events of go test and
// summaries are far shorter; a longer line is ignored.
const maxLine = 256 << 10

// lines splits a stream into lines. It never holds more than maxLine bytes. The
// zero value is ready to use.
type lines struct {
	part []byte // of a line that has not ended
	long bool   // the line has more than maxLine bytes
}

// cutLines calls whole with every line that ends in p, its line feed included, and
// rest with the pieces of lines that are too long to be held.
func (l *lines) cutLines(p []byte, whole, rest func([]byte)) {
	for len(p) > 0 {
		piece, ended := p, false
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			piece, ended = p[:i+1], true
		}
		p = p[len(piece):]
		l.addPiece(piece, rest)
		if ended {
			l.endLine(whole)
		}
	}
}

func (l *lines) addPiece(piece []byte, rest func([]byte)) {
	if !l.long && len(l.part)+len(piece) > maxLine {
		rest(l.part)
		l.part, l.long = l.part[:0], true
	}
	if l.long {
		rest(piece)
		return
	}
	l.part = append(l.part, piece...)
}

// endLine calls whole with the line at hand, if there is one and it was held.
func (l *lines) endLine(whole func([]byte)) {
	if len(l.part) > 0 {
		whole(l.part)
	}
	l.part, l.long = l.part[:0], false
}

// visibleText returns what a terminal shows of a line: without colours and other escape
// sequences, and after carriage returns only the last text.
func visibleText(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if bytes.IndexByte(line, escape) >= 0 {
		line = withoutEscapes(line)
	}
	return string(line[bytes.LastIndexByte(line, '\r')+1:])
}

const (
	escape = 0x1b
	bell   = 0x07
)

func withoutEscapes(line []byte) []byte {
	kept := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		if line[i] != escape {
			kept = append(kept, line[i])
			i++
			continue
		}
		i += escapeLength(line[i:])
	}
	return kept
}

// escapeLength returns the length of the escape sequence at the start of s. One
// that does not end takes everything.
func escapeLength(s []byte) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= '@' && s[i] <= '~' {
				return i + 1
			}
		}
		return len(s)
	case ']':
		for i := 2; i < len(s); i++ {
			if s[i] == bell {
				return i + 1
			}
			if s[i] == escape {
				return min(i+2, len(s))
			}
		}
		return len(s)
	}
	return 2
}

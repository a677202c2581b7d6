package redact

import "bytes"

// view is the text from a place on where a shape may match. It notes when an
// answer needs bytes that have not arrived yet.
type view struct {
	b     []byte
	short bool
}

// hasText reports whether want is at a place.
func (v *view) hasText(at int, want string) bool {
	return v.hasTextBy(at, want, func(have, want []byte) bool { return bytes.Equal(have, want) })
}

// hasTextFold is hasText without regard to case.
func (v *view) hasTextFold(at int, want string) bool { return v.hasTextBy(at, want, bytes.EqualFold) }

func (v *view) hasTextBy(at int, want string, equal func(have, want []byte) bool) bool {
	have := v.b[min(at, len(v.b)):min(at+len(want), len(v.b))]
	if !equal(have, []byte(want[:len(have)])) {
		return false
	}
	if len(have) < len(want) {
		v.short = true
		return false
	}
	return true
}

// runEnd returns the end of the run of a class's bytes that begins at a place,
// after at most most bytes.
func (v *view) runEnd(at, most int, in *class) int {
	for end := at; ; end++ {
		switch {
		case end-at == most:
			return end
		case end >= len(v.b):
			v.short = true
			return end
		case !in.has(v.b[end]):
			return end
		}
	}
}

// byteAt returns the byte at a place.
func (v *view) byteAt(at int) (byte, bool) {
	if at >= len(v.b) {
		v.short = true
		return 0, false
	}
	return v.b[at], true
}

package redact

import "bytes"

// view is the text from the place on where a shape may match. It notes when an
// answer needs bytes that have not come yet.
type view struct {
	b     []byte
	short bool
}

// lit says whether want stands at a place.
func (v *view) lit(at int, want string) bool {
	return v.compare(at, want, func(have, want []byte) bool { return bytes.Equal(have, want) })
}

// fold is lit without regard to case.
func (v *view) fold(at int, want string) bool { return v.compare(at, want, bytes.EqualFold) }

func (v *view) compare(at int, want string, equal func(have, want []byte) bool) bool {
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

// run returns where the bytes of a class end that begin at a place, after most
// bytes at the latest.
func (v *view) run(at, most int, in *class) int {
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

// next returns the byte at a place.
func (v *view) next(at int) (byte, bool) {
	if at >= len(v.b) {
		v.short = true
		return 0, false
	}
	return v.b[at], true
}

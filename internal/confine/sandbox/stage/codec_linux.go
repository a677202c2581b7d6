package stage

import "github.com/pawl-run/pawl/internal/ground/proc/stage"

func appendNumbers(b []byte, list []int) []byte {
	b = stage.AppendNumber(b, len(list))
	for _, n := range list {
		b = stage.AppendNumber(b, n)
	}
	return b
}

func appendBools(b []byte, list ...bool) []byte {
	for _, v := range list {
		if v {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

type reader struct{ *stage.Reader }

func (r reader) readBool() bool { return r.Byte() == 1 }

func (r reader) readNumbers() []int {
	var list []int
	for range r.Count() {
		list = append(list, r.Number())
	}
	return list
}

// formatNumber writes a number that is not negative. Importing strconv would delay
// the init of this package.
func formatNumber(n, base int) string {
	var b [24]byte
	at := len(b)
	for {
		at--
		b[at] = '0' + byte(n%base)
		if n /= base; n == 0 {
			return string(b[at:])
		}
	}
}

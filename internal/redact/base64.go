package redact

import "slices"

const (
	digitsOf64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	sixBits    = 1<<6 - 1
)

// lineEnds may stand between any two digits: encoders wrap their output, and
// the wrapped output may be quoted.
var lineEnds = []string{"", "\n", "\r\n", `\n`, `\r\n`, `\\n`, `\\r\\n`}

// base64 is the value inside the base64 of a longer text, after skip bytes
// (0 to 2, counted from a multiple of three) that are not the value's. The
// digits at both edges may hold bits of the neighbours; there, only the bits
// of the value count.
//
// No line ends within the first four digits of a needle. Otherwise half of all
// lines of a stream would end like the beginning of a needle, and wait. Where a
// line does end there, one of the needles is found that begin later.
func (s *speller) base64(value string, skip int) []needle {
	const together = 4
	var digits needle
	for at := 8 * skip / 6 * 6; at < 8*(skip+len(value)); at += 6 {
		digits = append(digits, s.digit(sixAt(value, skip, at)))
	}
	wrap := s.cell(lineEnds)
	var out []needle
	for from := 0; from < together && (from == 0 || len(digits)-from >= 2*together); from++ {
		n := slices.Clone(digits[from : from+together])
		for _, d := range digits[from+together:] {
			n = append(n, wrap, d)
		}
		for range (3 - (skip+len(value))%3) % 3 {
			n = append(n, wrap, s.cell(padding))
		}
		out = append(out, n)
	}
	return out
}

var padding = []string{"", "=", "%3D", "%3d"}

// sixAt returns the six bits from bit at on, and which of them are the value's.
func sixAt(value string, skip, at int) (digit, mask uint8) {
	for i := range 6 {
		bit := at + i - 8*skip
		digit, mask = digit<<1, mask<<1
		if bit >= 0 && bit < 8*len(value) {
			digit |= value[bit/8] >> (7 - bit%8) & 1
			mask |= 1
		}
	}
	return digit, mask
}

func (s *speller) digit(digit, mask uint8) *node {
	return s.make([3]byte{'6', digit, mask}, func() []string {
		var out []string
		for d := range uint8(sixBits + 1) {
			if d&mask == digit {
				out = append(out, spelled64(d)...)
			}
		}
		return out
	})
}

// spelled64 is a digit of either alphabet, with what URLs and JSON make of it.
func spelled64(d uint8) []string {
	switch d {
	case 62:
		return []string{"+", "-", "%2B", "%2b", `\u002B`, `\u002b`}
	case 63:
		return []string{"/", "_", "%2F", "%2f", `\/`, `\\/`}
	default:
		return []string{digitsOf64[d : d+1]}
	}
}

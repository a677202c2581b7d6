package redact

import "slices"

const (
	digitsOf64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	sixBits    = 1<<6 - 1
)

// lineEnds may be between any two digits: encoders wrap their output, and the
// wrapped output may be quoted.
var lineEnds = []string{"", "\n", "\r\n", `\n`, `\r\n`, `\\n`, `\\r\\n`}

// base64Needles returns the value inside of the base64 of a longer text, after
// skip bytes (0 to 2, modulo three) of other text. The digits at both ends may
// contain bits of neighboring bytes; there, only the bits of the value are
// compared.
//
// There is no line end within the first four digits of a needle. Otherwise the
// end of every second line of a stream would look like the beginning of a needle,
// and would be held back. A value whose encoding has a line end there is found by
// one of the needles that begin later.
func (s *speller) base64Needles(value string, skip int) []needle {
	const together = 4
	var digits needle
	for at := 8 * skip / 6 * 6; at < 8*(skip+len(value)); at += 6 {
		digits = append(digits, s.base64Digit(sixBitsAt(value, skip, at)))
	}
	wrap := s.listCell(lineEnds)
	var out []needle
	for from := 0; from < together && (from == 0 || len(digits)-from >= 2*together); from++ {
		n := slices.Clone(digits[from : from+together])
		for _, d := range digits[from+together:] {
			n = append(n, wrap, d)
		}
		for range (3 - (skip+len(value))%3) % 3 {
			n = append(n, wrap, s.listCell(padding))
		}
		out = append(out, n)
	}
	return out
}

var padding = []string{"", "=", "%3D", "%3d"}

// sixBitsAt returns the six bits from bit at on, and a mask of those that belong
// to the value.
func sixBitsAt(value string, skip, at int) (digit, mask uint8) {
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

func (s *speller) base64Digit(digit, mask uint8) *node {
	return s.cellFor([3]byte{'6', digit, mask}, func() []string {
		var out []string
		for d := range uint8(sixBits + 1) {
			if d&mask == digit {
				out = append(out, base64Spellings(d)...)
			}
		}
		return out
	})
}

// base64Spellings returns a digit in both alphabets, also as URLs and JSON escape
// it.
func base64Spellings(d uint8) []string {
	switch d {
	case 62:
		return []string{"+", "-", "%2B", "%2b", `\u002B`, `\u002b`}
	case 63:
		return []string{"/", "_", "%2F", "%2f", `\/`, `\\/`}
	default:
		return []string{digitsOf64[d : d+1]}
	}
}

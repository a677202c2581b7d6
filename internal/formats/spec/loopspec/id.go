package loopspec

import "strings"

// Prefixes of ids.
const (
	idPrefix     = "lp_"
	rubricPrefix = "rb_"
)

const (
	idLength    = 7
	idDigits    = "0123456789abcdefghijklmnopqrstuvwxyz"
	oldIDLength = 16 // of rows from before, in hexadecimal digits
)

// IDBytes is how many random bytes an id is made of.
const IDBytes = 8

// NewID returns the id of a spec that is made of random bytes.
func NewID(random [IDBytes]byte) string { return idPrefix + base36(random) }

// RubricID returns the id of a rubric that is made of random bytes.
func RubricID(random [IDBytes]byte) string { return rubricPrefix + base36(random) }

// base36 writes random bytes as digits. With 64 bits no digit is notably more frequent
// than another.
func base36(random [IDBytes]byte) string {
	var n uint64
	for _, b := range random {
		n = n<<8 | uint64(b)
	}
	digits := make([]byte, idLength)
	for i := range digits {
		digits[i] = idDigits[n%36]
		n /= 36
	}
	return string(digits)
}

// IsID reports whether a text is the id of a spec, in the form of today or of before.
func IsID(text string) bool {
	digits, ok := strings.CutPrefix(text, idPrefix)
	switch {
	case !ok:
		return false
	case len(digits) == oldIDLength:
		return strings.Trim(digits, idDigits[:16]) == ""
	}
	return len(digits) == idLength && strings.Trim(digits, idDigits) == ""
}

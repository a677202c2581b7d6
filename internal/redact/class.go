package redact

// class is a set of bytes.
type class [256]bool

func (c *class) has(b byte) bool { return c[b] }

// of makes a class of single bytes and ranges: "a-z0-9_". A dash that is meant
// stands last.
func of(spec string) class {
	var c class
	for i := 0; i < len(spec); i++ {
		if i+2 < len(spec) && spec[i+1] == '-' {
			for b := int(spec[i]); b <= int(spec[i+2]); b++ {
				c[b] = true
			}
			i += 2
		}
		c[spec[i]] = true
	}
	return c
}

var (
	digits      = of("0-9")
	lower       = of("a-z")
	upper       = of("A-Z")
	upperDigit  = of("A-Z0-9")
	letters     = of("A-Za-z")
	alnum       = of("A-Za-z0-9")
	word        = of("A-Za-z0-9_")
	dashed      = of("A-Za-z0-9_-")
	dotted      = of("A-Za-z0-9_.-")
	lowerHex    = of("0-9a-f")
	base64Chars = of("A-Za-z0-9+/=")
	path        = of("A-Za-z0-9/")
	credential  = of("A-Za-z0-9._~+/=-")
	user        = of("A-Za-z0-9._~%+-")
	secretText  = of("A-Za-z0-9._~!%&*+,;=?^#|-")
	titles      = of("A-Z0-9 ")
	between     = of(" \t\r\n\"'`:=>,\\")
)

// distinct counts the different bytes.
func distinct(b []byte) int {
	var seen class
	n := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// contains says whether at least one byte is of each class.
func contains(b []byte, classes ...*class) bool {
	for _, in := range classes {
		found := false
		for _, c := range b {
			found = found || in.has(c)
		}
		if !found {
			return false
		}
	}
	return true
}

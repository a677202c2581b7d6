package redact

// class is a set of bytes.
type class [256]bool

func (c *class) has(b byte) bool { return c[b] }

// classOf returns the class of the bytes and ranges in spec, such as "a-z0-9_". A
// dash at the end means itself.
func classOf(spec string) class {
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
	digits          = classOf("0-9")
	lower           = classOf("a-z")
	upper           = classOf("A-Z")
	upperDigit      = classOf("A-Z0-9")
	letters         = classOf("A-Za-z")
	alnum           = classOf("A-Za-z0-9")
	wordChars       = classOf("A-Za-z0-9_")
	dashedChars     = classOf("A-Za-z0-9_-")
	dottedChars     = classOf("A-Za-z0-9_.-")
	lowerHex        = classOf("0-9a-f")
	base64Chars     = classOf("A-Za-z0-9+/=")
	pathChars       = classOf("A-Za-z0-9/")
	credentialChars = classOf("A-Za-z0-9._~+/=-")
	userChars       = classOf("A-Za-z0-9._~%+-")
	secretText      = classOf("A-Za-z0-9._~!%&*+,;=?^#|-")
	titleChars      = classOf("A-Z0-9 ")
	separatorChars  = classOf(" \t\r\n\"'`:=>,\\")
)

// countDistinct counts the different bytes.
func countDistinct(b []byte) int {
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

// containsEach reports whether b has at least one byte of each class.
func containsEach(b []byte, classes ...*class) bool {
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

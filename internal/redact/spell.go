package redact

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// speller makes the needles of values. Values share the cells, which depend on
// one unit only.
type speller struct {
	cells map[any]*node
}

func newSpeller() *speller { return &speller{cells: map[any]*node{}} }

// needles are a value in every encoding that is looked for.
func (s *speller) needles(value string) []needle {
	out := []needle{s.text(value), s.hex(value), s.wide(value)}
	for skip := range 3 {
		out = append(out, s.base64(value, skip)...)
	}
	return out
}

// cell returns the cell with the spellings of a list, which is its key.
func (s *speller) cell(list []string) *node {
	return s.make(&list[0], func() []string { return list })
}

// make returns the cell of a key, which spellings fills if it is new.
func (s *speller) make(key any, spellings func() []string) *node {
	root, ok := s.cells[key]
	if !ok {
		root = &node{}
		for _, one := range spellings() {
			root.insert(one)
		}
		s.cells[key] = root
	}
	return root
}

// text is the value with every character spelled on its own: encoders disagree
// on which characters they leave alone.
func (s *speller) text(value string) needle {
	var n needle
	for value != "" {
		_, size := utf8.DecodeRuneInString(value)
		unit := value[:size]
		times := repeated(value, unit)
		n = append(n, s.make(value[:times*size], func() []string {
			out := nested(spellings(unit))
			for i := range out {
				out[i] = strings.Repeat(out[i], times)
			}
			return out
		}))
		value = value[times*size:]
	}
	return n
}

// repeated is how often a character that stands in its own spellings begins a
// value. Such a run is one cell: encoders spell all of it alike, and if each
// character had a choice of its own, the ways to read a run of backslashes
// would be past counting.
func repeated(value, unit string) int {
	times := 1
	if strings.Contains(`\"'$%`, unit) {
		for times < 64 && strings.HasPrefix(value[times:], unit) {
			times++
		}
	}
	return times
}

// hex is the value in hexadecimal digits, as one word or as a dump of bytes.
func (s *speller) hex(value string) needle {
	var n needle
	gap := s.cell(betweenHex)
	for i := range len(value) {
		if i > 0 {
			n = append(n, gap)
		}
		n = append(n, s.make([2]byte{'x', value[i]}, func() []string { return both(fmt.Sprintf("%02x", value[i])) }))
	}
	return n
}

// betweenHex may stand between two bytes.
var betweenHex = []string{
	"", "0x", " ", ":", "-", " 0x", ",0x", ", 0x", ",\n0x", "\n", "\r\n", `\n`, `\r\n`, `\\n`,
}

// wide is the value in UTF-16 of either byte order, in so far as it is ASCII:
// a zero between two bytes.
func (s *speller) wide(value string) needle {
	var n needle
	gap := s.cell(zero)
	for i := range len(value) {
		if i > 0 {
			n = append(n, gap)
		}
		n = append(n, s.make([2]byte{'w', value[i]}, func() []string { return []string{value[i : i+1]} }))
	}
	return n
}

var zero = []string{"\x00"}

// spellings are the ways in which programs write one character: as it is, for
// URLs, in the strings of JSON and programming languages, for shells, in HTML.
func spellings(unit string) []string {
	out := []string{unit}
	for _, format := range []string{"%%%02x", "%%25%02x", `\x%02x`, `\%03o`} {
		var b strings.Builder
		for i := range len(unit) {
			fmt.Fprintf(&b, format, unit[i])
		}
		out = append(out, both(b.String())...)
	}
	r, _ := utf8.DecodeRuneInString(unit)
	if r == utf8.RuneError {
		// Encoders of text put this character where they find no character.
		out = append(out, string(r))
	}
	return append(append(out, ofRune(r)...), special[unit]...)
}

func ofRune(r rune) []string {
	var out []string
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		out = append(out, both(fmt.Sprintf(`\u%04x\u%04x`, high, low))...)
	} else {
		out = append(out, both(fmt.Sprintf(`\u%04x`, r))...)
	}
	if r > 0x7f && r < 0x100 {
		out = append(out, both(fmt.Sprintf(`\x%02x`, r))...)
	}
	for _, format := range []string{`\U%08x`, `\u{%x}`, "&#%d;", "&#x%x;"} {
		out = append(out, both(fmt.Sprintf(format, r))...)
	}
	// A shell lets a backslash stand before any mark, and other languages
	// before most. Before a letter or a digit it means something else.
	if r < 0x80 && !alnum.has(byte(r)) && r >= ' ' {
		out = append(out, `\`+string(r))
	}
	return out
}

// special are spellings that only one character has.
var special = map[string][]string{
	"\x00": {`\0`},
	"\a":   {`\a`},
	"\b":   {`\b`},
	"\t":   {`\t`},
	"\n":   {`\n`, "\r\n", `\r\n`},
	"\v":   {`\v`},
	"\f":   {`\f`},
	"\r":   {`\r`},
	"\x1b": {`\e`, `\E`},
	" ":    {"+"},
	"$":    {"$$"},
	"%":    {"%%"},
	"&":    {"&amp;"},
	"<":    {"&lt;"},
	">":    {"&gt;"},
	`"`:    {"&quot;", `""`, `'"'`},
	"'":    {"&apos;", `''`, `'\''`, `'"'"'`},
}

var requote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// nested adds the spellings that come of quoting once or twice again: agents
// print JSON that holds JSON.
func nested(spellings []string) []string {
	level := spellings
	for range 2 {
		var next []string
		for _, s := range level {
			if quoted := requote.Replace(s); quoted != s {
				next = append(next, quoted)
			}
		}
		spellings, level = append(spellings, next...), next
	}
	return spellings
}

// both is a spelling with its hexadecimal digits in lower and in upper case.
func both(spelling string) []string {
	up := []byte(spelling)
	for i, b := range up {
		if 'a' <= b && b <= 'f' {
			up[i] -= 'a' - 'A'
		}
	}
	return []string{spelling, string(up)}
}

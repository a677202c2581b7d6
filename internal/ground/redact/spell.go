package redact

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// speller makes the needles of values. Values share cells, since a cell depends
// on one unit only.
type speller struct {
	cells map[any]*node
}

func newSpeller() *speller { return &speller{cells: map[any]*node{}} }

// allNeedles returns a value in every encoding that is looked for.
func (s *speller) allNeedles(value string) []needle {
	out := []needle{s.textNeedle(value), s.hexNeedle(value), s.utf16Needle(value)}
	for skip := range 3 {
		out = append(out, s.base64Needles(value, skip)...)
	}
	return out
}

// listCell returns the cell with the spellings of a list. The list's address is
// its key.
func (s *speller) listCell(list []string) *node {
	return s.cellFor(&list[0], func() []string { return list })
}

// cellFor returns the cell of a key. If it is new, spellings fills it.
func (s *speller) cellFor(key any, spellings func() []string) *node {
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

// textNeedle returns the value with the spellings of each character: encoders
// disagree about which characters need an escape.
func (s *speller) textNeedle(value string) needle {
	var n needle
	for value != "" {
		_, size := utf8.DecodeRuneInString(value)
		unit := value[:size]
		times := repeatCount(value, unit)
		n = append(n, s.cellFor(value[:times*size], func() []string {
			out := quotedAgain(characterSpellings(unit))
			for i := range out {
				out[i] = strings.Repeat(out[i], times)
			}
			return out
		}))
		value = value[times*size:]
	}
	return n
}

// repeatCount returns how often unit is repeated at the beginning of value, if
// unit is a part of its own spellings; else 1. Such a run is one cell, since
// encoders spell all of it alike. If each character had a choice of its own, the
// number of ways to read a run of backslashes would explode.
func repeatCount(value, unit string) int {
	times := 1
	if strings.Contains(`\"'$%`, unit) {
		for times < 64 && strings.HasPrefix(value[times:], unit) {
			times++
		}
	}
	return times
}

// hexNeedle returns the value in hexadecimal digits, as one word or as a dump of
// bytes.
func (s *speller) hexNeedle(value string) needle {
	var n needle
	gap := s.listCell(betweenHex)
	for i := range len(value) {
		if i > 0 {
			n = append(n, gap)
		}
		n = append(n, s.cellFor([2]byte{'x', value[i]}, func() []string { return bothHexCases(fmt.Sprintf("%02x", value[i])) }))
	}
	return n
}

// betweenHex is what may be between two bytes in hex.
var betweenHex = []string{
	"", "0x", " ", ":", "-", " 0x", ",0x", ", 0x", ",\n0x", "\n", "\r\n", `\n`, `\r\n`, `\\n`,
}

// utf16Needle returns the ASCII part of the value in UTF-16 of either byte order:
// a zero between two bytes.
func (s *speller) utf16Needle(value string) needle {
	var n needle
	gap := s.listCell(zero)
	for i := range len(value) {
		if i > 0 {
			n = append(n, gap)
		}
		n = append(n, s.cellFor([2]byte{'w', value[i]}, func() []string { return []string{value[i : i+1]} }))
	}
	return n
}

var zero = []string{"\x00"}

// characterSpellings returns the ways in which programs write one character: as
// it is, in URLs, in strings of JSON and programming languages, in shells, in
// HTML.
func characterSpellings(unit string) []string {
	out := []string{unit}
	for _, format := range []string{"%%%02x", "%%25%02x", `\x%02x`, `\%03o`} {
		var b strings.Builder
		for i := range len(unit) {
			fmt.Fprintf(&b, format, unit[i])
		}
		out = append(out, bothHexCases(b.String())...)
	}
	r, _ := utf8.DecodeRuneInString(unit)
	if r == utf8.RuneError {
		// Encoders write this character in place of invalid bytes.
		out = append(out, string(r))
	}
	return append(append(out, runeSpellings(r)...), specialSpellings[unit]...)
}

func runeSpellings(r rune) []string {
	var out []string
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		out = append(out, bothHexCases(fmt.Sprintf(`\u%04x\u%04x`, high, low))...)
	} else {
		out = append(out, bothHexCases(fmt.Sprintf(`\u%04x`, r))...)
	}
	if r > 0x7f && r < 0x100 {
		out = append(out, bothHexCases(fmt.Sprintf(`\x%02x`, r))...)
	}
	for _, format := range []string{`\U%08x`, `\u{%x}`, "&#%d;", "&#x%x;"} {
		out = append(out, bothHexCases(fmt.Sprintf(format, r))...)
	}
	// A shell accepts a backslash before any punctuation, and other languages
	// before most. Before a letter or a digit it means something else.
	if r < 0x80 && !alnum.has(byte(r)) && r >= ' ' {
		out = append(out, `\`+string(r))
	}
	return out
}

// specialSpellings are the spellings that only one character has.
var specialSpellings = map[string][]string{
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

// quotedAgain adds the spellings after quoting once or twice more: agents print
// JSON that contains JSON.
func quotedAgain(spellings []string) []string {
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

// bothHexCases returns a spelling with its hexadecimal digits in lower case and
// in upper case.
func bothHexCases(spelling string) []string {
	up := []byte(spelling)
	for i, b := range up {
		if 'a' <= b && b <= 'f' {
			up[i] -= 'a' - 'A'
		}
	}
	return []string{spelling, string(up)}
}

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// around is a value with a piece in its middle, which New takes whatever the
// piece is.
func around(piece string) string { return "hunter" + piece + "2xyz9" }

func TestEachSpellingOfACharacterIsReplacedAndNoOther(t *testing.T) {
	special := map[string][]string{
		"\x00": {`\0`}, "\a": {`\a`}, "\b": {`\b`}, "\t": {`\t`}, "\n": {`\n`, "\r\n", `\r\n`}, "\v": {`\v`}, "\f": {`\f`}, "\r": {`\r`},
		"\x1b": {`\e`, `\E`}, " ": {"+"}, "$": {"$$"}, "%": {"%%"}, "&": {"&amp;"}, "<": {"&lt;"}, ">": {"&gt;"},
		`"`: {"&quot;", `""`, `'"'`}, "'": {"&apos;", `''`, `'\''`, `'"'"'`}, "\xe9": {"\ufffd"},
	}
	units := []string{"\x80", "\xe9", "\xff"}
	for b := range byte('A') {
		units = append(units, string(b))
	}
	units = append(units, strings.Split("Zaz[\\]^_`{|}~\x7f\u0080é\u0100ʰ密\uffff\U00010000🔑", "")...)
	for _, unit := range units {
		r := New(Secret{"KEY", around(unit)})
		good := append([]string{unit}, special[unit]...)
		bad := []string{"", "\\" + unit + unit, `\q`}
		for _, format := range []string{"%%%02x", "%%%02X", "%%25%02x", "%%25%02X", `\x%02x`, `\x%02X`, `\%03o`} {
			good = append(good, each(unit, format))
		}
		if runes := []rune(unit); string(runes) == unit {
			for _, format := range []string{`\U%08x`, `\U%08X`, `\u{%x}`, `\u{%X}`, "&#%d;", "&#x%x;", "&#x%X;"} {
				good = append(good, fmt.Sprintf(format, runes[0]))
			}
			for _, format := range []string{`\u%04x`, `\u%04X`} {
				var spelled strings.Builder
				for _, half := range utf16.Encode(runes) {
					fmt.Fprintf(&spelled, format, half)
				}
				good = append(good, spelled.String())
			}
			if bare := fmt.Sprintf(`\x%02x`, runes[0]); runes[0] < 0x100 {
				good = append(good, bare) // as Python writes it
			} else {
				bad = append(bad, bare)
			}
			if runes[0] >= ' ' && runes[0] < 0x80 && !alnum.has(unit[0]) {
				good = append(good, `\`+unit)
			} else if !strings.Contains("abefnrtvE0", unit) {
				bad = append(bad, `\`+unit)
			}
		}
		for _, spelled := range good {
			// Escapes are also found in JSON, and in JSON that JSON holds.
			for _, text := range []string{spelled, quoteJSON(spelled, false), quoteJSON(quoteJSON(spelled, false), false)} {
				if spelled[0] != '\\' && text != spelled {
					continue
				}
				if got, want := r.String("<"+around(text)+">"), "<[redacted:KEY]>"; got != want {
					t.Errorf("%q as %q: got %q, want %q", unit, text, got, want)
				}
			}
		}
		for _, spelled := range bad {
			if text := around(spelled); r.String(text) != text && spelled != unit {
				t.Errorf("%q is not a spelling of %q, and became %q", text, unit, r.String(text))
			}
		}
	}
}

// Each of several equal letters may be spelled in its own way. Equal marks that
// occur in their own spellings may not: three backslashes would be two.
func TestManyAlikeAreSpelledInOneWay(t *testing.T) {
	for value, texts := range map[string]struct{ replaced, stay []string }{
		around("rr"):                          {[]string{around("rr"), around("%72r"), around("r%72"), around("%72%72")}, []string{around("r"), around("rrr")}},
		around(`\\`):                          {[]string{around(`\\`), around(`\\\\`), around(`%5c%5c`)}, []string{around(`\`), around(`\\\`), around(`\%5c`)}},
		around(`''`):                          {[]string{around(`''`), around(`''''`), around(`\'\'`)}, []string{around(`'''`), around(`'\'`)}},
		around(`""`):                          {[]string{around(`""`), around(`""""`)}, []string{around(`"""`)}},
		around(`$$`):                          {[]string{around(`$$`), around(`$$$$`)}, []string{around(`$$$`)}},
		around(`%%`):                          {[]string{around(`%%`), around(`%%%%`)}, []string{around(`%%%`)}},
		around(strings.Repeat("'", 65)):       {[]string{around(strings.Repeat(`\'`, 64) + "'")}, []string{around(strings.Repeat(`\'`, 63) + "''")}},
		around(strings.Repeat("'", 64) + `"`): {[]string{around(strings.Repeat(`\'`, 64) + `"`)}, nil},
	} {
		r := New(Secret{"KEY", value})
		for _, text := range texts.replaced {
			if got := r.String(text); got != "[redacted:KEY]" {
				t.Errorf("%q as %q became %q", value, text, got)
			}
		}
		for _, text := range texts.stay {
			if got := r.String(text); got != text {
				t.Errorf("%q is not %q, and became %q", text, value, got)
			}
		}
	}
}

func TestHexIsReplacedWhateverStandsBetweenItsBytes(t *testing.T) {
	const value = "hunter2é"
	r := New(Secret{"KEY", value})
	for _, between := range []string{"", "0x", " ", ":", "-", " 0x", ",0x", ", 0x", ",\n0x", "\n", "\r\n", `\n`, `\r\n`, `\\n`} {
		for _, format := range []string{"%02x", "%02X"} {
			var all []string
			for i := range len(value) {
				all = append(all, fmt.Sprintf(format, value[i]))
			}
			if text := strings.Join(all, between); r.String(text) != "[redacted:KEY]" {
				t.Errorf("%q became %q", text, r.String(text))
			}
		}
	}
	for _, between := range []string{"x", "  ", ",", "mutant"} {
		if text := wrap(hex.EncodeToString([]byte(value)), 2, between); r.String(text) != text {
			t.Errorf("%q became %q", text, r.String(text))
		}
	}
}

func TestBase64IsReplacedHoweverItsDigitsAreWritten(t *testing.T) {
	const value = "so?>secret~~~>>>???z"
	r := New(Secret{"KEY", value})
	whole := base64.StdEncoding.EncodeToString([]byte(value))
	if !strings.Contains(whole, "+") || !strings.Contains(whole, "/") || !strings.HasSuffix(whole, "=") {
		t.Fatalf("%s lacks a digit", whole)
	}
	for _, of := range [][]string{
		{"+", "-", "%2B", "%2b", `\u002B`, `\u002b`}, {"/", "_", "%2F", "%2f", `\/`, `\\/`}, {"=", "", "%3D", "%3d"},
	} {
		for _, spelled := range of {
			if text := strings.ReplaceAll(whole, of[0], spelled); r.String(text) != "[redacted:KEY]" {
				t.Errorf("%q became %q", text, r.String(text))
			}
		}
		for _, spelled := range []string{"0", ".", "mutant"} {
			if text := strings.ReplaceAll(strings.TrimRight(whole, "="), of[0], spelled); of[0] != "=" && r.String(text) != text {
				t.Errorf("%q became %q", text, r.String(text))
			}
		}
	}
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`, `\\n`, `\\r\\n`} {
		if text := wrap(whole, 4, end); r.String(text) != "[redacted:KEY]" {
			t.Errorf("%q became %q", text, r.String(text))
		}
	}
}

// Of the digits at the edges only the bits of the value count, and those do.
func TestBase64OfAnotherTextStays(t *testing.T) {
	const value = "s3cr3t-Value-0987654321"
	r := New(Secret{"KEY", value})
	for bit := range 8 * len(value) {
		other := []byte(value)
		other[bit/8] ^= 0x80 >> (bit % 8)
		for before := range 3 {
			spelled := base64.StdEncoding.EncodeToString(append([]byte(">>")[:before:before], other...))
			// The digits behind the one that differs may be enough.
			if at := strings.Index(r.String(spelled), "["); at >= 0 && at <= (8*before+bit)/6 {
				t.Errorf("bit %d behind %d bytes: %s became %s", bit, before, spelled, r.String(spelled))
			}
		}
	}
	whole := base64.StdEncoding.EncodeToString([]byte(value))
	for from, want := range []string{"[redacted:KEY]", "[redacted:KEY]", "[redacted:KEY]", "[redacted:KEY]", whole[4:]} {
		if got := r.String(whole[from:]); got != want {
			t.Errorf("%s became %s, want %s", whole[from:], got, want)
		}
	}
}

package loopspec

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

// Locate sets the line and the column of findings about the document's spec, and sorts
// them by it. A field that is missing is reported where what it belongs to begins.
func (d Document) Locate(findings []Finding) []Finding {
	for i, f := range findings {
		path := f.Path
		v, found := d.places[path]
		for !found && path != "" {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
			v, found = d.places[path]
		}
		at := 0
		if found {
			at = v.At
		}
		if found && path == f.Path && v.Kind == jsontree.Text {
			at = sourceOffset(d.source, v.At, f.Offset)
		}
		findings[i].Line, findings[i].Column = jsontree.Place(d.source, at)
	}
	return inOrder(findings)
}

// sourceOffset returns the byte of a document that is byte offset of the text whose
// opening quote is at the byte at.
func sourceOffset(src []byte, at, offset int) int {
	at++
	for n := 0; n < offset && at < len(src) && src[at] != '"'; {
		if src[at] != '\\' {
			_, size := utf8.DecodeRune(src[at:])
			n += size
			at += size
			continue
		}
		length := 2
		if src[at+1] == 'u' {
			length = 6
			if at+12 <= len(src) && isSurrogate(src[at:at+6]) {
				length = 12
			}
		}
		var text string
		if json.Unmarshal([]byte(`"`+string(src[at:at+length])+`"`), &text) != nil {
			return at
		}
		n += len(text)
		at += length
	}
	return at
}

// isSurrogate reports whether an escape is the first half of a character.
func isSurrogate(escape []byte) bool {
	n, err := strconv.ParseUint(string(escape[2:]), 16, 32)
	return err == nil && n >= 0xd800 && n < 0xdc00
}

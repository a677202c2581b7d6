package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Bounds of results, in bytes.
const (
	mostText = 2 << 10  // of the text of a result
	mostPage = 32 << 10 // of a page of a list, unless its first entry is longer
)

// pageMeta says what a page is of.
type pageMeta struct {
	Schema     string `json:"schema"`
	NextCursor string `json:"next_cursor,omitempty"` // empty: nothing follows
}

// listed is the result of a call that lists. The text has as many entries as fit, each whole or
// with its long parts left out, and says where to go on.
func listed(l verb.Listing) (*sdk.CallToolResult, error) {
	page := struct {
		Data []json.RawMessage `json:"data"`
		Meta pageMeta          `json:"meta"`
	}{[]json.RawMessage{}, pageMeta{Schema: l.Schema}}
	size := 0
	for i, entry := range l.Data {
		body, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		if size += len(body); i > 0 && size > mostPage {
			break
		}
		page.Data = append(page.Data, body)
		page.Meta.NextCursor = l.Cursors[i]
	}
	body, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	text := string(body)
	if len(text) > mostText {
		text = linesOf(page.Data, l.Cursors, page.Meta)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(body)}, nil
}

// linesOf is a page as text: a line for each entry.
func linesOf(entries []json.RawMessage, cursors []string, meta pageMeta) string {
	const most = 300 // bytes of a line
	var b strings.Builder
	shown := 0
	for i, entry := range entries {
		line := shorten(entry, most)
		if i > 0 && b.Len()+len(line) > mostText-200 { // The last line says where to go on.
			break
		}
		b.WriteString(line + "\n")
		shown++
	}
	next := cursors[shown-1]
	switch {
	case shown < len(entries):
		fmt.Fprintf(&b, "%d of the %d of this page; the others are in structuredContent, or pass cursor %q", shown, len(entries), next)
	case meta.NextCursor != "":
		fmt.Fprintf(&b, "more follow: pass cursor %q", next)
	}
	return b.String()
}

// node is a JSON value in the order in which it was written.
type node struct {
	text  string // of anything but an object or a list; of a string as it is in JSON
	open  byte   // { or [, else 0
	names []string
	parts []node
}

// shorten is a JSON value as text of about at most as many bytes. Of a longer one, long texts are
// left out from the end of a line or a word on, and long lists from an entry on, each with a note.
func shorten(body []byte, most int) string {
	if len(body) <= most {
		return string(body)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	n, err := readNode(d)
	if err != nil {
		return "a result of " + fmt.Sprint(len(body)) + " bytes, in structuredContent"
	}
	for _, limit := range []struct{ text, list, depth int }{{400, 20, 9}, {200, 10, 9}, {120, 6, 6}, {80, 4, 4}, {60, 3, 3}, {40, 2, 2}, {24, 1, 2}, {24, 0, 1}} {
		var b strings.Builder
		n.write(&b, limit.text, limit.list, limit.depth)
		if b.Len() <= most {
			return b.String()
		}
	}
	return "a result of " + fmt.Sprint(len(body)) + " bytes, in structuredContent"
}

func readNode(d *json.Decoder) (n node, err error) {
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		text, err := json.Marshal(token)
		return node{text: string(text)}, err
	}
	n.open = byte(delim)
	for d.More() {
		if n.open == '{' {
			name, err := d.Token()
			if err != nil {
				return n, err
			}
			n.names = append(n.names, name.(string))
		}
		part, err := readNode(d)
		if err != nil {
			return n, err
		}
		n.parts = append(n.parts, part)
	}
	_, err = d.Token()
	return n, err
}

// isEmpty reports whether the value says nothing: it is left out of what is shortened.
func (n node) isEmpty() bool {
	return n.open != 0 && len(n.parts) == 0 || slices.Contains([]string{`""`, "0", "null", "false"}, n.text)
}

func (n node) write(b *strings.Builder, text, list, depth int) {
	switch {
	case n.open == 0:
		b.WriteString(cutText(n.text, text))
	case depth == 0:
		b.WriteString(`"…"`)
	case n.open == '[':
		b.WriteByte('[')
		for i, part := range n.parts {
			if i > 0 {
				b.WriteByte(',')
			}
			if i == list {
				fmt.Fprintf(b, `"… %d more"`, len(n.parts)-i)
				break
			}
			part.write(b, text, list, depth-1)
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		written := false
		for i, part := range n.parts {
			if part.isEmpty() {
				continue
			}
			if written {
				b.WriteByte(',')
			}
			written = true
			fmt.Fprintf(b, "%q:", n.names[i])
			part.write(b, text, list, depth-1)
		}
		b.WriteByte('}')
	}
}

// cutText is a JSON string of at most so many bytes, and a note of what was left out. Anything
// else is returned as it is.
func cutText(quoted string, most int) string {
	var text string
	if len(quoted) <= most || json.Unmarshal([]byte(quoted), &text) != nil {
		return quoted
	}
	head := strings.ToValidUTF8(text[:min(most, len(text))], "")
	for _, end := range []string{"\n", " "} {
		if at := strings.LastIndex(head, end); at > most/2 {
			head = head[:at]
			break
		}
	}
	short, _ := json.Marshal(fmt.Sprintf("%s … %d bytes more", head, len(text)-len(head)))
	return string(short)
}

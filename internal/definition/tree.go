package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pawl-run/pawl/internal/readiness"
)

// treeReader turns the syntax tree of the first YAML document into entries. It
// follows no alias and resolves no tag.
type treeReader struct{ src source }

// parseTree reads a YAML document with the YAML parser. The text is one that
// heavy accepts.
func parseTree(src source) ([]entry, error) {
	file, err := parseYAML(src)
	if err != nil {
		return nil, err
	}
	r := treeReader{src}
	for _, doc := range file.Docs {
		pairs, ok := mapping(doc.Body)
		if !ok {
			continue
		}
		entries := make([]entry, 0, len(pairs))
		items := 0
		for _, pair := range pairs {
			if list, ok := pair.Value.(*ast.SequenceNode); ok {
				items += len(list.Values)
			}
			if items > maxItems {
				return nil, fmt.Errorf("more than %d list items", maxItems)
			}
			if depth(pair.Value, 0) > maxDepth {
				return nil, errTooDeep
			}
			entries = append(entries, r.entry(pair))
		}
		if !slices.ContainsFunc(entries, func(e entry) bool { return plainKey(e.key.Name) }) {
			break
		}
		return entries, r.complete(entries)
	}
	return nil, errors.New("not a YAML mapping with such keys as a definition has")
}

// complete checks that the tree has the key of each line in which a line reader
// sees one, and each item of a list, and that no value is where a key
// would be; otherwise the parser understood the text in a way that no reader of it
// would.
func (r treeReader) complete(entries []entry) error {
	for _, e := range entries {
		if plainKey(e.key.Name) && r.colon(e.key) == 0 {
			return &syntaxError{line: e.key.Line, why: "a key without its colon"}
		}
		if e.block && len(e.items) > 0 && r.dashesBelow(e) != len(e.items) {
			return &syntaxError{line: e.key.Line, why: "a list item inside another value"}
		}
		if text := strings.TrimLeft(r.src.from(e.key.Line, r.colon(e.key)+1), " \t"); strings.IndexAny(text, "|>") == 0 && !blockHeader.MatchString(text) {
			return &syntaxError{line: e.key.Line, why: "text behind the mark of a block"}
		}
		if line := r.src.loses(e); line > 0 {
			return &syntaxError{line: line, why: "a tab that YAML drops"}
		}
		if v := e.scalar; v.Line > e.key.Line && v.Column <= e.key.Column && !e.block {
			return &syntaxError{line: v.Line, why: "text without a key"}
		}
	}
	i := 0
	for n, line := range r.src.lines {
		name, _, ok := keyLine(line)
		if !ok || !plainKey(name) {
			continue
		}
		for i < len(entries) && entries[i].key.Line < n+1 {
			i++
		}
		if i == len(entries) || entries[i].key.Line != n+1 || entries[i].key.Name != name {
			return &syntaxError{line: n + 1, why: "a key inside another value"}
		}
	}
	return nil
}

// dashesBelow counts the items that a line reader sees in a block list, at the
// column of the first.
func (r treeReader) dashesBelow(e entry) int {
	n := 0
	for i := e.key.Line; i < len(r.src.lines) && !endsList(r.src.lines[i]); i++ {
		line := strings.TrimLeft(r.src.lines[i], " \t")
		if column := len(r.src.lines[i]) - len(line) + 1; column == e.scalar.Column && (line == "-" || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "-\t")) {
			n++
		}
	}
	return n
}

// mapping lists the pairs of a block or flow mapping.
func mapping(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, true
	}
	return nil, false
}

func (r treeReader) entry(pair *ast.MappingValueNode) entry {
	at := pair.Key.GetToken()
	e := entry{key: Key{Name: show(at.Value), Line: at.Position.Line, Column: at.Position.Column}}
	switch node := pair.Value.(type) {
	case *ast.SequenceNode:
		e.scalar, e.block = r.collection(node, node.Start, node.End)
		for i, item := range node.Values {
			v := r.item(item, node.IsFlowStyle)
			if !node.IsFlowStyle && i < len(node.Entries) && node.Entries[i].Start != nil {
				dash := node.Entries[i].Start.Position
				if missing(item) {
					v.Line, v.Column = dash.Line, dash.Column+1
				}
				v = r.begin(v, dash.Line, dash.Column+1)
			}
			e.items = append(e.items, v)
		}
	case *ast.MappingNode:
		e.scalar, e.block = r.collection(node, node.Start, node.End)
	case *ast.MappingValueNode:
		e.scalar, e.block = r.collection(node, nil, nil)
	case *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
		// The line reader gives the text as it was written, items included.
		if lines := readKey(r.src, e.key.Line-1); lines != nil && lines.key.Name == e.key.Name {
			return *lines
		}
		e.scalar = r.item(node, false)
	default:
		e.scalar = r.scalar(node)
		if tokenKeys[e.key.Name] && plain(node) {
			e.scalar.Text = cutComment(e.scalar.Text)
		}
	}
	if colon := r.colon(e.key); colon > 0 {
		if missing(pair.Value) {
			e.scalar.Line, e.scalar.Column = e.key.Line, colon+1
		}
		e.scalar = r.begin(e.scalar, e.key.Line, colon+1)
	}
	if e.scalar.Line == 0 {
		e.scalar.Line, e.scalar.Column = e.key.Line, e.key.Column
	}
	if _, list := pair.Value.(*ast.SequenceNode); !list && (e.scalar.Text != "" || quoted(pair.Value)) {
		e.items = []readiness.Value{e.scalar}
	}
	return e
}

// collection is the source text of a flow collection, and no text for a block
// collection, which has no end of its own.
func (r treeReader) collection(node ast.Node, start, end *token.Token) (v readiness.Value, block bool) {
	if start == nil || end == nil {
		return at(first(node), ""), true
	}
	from, to := start.Position, end.Position
	rest := r.src.from(from.Line, from.Column)
	if from.Line == to.Line {
		return at(start, strings.TrimSpace(closed(rest, to.Column-from.Column+1, end.Value))), false
	}
	parts := []string{strings.TrimSpace(rest)}
	for line := from.Line + 1; line < to.Line; line++ {
		parts = append(parts, strings.TrimSpace(r.src.from(line, 1)))
	}
	parts = append(parts, strings.TrimSpace(closed(r.src.from(to.Line, 1), to.Column, end.Value)))
	return at(start, strings.Join(parts, " ")), false
}

// item is one element of a list. What is not a scalar is taken as written in
// its line, in a flow list up to the next comma.
func (r treeReader) item(node ast.Node, inFlow bool) readiness.Value {
	switch node := node.(type) {
	case *ast.SequenceNode:
		if v, block := r.collection(node, node.Start, node.End); !block {
			return v
		}
	case *ast.MappingNode:
		if v, block := r.collection(node, node.Start, node.End); !block {
			return v
		}
	case *ast.MappingValueNode, *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
	default:
		return r.scalar(node)
	}
	v := at(first(node), "")
	rest := r.src.from(v.Line, v.Column)
	if end := strings.IndexAny(rest, ",]"); inFlow && end >= 0 {
		rest = rest[:end]
	}
	v.Text, _ = lineScalar(rest, false)
	return v
}

// scalar is the text of a scalar node, as written and not as typed.
func (r treeReader) scalar(node ast.Node) readiness.Value {
	switch node := node.(type) {
	case nil:
		return readiness.Value{}
	case *ast.LiteralNode:
		return at(node.Start, strings.TrimRight(node.Value.Value, "\n"))
	case *ast.StringNode:
		if quoted(node) {
			return r.settle(at(node.Token, node.Value), true)
		}
	case *ast.NullNode:
		if missing(node) {
			return at(node.Token, "")
		}
	}
	v := at(node.GetToken(), node.GetToken().Value)
	v.Text = strings.Trim(v.Text, " \t")
	return r.settle(v, false)
}

// colon is the column of the colon behind a key, or 0 if the key is written in
// a way that people do not write.
func (r treeReader) colon(key Key) int {
	rest := r.src.from(key.Line, key.Column)
	written := key.Name
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		written = rest[:1] + key.Name + rest[:1]
	}
	rest, ok := strings.CutPrefix(rest, written)
	before, _, found := strings.Cut(rest, ":")
	if !ok || !found || strings.Trim(before, " \t") != "" {
		return 0
	}
	return key.Column + utf8.RuneCountInString(written) + len(before)
}

// begin places a value at the first character after its key or its dash, in
// that line or a later one. The parser is often a little off.
func (r treeReader) begin(v readiness.Value, line, column int) readiness.Value {
	for ; v.Text != "" && line <= len(r.src.lines); line++ {
		rest := r.src.from(line, column)
		text := strings.TrimLeft(rest, " \t")
		if text != "" && text[0] != '#' {
			v.Line, v.Column = line, column+len(rest)-len(text)
			break
		}
		column = 1
	}
	return v
}

// settle corrects the column of a value. The parser counts white space before
// a value as part of it after a tab, and white space behind a number as if it
// stood before it.
func (r treeReader) settle(v readiness.Value, quoted bool) readiness.Value {
	rest := r.src.from(v.Line, v.Column)
	word, _, _ := strings.Cut(v.Text, " ")
	if quoted || strings.HasPrefix(rest, word) {
		word = ""
	}
	if spaces := len(rest) - len(strings.TrimLeft(rest, " \t")); spaces > 0 && strings.HasPrefix(rest[spaces:], word) {
		v.Column += spaces
		return v
	}
	line := r.src.from(v.Line, 1)
	if i := strings.LastIndex(line[:min(len(line), len(line)-len(rest)+len(word))], word); i >= 0 {
		v.Column = utf8.RuneCountInString(line[:i]) + 1
	}
	return v
}

// first is the token at which a node begins. A mapping's own token is the
// colon of its first pair.
func first(node ast.Node) *token.Token {
	if pairs, ok := mapping(node); ok && len(pairs) > 0 {
		return pairs[0].Key.GetToken()
	}
	return node.GetToken()
}

func at(t *token.Token, text string) readiness.Value {
	text = show(text)
	if t == nil || t.Position == nil {
		return readiness.Value{Text: text}
	}
	return readiness.Value{Text: text, Line: t.Position.Line, Column: t.Position.Column}
}

// closed is text up to the bracket that is its nth character, or later: the
// parser does not count the tabs between items.
func closed(text string, n int, bracket string) string {
	end := 0
	for end < len(text) && n > 1 {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
		n--
	}
	if i := strings.Index(text[end:], bracket); i >= 0 {
		return text[:end+i+len(bracket)]
	}
	return text
}

func quoted(node ast.Node) bool {
	s, ok := node.(*ast.StringNode)
	return ok && (s.Token.Type == token.SingleQuoteType || s.Token.Type == token.DoubleQuoteType)
}

// missing reports whether there is nothing where a value might be.
func missing(node ast.Node) bool {
	null, ok := node.(*ast.NullNode)
	return ok && null.Token.Type == token.ImplicitNullType
}

func plain(node ast.Node) bool {
	_, block := node.(*ast.LiteralNode)
	return node != nil && !block && !quoted(node)
}

// depth counts collections inside one another and stops where it is too deep.
func depth(node ast.Node, above int) int {
	if above > maxDepth {
		return above
	}
	deepest := above
	switch node := node.(type) {
	case *ast.SequenceNode:
		for _, item := range node.Values {
			deepest = max(deepest, depth(item, above+1))
		}
	case *ast.MappingNode:
		for _, pair := range node.Values {
			deepest = max(deepest, depth(pair, above+1))
		}
	case *ast.MappingValueNode:
		return max(depth(node.Key, above+1), depth(node.Value, above+1))
	case *ast.MappingKeyNode:
		return depth(node.Value, above+1)
	case *ast.TagNode:
		return depth(node.Value, above+1)
	case *ast.AnchorNode:
		return depth(node.Value, above+1)
	}
	return deepest
}

package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// treeReader turns the syntax tree of the first YAML document into entries. It
// follows no alias and resolves no tag.
type treeReader struct{ src source }

// parseTree reads a YAML document with the YAML parser. The text must not be tooHeavy.
func parseTree(src source) ([]entry, error) {
	file, err := parseYAML(src)
	if err != nil {
		return nil, err
	}
	r := treeReader{src}
	for _, doc := range file.Docs {
		pairs, ok := mappingPairs(doc.Body)
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
			if nestingDepth(pair.Value, 0) > maxDepth {
				return nil, errTooDeep
			}
			entries = append(entries, r.readEntry(pair))
		}
		if !slices.ContainsFunc(entries, func(e entry) bool { return plainKey(e.key.Name) }) {
			break
		}
		return entries, r.checkComplete(entries)
	}
	return nil, errors.New("not a YAML mapping with such keys as a definition has")
}

// checkComplete checks that the tree has every key and every item of a list that a reader of
// lines sees, and that no value is where a key would be. Otherwise the parser read the text
// in another way than people do.
func (r treeReader) checkComplete(entries []entry) error {
	for _, e := range entries {
		if plainKey(e.key.Name) && r.colonColumn(e.key) == 0 {
			return &syntaxError{line: e.key.Line, why: "a key without its colon"}
		}
		if e.block && len(e.items) > 0 && r.dashesBelow(e) != len(e.items) {
			return &syntaxError{line: e.key.Line, why: "a list item inside another value"}
		}
		if text := strings.TrimLeft(r.src.restOf(e.key.Line, r.colonColumn(e.key)+1), " \t"); strings.IndexAny(text, "|>") == 0 && !blockHeader.MatchString(text) {
			return &syntaxError{line: e.key.Line, why: "text behind the mark of a block"}
		}
		if line := r.src.lostTabLine(e); line > 0 {
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

// dashesBelow counts the items of a block list that a reader of lines sees, at the column of
// the first.
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

// mappingPairs returns the pairs of a block or flow mapping.
func mappingPairs(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, true
	}
	return nil, false
}

func (r treeReader) readEntry(pair *ast.MappingValueNode) entry {
	at := pair.Key.GetToken()
	e := entry{key: Key{Name: showMarks(at.Value), Line: at.Position.Line, Column: at.Position.Column}}
	switch node := pair.Value.(type) {
	case *ast.SequenceNode:
		e.scalar, e.block = r.readCollection(node, node.Start, node.End)
		for i, item := range node.Values {
			v := r.readItem(item, node.IsFlowStyle)
			if !node.IsFlowStyle && i < len(node.Entries) && node.Entries[i].Start != nil {
				dash := node.Entries[i].Start.Position
				if isMissing(item) {
					v.Line, v.Column = dash.Line, dash.Column+1
				}
				v = r.placeValue(v, dash.Line, dash.Column+1)
			}
			e.items = append(e.items, v)
		}
	case *ast.MappingNode:
		e.scalar, e.block = r.readCollection(node, node.Start, node.End)
	case *ast.MappingValueNode:
		e.scalar, e.block = r.readCollection(node, nil, nil)
	case *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
		// The reader of lines returns the text as written, with its items.
		if lines := readKey(r.src, e.key.Line-1); lines != nil && lines.key.Name == e.key.Name {
			return *lines
		}
		e.scalar = r.readItem(node, false)
	default:
		e.scalar = r.readScalar(node)
		if tokenKeys[e.key.Name] && isPlain(node) {
			e.scalar.Text = cutComment(e.scalar.Text)
		}
	}
	if colon := r.colonColumn(e.key); colon > 0 {
		if isMissing(pair.Value) {
			e.scalar.Line, e.scalar.Column = e.key.Line, colon+1
		}
		e.scalar = r.placeValue(e.scalar, e.key.Line, colon+1)
	}
	if e.scalar.Line == 0 {
		e.scalar.Line, e.scalar.Column = e.key.Line, e.key.Column
	}
	if _, list := pair.Value.(*ast.SequenceNode); !list && (e.scalar.Text != "" || isQuoted(pair.Value)) {
		e.items = []readiness.Value{e.scalar}
	}
	return e
}

// readCollection returns the source text of a flow collection, and no text for a block
// collection, whose end is not marked.
func (r treeReader) readCollection(node ast.Node, start, end *token.Token) (v readiness.Value, block bool) {
	if start == nil || end == nil {
		return valueAt(firstToken(node), ""), true
	}
	from, to := start.Position, end.Position
	rest := r.src.restOf(from.Line, from.Column)
	if from.Line == to.Line {
		return valueAt(start, strings.TrimSpace(untilBracket(rest, to.Column-from.Column+1, end.Value))), false
	}
	parts := []string{strings.TrimSpace(rest)}
	for line := from.Line + 1; line < to.Line; line++ {
		parts = append(parts, strings.TrimSpace(r.src.restOf(line, 1)))
	}
	parts = append(parts, strings.TrimSpace(untilBracket(r.src.restOf(to.Line, 1), to.Column, end.Value)))
	return valueAt(start, strings.Join(parts, " ")), false
}

// readItem returns one element of a list. If it is not a scalar, it is the text of its
// line, in a flow list up to the next comma.
func (r treeReader) readItem(node ast.Node, inFlow bool) readiness.Value {
	switch node := node.(type) {
	case *ast.SequenceNode:
		if v, block := r.readCollection(node, node.Start, node.End); !block {
			return v
		}
	case *ast.MappingNode:
		if v, block := r.readCollection(node, node.Start, node.End); !block {
			return v
		}
	case *ast.MappingValueNode, *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
	default:
		return r.readScalar(node)
	}
	v := valueAt(firstToken(node), "")
	rest := r.src.restOf(v.Line, v.Column)
	if end := strings.IndexAny(rest, ",]"); inFlow && end >= 0 {
		rest = rest[:end]
	}
	v.Text, _ = lineScalar(rest, false)
	return v
}

// readScalar returns the text of a scalar node as written, whatever its YAML type.
func (r treeReader) readScalar(node ast.Node) readiness.Value {
	switch node := node.(type) {
	case nil:
		return readiness.Value{}
	case *ast.LiteralNode:
		return valueAt(node.Start, strings.TrimRight(node.Value.Value, "\n"))
	case *ast.StringNode:
		if isQuoted(node) {
			return r.correctColumn(valueAt(node.Token, node.Value), true)
		}
	case *ast.NullNode:
		if isMissing(node) {
			return valueAt(node.Token, "")
		}
	}
	v := valueAt(node.GetToken(), node.GetToken().Value)
	v.Text = strings.Trim(v.Text, " \t")
	return r.correctColumn(v, false)
}

// colonColumn returns the column of the colon after a key, or 0 if the key is written in an
// unusual way.
func (r treeReader) colonColumn(key Key) int {
	rest := r.src.restOf(key.Line, key.Column)
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

// placeValue sets the place of a value to the first character after its key or its dash, in
// that line or a later one. The parser is often slightly wrong.
func (r treeReader) placeValue(v readiness.Value, line, column int) readiness.Value {
	for ; v.Text != "" && line <= len(r.src.lines); line++ {
		rest := r.src.restOf(line, column)
		text := strings.TrimLeft(rest, " \t")
		if text != "" && text[0] != '#' {
			v.Line, v.Column = line, column+len(rest)-len(text)
			break
		}
		column = 1
	}
	return v
}

// correctColumn corrects the column of a value. After a tab, the parser counts white space
// before a value as part of it, and it counts white space after a number as if it were
// before it.
func (r treeReader) correctColumn(v readiness.Value, quoted bool) readiness.Value {
	rest := r.src.restOf(v.Line, v.Column)
	word, _, _ := strings.Cut(v.Text, " ")
	if quoted || strings.HasPrefix(rest, word) {
		word = ""
	}
	if spaces := len(rest) - len(strings.TrimLeft(rest, " \t")); spaces > 0 && strings.HasPrefix(rest[spaces:], word) {
		v.Column += spaces
		return v
	}
	line := r.src.restOf(v.Line, 1)
	if i := strings.LastIndex(line[:min(len(line), len(line)-len(rest)+len(word))], word); i >= 0 {
		v.Column = utf8.RuneCountInString(line[:i]) + 1
	}
	return v
}

// firstToken returns the token at which a node begins. A mapping's own token is the colon of
// its first pair.
func firstToken(node ast.Node) *token.Token {
	if pairs, ok := mappingPairs(node); ok && len(pairs) > 0 {
		return pairs[0].Key.GetToken()
	}
	return node.GetToken()
}

func valueAt(t *token.Token, text string) readiness.Value {
	text = showMarks(text)
	if t == nil || t.Position == nil {
		return readiness.Value{Text: text}
	}
	return readiness.Value{Text: text, Line: t.Position.Line, Column: t.Position.Column}
}

// untilBracket returns text up to the first bracket at its nth character or later: the
// parser does not count the tabs between items.
func untilBracket(text string, n int, bracket string) string {
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

func isQuoted(node ast.Node) bool {
	s, ok := node.(*ast.StringNode)
	return ok && (s.Token.Type == token.SingleQuoteType || s.Token.Type == token.DoubleQuoteType)
}

// isMissing reports whether a value is missing.
func isMissing(node ast.Node) bool {
	null, ok := node.(*ast.NullNode)
	return ok && null.Token.Type == token.ImplicitNullType
}

func isPlain(node ast.Node) bool {
	_, block := node.(*ast.LiteralNode)
	return node != nil && !block && !isQuoted(node)
}

// nestingDepth counts nested collections, and stops if they are too deep.
func nestingDepth(node ast.Node, above int) int {
	if above > maxDepth {
		return above
	}
	deepest := above
	switch node := node.(type) {
	case *ast.SequenceNode:
		for _, item := range node.Values {
			deepest = max(deepest, nestingDepth(item, above+1))
		}
	case *ast.MappingNode:
		for _, pair := range node.Values {
			deepest = max(deepest, nestingDepth(pair, above+1))
		}
	case *ast.MappingValueNode:
		return max(nestingDepth(node.Key, above+1), nestingDepth(node.Value, above+1))
	case *ast.MappingKeyNode:
		return nestingDepth(node.Value, above+1)
	case *ast.TagNode:
		return nestingDepth(node.Value, above+1)
	case *ast.AnchorNode:
		return nestingDepth(node.Value, above+1)
	}
	return deepest
}

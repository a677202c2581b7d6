package definition

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// maxNestedBytes is the largest file for ParseNested: the organisation of some thousand
// agents. Its nesting has the limits of every definition.
const maxNestedBytes = 256 << 10

// Node is a value of a YAML file that has keys inside keys, with its place. Nothing is
// expanded in it.
type Node struct {
	Key   Key             // of the pair that it is the value of; zero for the whole file and the items of a list
	Value readiness.Value // the text of a scalar; of others the place alone
	Nodes []*Node         // the pairs of a mapping, in the order of the file, or the items of a list
	List  bool
	Map   bool

	reader treeReader
	pairs  []*ast.MappingValueNode
}

// ParseNested reads a YAML file that is not flat, as Parse reads one that is. It must be
// valid YAML, and its top a mapping; an empty file has no keys.
func ParseNested(name string, data []byte) (*Node, error) {
	src := newSource(data)
	switch why := src.heavierThan(maxNestedBytes); {
	case src.isBomb():
		return nil, tooDeep(name)
	case why != "":
		return nil, unreadableFault(name, why, "write it shorter")
	}
	if markers := ConflictLines(src.text, false); markers != nil {
		return nil, unreadableFault(name, ConflictWords(markers), "resolve the conflict, and remove the markers")
	}
	src = firstDocument(src)
	file, err := parseYAML(src)
	if err != nil {
		return nil, unreadableFault(name, err.Error(), "correct that line; put a text with special characters into quotes")
	}
	r := treeReader{src}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
			continue
		case nestingDepth(doc.Body, 0) > maxDepth:
			return nil, tooDeep(name)
		}
		n := r.readNode(doc.Body)
		if !n.Map {
			return nil, unreadableFault(name, "not a YAML mapping", "write keys at the start of a line, like name: value")
		}
		return n, nil
	}
	return &Node{Map: true}, nil
}

func (r treeReader) readNode(body ast.Node) *Node {
	n := &Node{reader: r}
	if pairs, ok := mappingPairs(body); ok {
		n.Map, n.pairs, n.Value = true, pairs, valueAt(firstToken(body), "")
		first := map[string]int{}
		for _, pair := range pairs {
			child := r.readNode(pair.Value)
			at := pair.Key.GetToken()
			child.Key = Key{Name: showMarks(at.Value), Line: at.Position.Line, Column: at.Position.Column, Repeats: first[showMarks(at.Value)]}
			if child.Key.Repeats == 0 {
				first[child.Key.Name] = child.Key.Line
			}
			if child.Value.Line == 0 {
				child.Value.Line, child.Value.Column = child.Key.Line, child.Key.Column
			}
			n.Nodes = append(n.Nodes, child)
		}
		return n
	}
	if list, ok := body.(*ast.SequenceNode); ok {
		n.List, n.Value = true, valueAt(firstToken(body), "")
		for _, item := range list.Values {
			n.Nodes = append(n.Nodes, r.readNode(item))
		}
		return n
	}
	n.Value = r.readScalar(body)
	return n
}

// Get returns the value of a key of a mapping; nil without it, or if n is nil. Of a
// repeated key it is the first.
func (n *Node) Get(key string) *Node {
	if n == nil || !n.Map {
		return nil
	}
	i := slices.IndexFunc(n.Nodes, func(child *Node) bool { return child.Key.Name == key })
	if i < 0 {
		return nil
	}
	return n.Nodes[i]
}

// Text returns the text of a scalar; empty for others, and if n is nil.
func (n *Node) Text() string {
	if n == nil {
		return ""
	}
	return n.Value.Text
}

// Texts returns the items of a list, or a single value as a list of one. Items that are
// no scalars have no text.
func (n *Node) Texts() []readiness.Value {
	switch {
	case n == nil || n.Map || !n.List && n.Value.Text == "":
		return nil
	case !n.List:
		return []readiness.Value{n.Value}
	}
	values := make([]readiness.Value, 0, len(n.Nodes))
	for _, item := range n.Nodes {
		values = append(values, item.Value)
	}
	return values
}

// Document returns the keys of a mapping as a definition; name is used in errors.
func (n *Node) Document(name string) (*Document, error) {
	if !n.Map {
		return nil, unreadableFault(name, fmt.Sprintf("line %d: expected keys", n.Value.Line), "write keys and values below it")
	}
	doc := &Document{}
	for _, pair := range n.pairs {
		doc.entries = append(doc.entries, n.reader.readEntry(pair))
	}
	if len(doc.entries) == 0 {
		return doc, nil
	}
	return doc, doc.indexKeys(name)
}

// Taken is a key that was taken out of a document.
type Taken struct {
	Key   Key
	Value readiness.Value   // as Scalar returns it
	Items []readiness.Value // as List returns them
	Block bool              // the value is a list or nested keys, below the key

	Differs Key // a second occurrence with another value; zero: there is none
}

// Take removes a key from the document, and reports whether it had it.
func (d *Document) Take(key string) (t Taken, ok bool) {
	e := d.findEntry(key)
	if e == nil {
		return t, false
	}
	t = Taken{Key: e.key, Value: e.scalar, Items: e.items, Block: e.block}
	d.taken = append(d.taken, key)
	d.entries = slices.DeleteFunc(d.entries, func(e entry) bool {
		if e.key.Name == key && e.key.Differs && t.Differs.Line == 0 {
			t.Differs = e.key
		}
		return e.key.Name == key
	})
	d.first = map[string]int{}
	for i, e := range d.entries {
		if _, there := d.first[e.key.Name]; !there {
			d.first[e.key.Name] = i
		}
	}
	return t, true
}

// Report adds findings to those of Check and Definition.
func (d *Document) Report(findings ...readiness.Finding) {
	d.reported = append(d.reported, findings...)
}

// Suggest lets keys be named where one was probably meant by an unknown key.
func (d *Document) Suggest(keys ...string) { d.suggested = append(d.suggested, keys...) }

// ParseDuration reads a duration as keys have it: 90s, 10m, 1h30m, 2d or 1w.
func ParseDuration(text string) (time.Duration, error) { return parseDuration(text) }

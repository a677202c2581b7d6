package invariant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"

	yaml "github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	yamlparser "github.com/goccy/go-yaml/parser"
	yamltoken "github.com/goccy/go-yaml/token"

	"github.com/pawl-run/pawl/internal/rules/judging"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Bounds of what is read from files.
const (
	maxFile   = 4 << 20   // bytes of a file of JSON
	maxYAML   = 256 << 10 // of a file of YAML
	maxTokens = 10_000    // words and signs of a file of YAML, whose parser needs time with their square
	maxRead   = 12 << 20  // of all files of an evaluation
	maxDepth  = 200       // of values in values
	maxIndent = 1000      // bytes before the text of a line of YAML, and its list markers
)

// source is what is read once in an evaluation.
type source struct {
	kind string // json, yaml, files, paths
	base bool
	path string
}

// once returns what read returned the first time. Errors are not kept: they end the
// evaluation.
func (e *evaluation) once(s source, read func() (any, error)) (any, error) {
	if v, ok := e.known[s]; ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		e.known[s] = v
	}
	return v, err
}

// tree returns one of the two trees, and what it is called.
func (e *evaluation) tree(ofBase bool) (t judging.Tree, called string, err error) {
	if !ofBase {
		t, called = e.in.Tree, "candidate"
	} else {
		t, called = e.in.Base, "base"
	}
	if t == nil {
		return nil, called, fmt.Errorf("the %s is not known here", called)
	}
	return t, called, nil
}

// files lists the paths of a tree.
func (e *evaluation) files(ofBase bool) (any, error) {
	return e.once(source{kind: "files", base: ofBase}, func() (any, error) {
		t, called, err := e.tree(ofBase)
		if err != nil {
			return nil, err
		}
		names, err := t.Names()
		if err != nil {
			return nil, fmt.Errorf("the files of the %s cannot be listed: %w", called, err)
		}
		return e.list(names)
	})
}

// call evaluates a function.
func (e *evaluation) call(n *callNode) (any, error) {
	name, ofBase := n.function, n.ofBase
	if name != "json" && name != "yaml" && name != "output" {
		return e.function(n)
	}
	v, err := e.value(n.arguments[0])
	if err != nil {
		return nil, err
	}
	of, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s needs a text, not %s", name, describe(v))
	}
	if name == "output" {
		outputs := e.in.Outputs
		if ofBase {
			outputs = e.in.BaseOutputs
		}
		text, ok := outputs[of]
		if !ok {
			return nil, refuse(n, fmt.Sprintf("there is no output of a gate %s", show(of)), "output(…) takes the name of a command gate, which has to run before this one")
		}
		return text, nil
	}
	return e.once(source{name, ofBase, of}, func() (any, error) { return e.content(n, name, of, ofBase) })
}

// content reads a file of a tree as JSON or YAML.
func (e *evaluation) content(n node, format, name string, ofBase bool) (any, error) {
	t, called, err := e.tree(ofBase)
	if err != nil {
		return nil, err
	}
	if clean := path.Clean(name); !fs.ValidPath(clean) || clean == "." {
		return nil, refuse(n, show(name)+" is not a path in the repository", "write it as git does, such as \"coverage/total.json\"")
	}
	text, err := t.Read(path.Clean(name))
	if errors.Is(err, fs.ErrNotExist) {
		where := "files"
		if ofBase {
			where = "base.files"
		}
		return nil, refuse(n, fmt.Sprintf("the %s has no file %s", called, show(name)), fmt.Sprintf("if it may be missing, ask first whether %s in %s", show(name), where))
	}
	if err != nil {
		return nil, fmt.Errorf("%s of the %s cannot be read: %w", show(name), called, err)
	}
	most := map[string]int{"json": maxFile, "yaml": maxYAML}[format]
	if e.bytes += len(text); len(text) > most || e.bytes > maxRead {
		return nil, fmt.Errorf("%s is too large: a file may have %d bytes, and all together %d", show(name), most, maxRead)
	}
	if err := e.spend(len(text) / 4); err != nil {
		return nil, err
	}
	read := e.readJSON
	if format == "yaml" {
		read = e.readYAML
	}
	v, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("%s of the %s: %w", show(name), called, err)
	}
	return v, nil
}

// readJSON reads a text of JSON. A name that comes twice in an object is an error:
// programs do not agree on which of its values counts.
func (e *evaluation) readJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := e.jsonValue(d, 0)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("the JSON ends too early")
	}
	if err != nil {
		return nil, err
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return v, nil
	case err != nil:
		return nil, err
	}
	return nil, errors.New("there is more than one value of JSON")
}

// container is what an empty list or object takes up, as so many values.
const container = 4

func (e *evaluation) jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are more than %d deep in each other", maxDepth)
	}
	if err := e.allot(1); err != nil {
		return nil, err
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return numberValue(t.String())
	case json.Delim:
		if err := e.allot(container); err != nil {
			return nil, err
		}
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := e.jsonValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		object := map[string]any{}
		for d.More() {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := t.(string) // The decoder takes nothing else.
			v, err := e.jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("the name %s comes twice", show(name))
			}
			object[name] = v
		}
		_, err := d.Token()
		return object, err
	}
	return t, nil // nil, bool or string
}

// numberValue reads a number, whole if it is written so.
func numberValue(s string) (any, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, fmt.Errorf("%s is not a number that can be compared", shorten(s, 40))
	}
	return f, nil
}

// readYAML reads a text of YAML that has one document without anchors, aliases and
// tags, which other programs may read in other ways, or as much more than it is.
func (e *evaluation) readYAML(text []byte) (v any, err error) {
	defer func() {
		if p := recover(); p != nil { // The parser may give up so.
			v, err = nil, errors.New("it is not valid YAML")
		}
	}()
	if err := checkNesting(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if len(tokens) > maxTokens {
		return nil, fmt.Errorf("it has %d words and signs, and YAML with more than %d is not read; a file of JSON may be larger", len(tokens), maxTokens)
	}
	depth := 0
	for _, t := range tokens {
		switch t.Type { //nolint:exhaustive // All others are values.
		case yamltoken.AnchorType, yamltoken.AliasType, yamltoken.TagType, yamltoken.MergeKeyType:
			return nil, fmt.Errorf("line %d: anchors, aliases and tags of YAML are not read", t.Position.Line)
		case yamltoken.SequenceStartType, yamltoken.MappingStartType:
			depth++
		case yamltoken.SequenceEndType, yamltoken.MappingEndType:
			depth--
		}
		if depth > maxDepth {
			return nil, fmt.Errorf("values are more than %d deep in each other", maxDepth)
		}
	}
	file, err := yamlparser.Parse(tokens, 0, yamlparser.AllowDuplicateMapKey())
	if err != nil {
		return nil, errors.New("it is not valid YAML: " + readiness.FirstLine(err.Error()))
	}
	var bodies []yaml.Node
	for _, d := range file.Docs {
		if d != nil && d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) != 1 {
		return nil, fmt.Errorf("there are %d documents of YAML, and not one", len(bodies))
	}
	return e.yamlValue(bodies[0], 0)
}

// checkNesting bounds what the parser needs much time for.
func checkNesting(text []byte) error {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t-?"); len(line)-len(rest) > maxIndent {
			return fmt.Errorf("a line begins with more than %d spaces and list markers", maxIndent)
		}
	}
	return nil
}

func (e *evaluation) yamlValue(n yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are more than %d deep in each other", maxDepth)
	}
	if err := e.allot(1); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case nil, *yaml.NullNode:
		return nil, nil
	case *yaml.BoolNode:
		return n.Value, nil
	case *yaml.IntegerNode:
		return numberValue(fmt.Sprint(n.Value))
	case *yaml.FloatNode:
		return numberValue(strconv.FormatFloat(n.Value, 'g', -1, 64))
	case *yaml.StringNode:
		return n.Value, nil
	case *yaml.LiteralNode:
		return n.Value.Value, nil
	case *yaml.SequenceNode:
		list := []any{}
		for _, v := range n.Values {
			v, err := e.yamlValue(v, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case *yaml.MappingNode:
		return e.yamlObject(n.Values, depth)
	case *yaml.MappingValueNode:
		return e.yamlObject([]*yaml.MappingValueNode{n}, depth)
	}
	return nil, fmt.Errorf("line %d: this part of YAML is not read", n.GetToken().Position.Line)
}

func (e *evaluation) yamlObject(pairs []*yaml.MappingValueNode, depth int) (any, error) {
	object := map[string]any{}
	for _, pair := range pairs {
		name, err := yamlName(pair.Key)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the name %s comes twice", show(name))
		}
		v, err := e.yamlValue(pair.Value, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
	return object, nil
}

// yamlName is the name of a value in an object.
func yamlName(n yaml.Node) (string, error) {
	switch n := n.(type) {
	case *yaml.StringNode:
		return n.Value, nil
	case *yaml.IntegerNode, *yaml.FloatNode, *yaml.BoolNode, *yaml.NullNode:
		return n.GetToken().Value, nil
	}
	return "", fmt.Errorf("line %d: this name of YAML is not read", n.GetToken().Position.Line)
}

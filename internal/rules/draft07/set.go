// Package draft07 validates JSON against schemas of the draft 07 and names everything
// that is wrong, each with its JSON pointer and its place.
//
// It does no I/O: all schemas are passed in, and a $ref to anything else is refused. It
// asserts the formats date-time, date and time; other formats are annotations.
package draft07

import (
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
)

//go:embed metaschema.json
var metaschemaText []byte

const metaschemaURL = "http://json-schema.org/draft-07/schema"

// bounds are those of one file.
var bounds = jsontree.Bounds{Bytes: 10 << 20, Depth: 100, NUL: true}

// Set is schemas that may refer to each other. It is not changed after Compile.
type Set struct {
	files    map[string]*jsontree.Value
	refs     map[*jsontree.Value]*jsontree.Value // object with a $ref → schema
	patterns map[string]*regexp.Regexp
}

// Problem is why a file is not a schema of the draft 07.
type Problem struct {
	File    string
	Pointer string
	Message string
	Line    int
	Column  int
}

// String is the problem with its place.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, describe(p.Pointer, p.Message))
}

func describe(pointer, message string) string {
	if pointer == "" {
		return message
	}
	return pointer + ": " + message
}

// metaschema is the set with the schema of schemas.
var metaschema = sync.OnceValue(func() *Set {
	s, problems := compile(map[string][]byte{metaschemaURL: metaschemaText}, nil)
	if len(problems) > 0 {
		panic("draft07: the schema of schemas is invalid: " + problems[0].String())
	}
	return s
})

// Compile reads schemas; each name is a path with slashes, which a relative $ref
// follows. It returns no set if there is a problem.
func Compile(files map[string][]byte) (*Set, []Problem) { return compile(files, metaschema()) }

// compiler joins files to a set.
type compiler struct {
	set      *Set
	meta     *Set                       // nil while it is compiled itself
	byURL    map[string]*jsontree.Value // absolute, without an empty fragment
	bases    map[*jsontree.Value]*url.URL
	lines    map[string]*jsontree.Lines
	pending  []located // objects with a $ref
	problems []Problem
}

// located is a schema, where it is, and what its references are relative to.
type located struct {
	file    string
	pointer string
	schema  *jsontree.Value
	base    *url.URL
}

func compile(files map[string][]byte, meta *Set) (*Set, []Problem) {
	c := &compiler{
		set: &Set{
			files: map[string]*jsontree.Value{}, refs: map[*jsontree.Value]*jsontree.Value{}, patterns: map[string]*regexp.Regexp{},
		},
		meta: meta, byURL: map[string]*jsontree.Value{}, bases: map[*jsontree.Value]*url.URL{}, lines: map[string]*jsontree.Lines{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		c.addFile(name, files[name])
	}
	if len(c.problems) == 0 {
		for len(c.pending) > 0 {
			next := c.pending[0]
			c.pending = c.pending[1:]
			c.resolve(next)
		}
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c.set, nil
}

func (c *compiler) report(l located, at int, format string, args ...any) {
	line, column := c.lines[l.file].Place(at)
	c.problems = append(c.problems, Problem{l.file, l.pointer, fmt.Sprintf(format, args...), line, column})
}

func (c *compiler) addFile(name string, src []byte) {
	root, problem := jsontree.Parse(src, bounds)
	if problem != nil {
		c.problems = append(c.problems, Problem{name, problem.Path.Pointer(), problem.Message, problem.Line, problem.Column})
		return
	}
	c.lines[name] = jsontree.NewLines(src)
	base := &url.URL{Scheme: "boot", Path: "/" + name}
	if c.meta == nil {
		base, _ = url.Parse(name)
	}
	l := located{name, "", root, base}
	if declared := strings.TrimSuffix(root.GetText("$schema"), "#"); declared != "" && declared != metaschemaURL && declared != strings.Replace(metaschemaURL, "http:", "https:", 1) {
		c.report(l, root.Get("$schema").At, "is a schema of %s, not of the draft 07", declared)
		return
	}
	if c.meta != nil {
		for _, f := range c.meta.Validate(metaschemaURL, root, src) {
			c.problems = append(c.problems, Problem{name, f.Pointer, f.Message, f.Line, f.Column})
		}
		if len(c.problems) > 0 {
			return
		}
	}
	c.set.files[name] = root
	c.byURL[base.String()] = root
	c.walk(l)
}

// How keywords hold schemas.
var (
	oneSchema  = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
	listSchema = []string{"allOf", "anyOf", "items", "oneOf"}
	nameSchema = []string{"definitions", "dependencies", "patternProperties", "properties"}
)

// walk registers a schema and those below it.
func (c *compiler) walk(l located) {
	s := l.schema
	if _, walked := c.bases[s]; walked || s.Kind != jsontree.Object {
		return
	}
	c.bases[s] = l.base
	if s.Get("$ref") != nil {
		// The draft ignores whatever is beside a $ref.
		c.pending = append(c.pending, l)
		return
	}
	if id := s.GetText("$id"); id != "" {
		to, err := l.base.Parse(id)
		if err != nil {
			c.report(l, s.Get("$id").At, "the $id is not a URL")
			return
		}
		if strings.HasPrefix(id, "#") {
			c.byURL[to.String()] = s
		} else {
			to.Fragment = ""
			l.base, c.bases[s] = to, to
			c.byURL[to.String()] = s
		}
	}
	if pattern := s.Get("pattern"); pattern != nil {
		c.addPattern(l, pattern.Text, pattern.At)
	}
	if patterns := s.Get("patternProperties"); patterns != nil {
		for _, m := range patterns.Members {
			c.addPattern(l, m.Name, m.At)
		}
	}
	below := func(schema *jsontree.Value, pointer string) { c.walk(located{l.file, pointer, schema, l.base}) }
	for _, m := range s.Members {
		at := jsontree.Join(l.pointer, m.Name)
		if slices.Contains(oneSchema, m.Name) {
			below(m.Value, at)
		}
		if slices.Contains(listSchema, m.Name) {
			for i, item := range m.Value.Items {
				below(item, fmt.Sprintf("%s/%d", at, i))
			}
		}
		if slices.Contains(nameSchema, m.Name) {
			for _, named := range m.Value.Members {
				below(named.Value, jsontree.Join(at, named.Name))
			}
		}
	}
}

func (c *compiler) addPattern(l located, pattern string, at int) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.report(l, at, "the pattern cannot be used: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return
	}
	c.set.patterns[pattern] = re
}

// resolve finds the schema that a $ref names.
func (c *compiler) resolve(l located) {
	ref := l.schema.Get("$ref")
	to, err := l.base.Parse(ref.Text)
	if err != nil {
		c.report(l, ref.At, "the $ref %q is not a URL", ref.Text)
		return
	}
	fragment := to.Fragment
	if named := c.byURL[to.String()]; named != nil && fragment != "" {
		c.set.refs[l.schema] = named
		return
	}
	to.Fragment, to.RawFragment = "", ""
	root, meta := c.byURL[to.String()], false
	if root == nil && c.meta != nil && to.String() == metaschemaURL {
		root, meta = c.meta.files[metaschemaURL], true
		maps.Copy(c.set.refs, c.meta.refs)
		maps.Copy(c.set.patterns, c.meta.patterns)
	}
	if root == nil {
		c.report(l, ref.At, "the $ref %q leads out of the schemas of the boot repository", ref.Text)
		return
	}
	target := root
	if fragment != "" {
		if target = root.Find(fragment); !strings.HasPrefix(fragment, "/") || target == nil {
			c.report(l, ref.At, "the $ref %q names nothing", ref.Text)
			return
		}
	}
	if target.Kind != jsontree.Object && target.Kind != jsontree.Bool {
		c.report(l, ref.At, "the $ref %q names %s, not a schema", ref.Text, target.Kind)
		return
	}
	c.set.refs[l.schema] = target
	if !meta {
		c.walk(located{l.file, l.pointer, target, c.baseOf(root, fragment)})
	}
}

// baseOf returns what references are relative to where a pointer leads from a schema.
func (c *compiler) baseOf(root *jsontree.Value, pointer string) *url.URL {
	base := c.bases[root]
	for i := range pointer {
		if pointer[i] != '/' {
			continue
		}
		if b := c.bases[root.Find(pointer[:i])]; b != nil {
			base = b
		}
	}
	return base
}

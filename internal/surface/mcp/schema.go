package mcp

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Arguments that every tool has, or every tool of a kind.
const (
	argWorkspace = "workspace"
	argKey       = "idempotency_key"
	argLimit     = "limit"
	argCursor    = "cursor"
)

// Pages of lists.
const (
	usualLimit = 50
	mostLimit  = 200
)

// describe is a tool as clients list it.
func (s *Server) describe(t verb.Tool) *sdk.Tool {
	in := inputSchema(t)
	if properties, ok := in["properties"].(map[string]any); ok && s.inside() {
		delete(properties, argWorkspace)
	}
	return &sdk.Tool{
		Name: t.Name, Description: t.Does, InputSchema: in, OutputSchema: outputSchema(t),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: !t.Writes(), IdempotentHint: t.Idempotent || !t.Writes(), DestructiveHint: &t.Destructive, OpenWorldHint: &t.OpenWorld,
		},
	}
}

// argument is an argument of a tool.
type argument struct {
	name     string
	does     string
	required bool
	typ      reflect.Type
	index    []int // of the field; nil: it is no field of the tool's own
}

// argumentsOf lists the arguments of a tool, its own first.
func argumentsOf(t verb.Tool) (all []argument) {
	for _, f := range reflect.VisibleFields(t.In) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || !f.IsExported() {
			continue
		}
		all = append(all, argument{name, f.Tag.Get("jsonschema"), !strings.Contains(options, "omit"), f.Type, f.Index})
	}
	text, number := reflect.TypeFor[string](), reflect.TypeFor[int]()
	if t.Lists() {
		all = append(all,
			argument{name: argLimit, does: fmt.Sprintf("at most as many, %d if left out", usualLimit), typ: number},
			argument{name: argCursor, does: "next_cursor of the page before", typ: text})
	}
	if t.Verbs[0].InWorkspace {
		all = append(all, argument{name: argWorkspace, does: "a folder in the repository; left out: yours", typ: text})
	}
	if t.Writes() {
		all = append(all, argument{name: argKey, does: "the same key and arguments give the same answer again", typ: text})
	}
	return all
}

func inputSchema(t verb.Tool) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, a := range argumentsOf(t) {
		p := typeSchema(a.typ) // Of a pointer the value: who wants it to stay leaves it out.
		if a.does != "" {
			p["description"] = a.does
		}
		if a.name == argLimit {
			p["minimum"], p["maximum"] = 1, mostLimit
		}
		properties[a.name] = p
		if a.required {
			required = append(required, a.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// typeSchema is the schema of a type in short: what an object or a list has in it is left out.
func typeSchema(t reflect.Type) map[string]any {
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: %s has no schema: %v", t, err)) // A test asks for all of them.
	}
	kinds := slices.DeleteFunc(kindsOf(s), func(kind string) bool { return kind == "null" })
	return ofKinds(kinds)
}

// kindsOf are the types of JSON that a schema allows; none: any.
func kindsOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return slices.Clone(s.Types)
}

// ofKinds is the schema of a value of one of some types. Clients that have only one type for a
// schema, as models' APIs do, refuse a list of them.
func ofKinds(kinds []string) map[string]any {
	switch len(kinds) {
	case 0:
		return map[string]any{}
	case 1:
		return map[string]any{"type": kinds[0]}
	}
	var either []map[string]any
	for _, kind := range kinds {
		either = append(either, ofKinds([]string{kind}))
	}
	return map[string]any{"anyOf": either}
}

// outputSchema describes the result of a tool: the fields that it always has, and not what is
// in them. None is required: clients hold the structured content of an error against it, too.
func outputSchema(t verb.Tool) map[string]any {
	if t.Lists() {
		return map[string]any{"type": "object", "properties": map[string]any{
			"data": map[string]any{"type": "array", "items": map[string]any{"type": "object"}}, "meta": map[string]any{"type": "object"},
		}}
	}
	s, err := jsonschema.ForType(t.Out, nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: %s has no schema: %v", t.Out, err)) // A test asks for all of them.
	}
	properties := map[string]any{}
	for _, name := range s.Required {
		properties[name] = ofKinds(kindsOf(s.Properties[name]))
	}
	return map[string]any{"type": "object", "properties": properties}
}

// names lists the names of arguments.
func names(all []argument) (list []string) {
	for _, a := range all {
		list = append(list, a.name)
	}
	slices.Sort(list)
	return list
}

package api

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// OpenAPI describes everything that a Server serves, as OpenAPI 3.1.
func OpenAPI(version string) map[string]any {
	schemas := schemas{}
	problem := map[string]any{
		"description": "It failed: what, why and the fix, with the exit status of the command.",
		"content":     content("application/problem+json", schemas.of(reflect.TypeFor[verb.Problem]())),
	}
	paths := map[string]any{}
	for _, v := range Verbs() {
		operations := map[string]any{"post": schemas.operation(v, problem, false)}
		if takesQuery(v) {
			operations["get"] = schemas.operation(v, problem, true)
		}
		paths[v.Path()] = operations
	}
	text := func(does string, media string) map[string]any {
		return map[string]any{"get": map[string]any{"summary": does, "responses": map[string]any{
			"200": map[string]any{"description": "It is so.", "content": content(media, map[string]any{"type": "string"})}, "default": problem,
		}}}
	}
	paths["/healthz"] = text("tell that the process answers", "text/plain")
	paths["/readyz"] = text("tell that it takes work, looks for loops that are due, and the store answers", "text/plain")
	paths["/metrics"] = text("metrics, as Prometheus reads them", "text/plain")
	paths["/version"] = map[string]any{"get": map[string]any{"summary": "tell how the daemon is", "responses": map[string]any{
		"200": map[string]any{"description": "Its state.", "content": content("application/json", schemas.of(reflect.TypeFor[Status]()))},
	}}}
	paths["/openapi.json"] = text("this document", "application/json")
	events := text("follow the store's feed of changes; the id of an event is the place to go on from", "text/event-stream")
	events["get"].(map[string]any)["parameters"] = []any{
		parameter("after", "query", "the place after which to begin; missing: now", map[string]any{"type": "string"}, false),
		parameter("kind", "query", "only this kind of entry; may be repeated", map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, false),
		parameter("Last-Event-ID", "header", "the id of the last event that was seen", map[string]any{"type": "string"}, false),
	}
	paths["/v1/events"] = events
	paths["/v1/requests/cancel"] = map[string]any{"post": map[string]any{
		"summary":    "end a request that is being carried out; it is answered as always",
		"parameters": []any{parameter(HeaderRequest, "header", "the id that the request was given", map[string]any{"type": "string"}, true)},
		"responses":  map[string]any{"204": map[string]any{"description": "It is told."}, "default": problem},
	}}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "pawl", "version": version,
			"description": "What can be asked of a pawl daemon, on its socket. A verb that changes something answers with server-sent events (progress, then result or problem) if text/event-stream is accepted.",
		},
		"paths":      paths,
		"components": map[string]any{"schemas": schemas},
	}
}

func (s schemas) operation(v verb.Info, problem map[string]any, query bool) map[string]any {
	noun, _, _ := strings.Cut(v.Name, ".")
	parameters := []any{
		parameter("workspace", "query", "a folder in the repository, on the host of the daemon; only for verbs of one workspace", map[string]any{"type": "string"}, false),
		parameter(HeaderWho, "header", "who asks", map[string]any{"type": "string"}, false),
		parameter(HeaderLoops, "header", "the loops that the caller reaches, with commas between; left out: all", map[string]any{"type": "string"}, false),
		parameter(HeaderRole, "header", "human, agent, trigger or viewer", map[string]any{"type": "string", "enum": []string{"human", "agent", "trigger", "viewer"}}, false),
		parameter(HeaderFrom, "header", "the surface", map[string]any{"type": "string"}, false),
		parameter(HeaderKey, "header", "of a verb that changes something: the same key and request have the same answer again", map[string]any{"type": "string"}, false),
		parameter(HeaderRequest, "header", "an id of the caller's choice, with which the request can be canceled", map[string]any{"type": "string"}, false),
	}
	method := "post"
	o := map[string]any{}
	if query {
		method = "get"
		fields, _ := queryFields(v.In)
		for _, f := range fields {
			parameters = append(parameters, parameter(f.name, "query", "", fieldSchema(v.In.FieldByIndex(f.index).Type), f.required))
		}
	} else {
		o["requestBody"] = map[string]any{"content": content("application/json", s.of(v.In))}
	}
	o["operationId"], o["summary"], o["tags"], o["parameters"] = method+"_"+strings.ReplaceAll(v.Name, ".", "_"), v.Does, []string{noun}, parameters
	result := content("application/json", s.of(v.Out))
	if v.Writes {
		result["text/event-stream"] = map[string]any{"schema": map[string]any{"type": "string"}}
	}
	o["responses"] = map[string]any{"200": map[string]any{"description": "The result.", "content": result}, "default": problem}
	return o
}

func content(media string, schema any) map[string]any {
	return map[string]any{media: map[string]any{"schema": schema}}
}

func parameter(name, in, description string, schema any, required bool) map[string]any {
	p := map[string]any{"name": name, "in": in, "schema": schema, "required": required}
	if description != "" {
		p["description"] = description
	}
	return p
}

// fieldSchema describes a parameter of a query.
func fieldSchema(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	return map[string]any{"type": "string"}
}

// schemas are the JSON Schemas of types, by name.
type schemas map[string]*jsonschema.Schema

// published are types of other packages that the document names api.TYPE: other programs know them by that
// name.
var published = []reflect.Type{
	reflect.TypeFor[verb.None](), reflect.TypeFor[verb.Problem](), reflect.TypeFor[verb.Fired](),
	reflect.TypeFor[specs.SpecRef](), reflect.TypeFor[specs.FlagRequest](), reflect.TypeFor[specs.SpecDocument](),
	reflect.TypeFor[boards.BoardRef](), reflect.TypeFor[boards.BoardCreation](), reflect.TypeFor[boards.BoardSetting](),
	reflect.TypeFor[boards.TaskRef](), reflect.TypeFor[boards.TaskSetting](), reflect.TypeFor[boards.TaskMove](), reflect.TypeFor[boards.TaskAssignment](),
	reflect.TypeFor[boards.AgentRef](), reflect.TypeFor[boards.MemberChange](), reflect.TypeFor[boards.MessageRef](),
	reflect.TypeFor[boards.ResourceRef](), reflect.TypeFor[boards.ResourceSetting](),
}

// of returns the schema of a type, or a reference to it.
func (s schemas) of(t reflect.Type) *jsonschema.Schema {
	switch {
	case t.Kind() == reflect.Slice:
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: s.of(t.Elem())}
	case t.Kind() != reflect.Struct:
		return schemaOf(t)
	}
	name := t.String() // package.Type
	if slices.Contains(published, t) {
		name = "api." + t.Name()
	}
	described := schemaOf(t)
	if known := s[name]; known != nil && !reflect.DeepEqual(known, described) {
		panic(fmt.Sprintf("%s.%s and another type are both called %s, and differ", t.PkgPath(), t.Name(), name))
	}
	s[name] = described
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}
}

func schemaOf(t reflect.Type) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		panic(fmt.Sprintf("api: %s has no schema: %v", t, err)) // A test asks for all of them.
	}
	return s
}

package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// call is a tool call as it was understood.
type call struct {
	in   any // of the type that the tool takes
	page verb.Page
	dir  string
	key  string
}

// argumentError is about one argument of a call.
type argumentError struct {
	name, value, expected string
	fault                 *loop.Fault
}

func (e *argumentError) Error() string { return e.fault.Error() }
func (e *argumentError) Unwrap() error { return e.fault }

// refuse is the error for an argument.
func refuse(name, value, expected, why, fix string) error {
	return &argumentError{name, value, expected, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid argument %s", readiness.Quote(name)), Why: why, Fix: fix}}
}

// parse reads the arguments of a call.
func (s *Server) parse(t verb.Tool, raw json.RawMessage) (c call, err error) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &given); err != nil {
			return c, refuse("arguments", excerpt(string(raw)), "an object", "the arguments are not an object", "pass an object with the arguments of the tool")
		}
	}
	if given[argWorkspace] != nil && s.inside() {
		return c, refuseWorkspace(excerpt(string(given[argWorkspace])))
	}
	known := argumentsOf(t)
	if err := refuseUnknown(t, known, given); err != nil {
		return c, err
	}
	into := reflect.New(t.In).Elem()
	c.page.Limit = usualLimit
	own := map[string]reflect.Value{
		argLimit: reflect.ValueOf(&c.page.Limit).Elem(), argCursor: reflect.ValueOf(&c.page.Cursor).Elem(),
		argWorkspace: reflect.ValueOf(&c.dir).Elem(), argKey: reflect.ValueOf(&c.key).Elem(),
	}
	for _, a := range known {
		value, there := given[a.name]
		if !there || string(value) == "null" && !a.required {
			if a.required {
				return c, refuse(a.name, "", typeName(a.typ), "it is missing", "give it: "+a.does)
			}
			continue
		}
		field, ok := own[a.name]
		if a.index != nil || !ok {
			field = into.FieldByIndex(a.index)
		}
		if string(value) == "null" || json.Unmarshal(value, field.Addr().Interface()) != nil {
			return c, refuse(a.name, excerpt(string(value)), typeName(a.typ), "it is not "+typeName(a.typ), "pass "+typeName(a.typ))
		}
	}
	if c.page.Limit < 1 || c.page.Limit > mostLimit {
		return c, refuse(argLimit, fmt.Sprint(c.page.Limit), fmt.Sprintf("1 to %d", mostLimit), "it is out of range", "pass cursor for the rest of a longer list")
	}
	if t.Verbs[0].InWorkspace {
		c.dir, err = s.folder(c.dir)
	}
	c.in = into.Interface()
	return c, err
}

// folder is the absolute path of the folder that a client means. The empty one is its own:
// over HTTP nobody knows which one that is, and inside of a run there is no other one.
func (s *Server) folder(given string) (string, error) {
	switch {
	case given != "" && s.inside():
		return "", refuseWorkspace(excerpt(given))
	case filepath.IsAbs(given):
		return given, nil
	case s.Dir == "":
		return "", refuse(argWorkspace, excerpt(given), "an absolute path", "over HTTP nobody knows your folder", "pass the path of a folder in the repository, on the host of the daemon")
	}
	return filepath.Join(s.Dir, given), nil
}

// refuseWorkspace is the error for another workspace than that of the client's run.
func refuseWorkspace(value string) error {
	return &argumentError{argWorkspace, value, "nothing", &loop.Fault{
		Exit: loop.ExitRefused, What: "invalid argument 'workspace'", Why: "inside of a run its workspace is meant, and no other one is reached", Fix: "leave it out", Err: loop.ErrGrant,
	}}
}

// refuseUnknown is an error if an argument is given that the tool does not have.
func refuseUnknown(t verb.Tool, known []argument, given map[string]json.RawMessage) error {
	list := names(known)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(list, name) {
			continue
		}
		takes := strings.Join(list, ", ")
		fix := t.Name + " takes " + takes
		if near := readiness.NearestName(name, list); near != "" {
			fix = "did you mean " + near + "? " + fix
		}
		return refuse(name, excerpt(string(given[name])), "one of "+takes, t.Name+" has no such argument", fix)
	}
	return nil
}

// typeName says in words what a value has to be.
func typeName(t reflect.Type) string {
	words := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.String: "a text", reflect.Slice: "a list"}
	return cmp.Or(words[t.Kind()], "an object")
}

// excerpt is the beginning of a value, for a message.
func excerpt(value string) string {
	const most = 80
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return readiness.Printable(value)
}

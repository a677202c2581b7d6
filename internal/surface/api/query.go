package api

import (
	"encoding"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// queryField is a field of a request that can be a parameter of a query.
type queryField struct {
	name     string
	required bool
	index    []int
}

// queryFields lists the fields of a type of requests. It reports false if one of them
// cannot be a parameter.
func queryFields(t reflect.Type) (fields []queryField, flat bool) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || !f.IsExported() {
			continue
		}
		if _, text := reflect.New(f.Type).Interface().(encoding.TextUnmarshaler); !text {
			if !slices.Contains([]reflect.Kind{reflect.String, reflect.Int, reflect.Int64, reflect.Bool}, f.Type.Kind()) {
				return nil, false
			}
		}
		fields = append(fields, queryField{name, !strings.Contains(options, "omit"), f.Index})
	}
	return fields, true
}

// takesQuery reports whether a verb can be asked by GET: it only reads, and a query can
// hold its request.
func takesQuery(v verb.Info) bool {
	_, flat := queryFields(v.In)
	return flat && !v.Writes
}

// parameters are those of a query. None has anything that a database does not store.
func parameters(r *http.Request) (url.Values, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &loop.Fault{Exit: loop.ExitUsage, What: "the query cannot be read", Why: err.Error(), Fix: "escape what is not a letter or a digit"}
	}
	for name, values := range given {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return nil, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid parameter %s=%q", name, text), Why: "it is not UTF-8, or has a NUL", Fix: "see /openapi.json"}
			}
		}
	}
	return given, nil
}

// decodeQuery reads a request from the parameters of a query.
func decodeQuery(r *http.Request, in any) error {
	into := reflect.ValueOf(in).Elem()
	fields, _ := queryFields(into.Type())
	names := []string{"workspace"}
	for _, f := range fields {
		names = append(names, f.name)
	}
	given, err := parameters(r)
	if err != nil {
		return err
	}
	for name, values := range given {
		i := slices.Index(names, name)
		switch {
		case i == 0:
			continue
		case i < 0 || len(values) != 1:
			f := &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid parameter %q", name), Why: "there is no such parameter", Fix: "use: " + strings.Join(names, ", ")}
			if near := readiness.NearestName(name, names); i < 0 && near != "" {
				f.Fix = "did you mean " + near + "?"
			}
			if i > 0 {
				f.Why, f.Fix = "it is given more than once", "give it once"
			}
			return f
		}
		if err := setText(into.FieldByIndex(fields[i-1].index), values[0]); err != nil {
			return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid parameter %s=%q", name, values[0]), Why: err.Error(), Fix: "see /openapi.json"}
		}
	}
	return nil
}

// setText sets a field to what a text says.
func setText(field reflect.Value, text string) error {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if field.Kind() == reflect.String {
		field.SetString(text)
		return nil
	}
	if field.Kind() == reflect.Bool {
		b, err := strconv.ParseBool(text)
		field.SetBool(b)
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	field.SetInt(n)
	return err
}

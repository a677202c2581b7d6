// Package modeltool finds what a request asks of its model's vendor in addition
// to an answer: to search, fetch, run code, call servers or read data that is
// stored there. A sandbox without a network still has its model, and vendors do
// all of this on request.
//
// A request may contain only what is listed for its API. What needs the vendor's
// help, and every tool or content of an unknown kind, is refused unless the
// loop's definition names it. An unknown field at the top level is left out:
// servers have many of their own, and most are harmless. The package forwards
// nothing.
package modeltool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// clientSide marks what the program does by itself, or what is only data.
const clientSide loop.ModelTool = ""

// API is what a request of one API may contain. The four are Messages, Chat,
// Responses and Generate.
type API struct {
	fields map[string]loop.ModelTool // at the top level
	blocks map[string]loop.ModelTool // kinds of messages and of their parts
	toolOf func(n node) (tool loop.ModelTool, word string)
}

// Request is a request that may be forwarded.
type Request struct {
	Body    []byte
	Tools   []loop.ModelTool // the vendor's tools that it uses
	LeftOut []string         // names of fields that are not forwarded
}

// ErrNoObject means that a body is not a JSON object.
var ErrNoObject = errors.New("its body is not a JSON object")

// AmbiguousError means that two parsers could read a request differently.
type AmbiguousError struct{ error }

// DeniedError means that a request asks its vendor for something that is not
// allowed.
type DeniedError struct{ wish }

// Error is written for the agent, and says what a person can do.
func (e *DeniedError) Error() string {
	if !e.tool.IsKnown() {
		return fmt.Sprintf("the request has %s, which pawl does not know and the model's vendor may act on: it is not forwarded", e.how)
	}
	return fmt.Sprintf(
		"the request has %s, which the model's vendor acts on outside of the sandbox, and model_tools of the loop's definition does not name it. "+
			"Do without it; a person can allow it with model_tools: [%s]", e.how, e.tool)
}

// Check compares what a request asks of its vendor with what is allowed. Model is
// the model in its path, if any. The error is ErrNoObject, an *AmbiguousError or
// a *DeniedError.
func (a *API) Check(model string, body []byte, allowed []loop.ModelTool) (Request, error) {
	top := node(bytes.TrimLeft(body, " \t\r\n"))
	if !top.isObject() || !json.Valid(body) {
		return Request{}, ErrNoObject
	}
	if err := checkJSON(body); err != nil {
		return Request{}, &AmbiguousError{err}
	}
	r := &reading{API: a}
	r.readModel(model)
	if a == Generate {
		r.readGenerate(top, true)
	} else {
		r.readBody(top)
	}
	checked := Request{Body: body, LeftOut: r.unknown}
	for _, w := range r.wishes {
		if !slices.Contains(allowed, w.tool) {
			return Request{}, &DeniedError{w}
		}
		if !slices.Contains(checked.Tools, w.tool) {
			checked.Tools = append(checked.Tools, w.tool)
		}
	}
	if len(r.unknown) > 0 {
		var kept map[string]json.RawMessage
		_ = json.Unmarshal(body, &kept) // It is a valid object.
		for _, name := range r.unknown {
			delete(kept, name)
		}
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false) // The contents of the fields do not change.
		_ = enc.Encode(kept)     // They were read from valid JSON.
		checked.Body = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	}
	return checked, nil
}

// IsFeatureHeader reports whether a header, in its canonical form, enables
// features of a vendor.
func IsFeatureHeader(name string) bool { return features[name] != nil }

// Feature returns the vendor's tool that a value of such a header enables; empty
// if the feature needs none. Known is false if pawl does not know the value.
func Feature(header, value string) (tool loop.ModelTool, known bool) {
	for name, tool := range features[header] {
		if start, dated := strings.CutSuffix(name, "*"); value == name || dated && strings.HasPrefix(value, start) {
			return tool, true
		}
	}
	return "", false
}

// Package modeltool finds what a request asks of its model's vendor beside an
// answer: to search, fetch, run code, call servers or read what is stored there. A
// sandbox without a network still has its model, and vendors do all of this for
// whoever asks.
//
// A request may hold what is listed for its API and nothing else. What needs the
// vendor's help, and every tool or content of an unknown kind, is refused unless
// the loop's definition names it. An unknown field at the top is left out: servers
// have many of their own, most of them harmless. The package forwards nothing.
package modeltool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// clientSide marks what the program does by itself, or what is only data.
const clientSide loop.ModelTool = ""

// API is what a request of one API may hold. The four are Messages, Chat,
// Responses and Generate.
type API struct {
	fields map[string]loop.ModelTool // at the top
	blocks map[string]loop.ModelTool // kinds of messages and of their parts
	toolOf func(n node) (tool loop.ModelTool, word string)
}

// Request is a request that may be forwarded.
type Request struct {
	Body    []byte
	Tools   []loop.ModelTool // the vendor's tools that it asks for
	LeftOut []string         // names of fields that Body had and that are not forwarded
}

// ErrNoObject means that a body is not a JSON object.
var ErrNoObject = errors.New("its body is not a JSON object")

// AmbiguousError means that two readers may read a request in two ways.
type AmbiguousError struct{ error }

// DeniedError means that a request asks its vendor for something that is not
// allowed.
type DeniedError struct{ wish }

// Error is for the agent, and says what a person can do.
func (e *DeniedError) Error() string {
	if !e.tool.IsKnown() {
		return fmt.Sprintf("the request has %s, which pawl does not know and the model's vendor may act on: it is not forwarded", e.how)
	}
	return fmt.Sprintf(
		"the request has %s, which the model's vendor acts on outside of the sandbox, and model_tools of the loop's definition does not name it. "+
			"Do without it; a person can allow it with model_tools: [%s]", e.how, e.tool)
}

// Check compares what a request asks of its vendor with what is allowed. Model is
// the one that its path names, if any. The error is ErrNoObject, an *AmbiguousError
// or a *DeniedError.
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
		enc.SetEscapeHTML(false) // What is inside the fields stays as it was.
		_ = enc.Encode(kept)     // They were read from valid JSON.
		checked.Body = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	}
	return checked, nil
}

// IsFeatureHeader reports whether a header, in its canonical form, switches
// features of a vendor on.
func IsFeatureHeader(name string) bool { return features[name] != nil }

// Feature is the tool of the vendor that a value of such a header switches on. It
// is empty for a feature that needs none, and known is false if pawl does not know
// the value.
func Feature(header, value string) (tool loop.ModelTool, known bool) {
	for name, tool := range features[header] {
		if start, dated := strings.CutSuffix(name, "*"); value == name || dated && strings.HasPrefix(value, start) {
			return tool, true
		}
	}
	return "", false
}

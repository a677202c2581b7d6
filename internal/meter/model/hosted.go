package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
)

// A sandbox without a network still has its model, and vendors do a lot beside
// answering: they search, fetch, run code and call servers for whoever asks.
// So a request may hold what is listed for its API, and nothing else. What is
// known to need the vendor's help, and every kind of tool or content that is not
// known, is refused unless the definition names it. A field at the top that is
// not known is left out: servers have many of their own, most of them harmless.

// clientSide marks what the program does by itself, or what is only data.
const clientSide loop.ModelTool = ""

// api is what may stand in a request of one API.
type api struct {
	fields map[string]loop.ModelTool // at the top
	blocks map[string]loop.ModelTool // kinds of messages and of their parts
	tool   func(n node) (loop.ModelTool, string)
}

// wish is something that a request asks of its vendor.
type wish struct {
	tool loop.ModelTool
	how  string // the request says it, for people
}

// reading is what a request asks for beside an answer of its model.
type reading struct {
	*api

	wishes  []wish
	unknown []string // fields at the top that are left out
}

func (r *reading) wants(tool loop.ModelTool, format string, args ...any) {
	if tool == clientSide {
		return
	}
	w := wish{tool, fmt.Sprintf(format, args...)}
	if !slices.Contains(r.wishes, w) {
		r.wishes = append(r.wishes, w)
	}
}

// inspect takes a request apart. The body is valid JSON in which no name stands twice.
func inspect(provider string, to route, body node) *reading {
	r := &reading{}
	switch {
	case provider == Anthropic:
		r.api = &messagesAPI
	case provider == Gemini:
		r.api = &generateAPI
		r.model(to.model)
		r.generate(body, true)
		return r
	case strings.HasPrefix(to.path, "responses"):
		r.api = &responsesAPI
	default:
		r.api = &chatAPI
	}
	for name, v := range body.fields() {
		tool, known := r.fields[name]
		switch {
		case v.null():
		case !known && r.fields[fold(name)] == clientSide:
			r.unknown = append(r.unknown, name)
		case !known:
			r.wants(r.fields[fold(name)], "the field %q", name)
		case tool != clientSide:
			r.wants(tool, "the field %q", name)
		case name == "model":
			r.model(v.text())
		case name == "tools":
			r.tools(v)
		case slices.Contains([]string{"messages", "input", "system", "instructions", "prediction"}, name):
			r.block(v)
		}
	}
	return r
}

// searching are the names of models that search the web by themselves, preset those
// that stand for settings which are kept at the vendor.
var (
	searching = regexp.MustCompile(`(?i)-search-preview|-search-api|deep-research|:online$|^(perplexity/)?sonar|^(groq/)?compound(-|$)`)
	preset    = regexp.MustCompile(`@preset/`)
)

func (r *reading) model(name string) {
	if searching.MatchString(name) {
		r.wants(loop.ToolWebSearch, "the model %.80q", name)
	}
	if preset.MatchString(name) {
		r.wants(loop.ToolStored, "the model %.80q", name)
	}
}

func (r *reading) tools(list node) {
	if list.object() { // Some readers take one for a list of one.
		r.oneTool(list)
	}
	for t := range list.items() {
		r.oneTool(t)
	}
}

func (r *reading) oneTool(t node) {
	tool, word := r.tool(t)
	r.wants(tool, "the tool %.80q", word)
	for name, v := range t.fields() {
		if fold(name) == "tools" { // Of a namespace.
			r.tools(v)
		}
	}
}

// typesOf are the values of all fields of an object that a reader may take for its
// type: more than one if they differ in capitals only.
func typesOf(n node) []string {
	var all []string
	for name, v := range n.fields() {
		if fold(name) != "type" || v.null() {
			continue
		}
		all = append(all, cmp.Or(v.text(), "?")) // What is no text is no type that is known.
	}
	return all
}

// block looks at a message, at a part of one, or at a list of them. It goes down
// where parts lie in parts, and never into what a model or a program wrote freely:
// the arguments of a tool, its schema.
func (r *reading) block(n node) {
	for item := range n.items() {
		r.block(item)
	}
	down := true
	for _, kind := range typesOf(n) {
		tool, known := r.blocks[kind]
		switch {
		case !known:
			r.wants(loop.TypedTool(kind), "content of the kind %.80q", kind)
		case tool != clientSide:
			r.wants(tool, "content of the kind %.80q", kind)
			down = false // Only the vendor makes it.
		}
	}
	if down {
		for name, v := range n.fields() {
			r.part(fold(name), v)
		}
	}
}

// part looks at a field of a message or of a part of one.
func (r *reading) part(name string, v node) {
	switch name {
	case "content", "output", "toolchanges", "summary":
		r.block(v)
	case "source":
		r.source(v)
	case "imageurl", "videourl", "audiourl", "fileurl", "documenturl", "inputurl":
		r.address(v)
	case "file", "inputaudio", "audio":
		for inner, w := range v.fields() {
			if fold(inner) == "id" && !w.null() {
				r.wants(loop.ToolStored, "%s by its id", name)
			}
			r.part(fold(inner), w)
		}
	case "fileid":
		if !v.null() {
			r.wants(loop.ToolFiles, "a file by its id")
		}
	case "data", "filedata", "url":
		// Base64 has no colon; some servers take an address in its place.
		if text := v.text(); strings.Contains(text[:min(len(text), 64)], ":") {
			r.address(v)
		}
	case "tools":
		r.tools(v)
	case "tool", "definition":
		r.defined(v)
	}
}

// source is where an image or a document of Anthropic's API comes from. At a search
// result it is a text, which asks for nothing.
func (r *reading) source(v node) {
	for _, kind := range typesOf(v) {
		switch kind {
		case "base64", "text", "content":
		case "url":
			r.wants(loop.ToolURLs, "content by its address")
		case "file":
			r.wants(loop.ToolFiles, "a file by its id")
		default:
			r.wants(loop.TypedTool(kind), "content from a source of the kind %.80q", kind)
		}
	}
	for name, w := range v.fields() {
		switch fold(name) {
		case "content":
			r.block(w)
		case "url":
			r.wants(loop.ToolURLs, "content by its address")
		case "fileid":
			r.wants(loop.ToolFiles, "a file by its id")
		}
	}
}

// defined is a tool that a message adds.
func (r *reading) defined(v node) {
	if !v.object() {
		return
	}
	for name, w := range v.fields() {
		if fold(name) == "definition" {
			r.oneTool(w)
			return
		}
	}
	if !slices.Equal(typesOf(v), []string{"tool_reference"}) { // By its name, of one that is judged elsewhere.
		r.oneTool(v)
	}
}

// address refuses one that leads anywhere. Data that stands in its place does not.
func (r *reading) address(v node) {
	if v.object() {
		for name, w := range v.fields() {
			if fold(name) == "url" || fold(name) == "uri" {
				r.address(w)
			}
		}
		return
	}
	text := v.text()
	if text != "" && !strings.HasPrefix(text, "data:") {
		r.wants(loop.ToolURLs, "content by its address")
	}
}

// judge reads what a request asks of its vendor and compares it with what the
// definition allows. It returns the body that may be forwarded, and the vendor's
// tools that it asks for.
func (e *Endpoint) judge(to route, body []byte) (forward []byte, hosted []loop.ModelTool, err error) {
	top := node(bytes.TrimLeft(body, " \t\r\n"))
	if !top.object() || !json.Valid(body) {
		return nil, nil, errNoObject
	}
	if err := checkJSON(body); err != nil {
		return nil, nil, &ambiguousError{err}
	}
	r := inspect(e.Provider, to, top)
	for _, w := range r.wishes {
		if !slices.Contains(e.Tools, w.tool) {
			return nil, nil, &hostedError{w}
		}
		if !slices.Contains(hosted, w.tool) {
			hosted = append(hosted, w.tool)
		}
	}
	if len(r.unknown) == 0 {
		return body, hosted, nil
	}
	var kept fields
	_ = json.Unmarshal(body, &kept) // It is a valid object.
	for _, name := range r.unknown {
		e.leftOut(fmt.Sprintf("the field %.80q of requests is not one that pawl knows: it is not forwarded", name))
		delete(kept, name)
	}
	return kept.encode(), hosted, nil
}

// hostedError is a request for something of its vendor's that nobody allowed.
type hostedError struct{ wish }

func (e *hostedError) Error() string {
	if !e.tool.Known() {
		return fmt.Sprintf("the request has %s, which pawl does not know and the model's vendor may act on: it is not forwarded", e.how)
	}
	return fmt.Sprintf(
		"the request has %s, which the model's vendor acts on outside of the sandbox, and model_tools of the loop's definition does not name it. "+
			"Do without it; a person can allow it with model_tools: [%s]", e.how, e.tool)
}

// ambiguousError is a request that two readers may read in two ways.
type ambiguousError struct{ error }

// refused answers a request that may not be forwarded. Its failure is one of its
// own: neither the vendor nor the account has to do with it.
func (x *exchange) refused(err error, body []byte) {
	if errors.Is(err, errNoObject) {
		x.refuse(x.w, refusal{http.StatusBadRequest, "", "the request cannot be read: " + err.Error()})
		return
	}
	reason, text := ReasonModelTool, err.Error()
	if _, odd := errors.AsType[*ambiguousError](err); odd {
		reason, text = meter.ReasonRequest, "the request cannot be forwarded: "+text
	}
	if x.to.shape != nil {
		x.q, _ = readRequest(x.to, body) // Only to tell whether it offers tools.
	}
	x.failed(loop.Failure{Class: loop.FailureDenied, Text: text, Typed: true})
	x.refuse(x.w, refusal{x.final(), reason, text})
}

// leftOut tells once of something that is not forwarded.
func (e *Endpoint) leftOut(what string) {
	const most = 100
	e.mu.Lock()
	again := e.omitted[what] || len(e.omitted) >= most
	if e.omitted == nil {
		e.omitted = map[string]bool{}
	}
	e.omitted[what] = true
	e.mu.Unlock()
	if !again {
		e.deny(ReasonLeftOut, what)
	}
}

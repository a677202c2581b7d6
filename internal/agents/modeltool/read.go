package modeltool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// wish is something that a request asks of its vendor.
type wish struct {
	tool loop.ModelTool
	how  string // how the request says it, for people
}

// reading collects what a request asks for in addition to an answer.
type reading struct {
	*API

	wishes  []wish
	unknown []string // fields at the top that are left out
}

func (r *reading) addWish(tool loop.ModelTool, format string, args ...any) {
	if tool == clientSide {
		return
	}
	w := wish{tool, fmt.Sprintf(format, args...)}
	if !slices.Contains(r.wishes, w) {
		r.wishes = append(r.wishes, w)
	}
}

// readBody reads a request of any vendor except Gemini.
func (r *reading) readBody(body node) {
	for name, v := range body.fields() {
		tool, known := r.fields[name]
		switch {
		case v.isNull():
		case !known && r.fields[foldName(name)] == clientSide:
			r.unknown = append(r.unknown, name)
		case !known:
			r.addWish(r.fields[foldName(name)], "the field %q", name)
		case tool != clientSide:
			r.addWish(tool, "the field %q", name)
		case name == "model":
			r.readModel(v.text())
		case name == "tools":
			r.readTools(v)
		case slices.Contains([]string{"messages", "input", "system", "instructions", "prediction"}, name):
			r.readBlock(v)
		}
	}
}

// searching are the names of models that search the web by themselves, preset those
// that stand for settings which are kept at the vendor.
var (
	// searching matches models that search the web by themselves, and preset
	// those that mean settings stored at the vendor.
	searching = lazyregexp.New(`(?i)-search-preview|-search-api|deep-research|:online$|^(perplexity/)?sonar|^(groq/)?compound(-|$)`)
	preset    = lazyregexp.New(`@preset/`)
)

func (r *reading) readModel(name string) {
	if searching.MatchString(name) {
		r.addWish(loop.ToolWebSearch, "the model %.80q", name)
	}
	if preset.MatchString(name) {
		r.addWish(loop.ToolStored, "the model %.80q", name)
	}
}

func (r *reading) readTools(list node) {
	if list.isObject() { // Some parsers take one object for a list.
		r.readTool(list)
	}
	for t := range list.items() {
		r.readTool(t)
	}
}

func (r *reading) readTool(t node) {
	tool, word := r.toolOf(t)
	r.addWish(tool, "the tool %.80q", word)
	for name, v := range t.fields() {
		if foldName(name) == "tools" { // the tools of a namespace
			r.readTools(v)
		}
	}
}

// typesOf returns the values of all fields of an object that a parser may take
// for its type: more than one if they differ in case only.
func typesOf(n node) []string {
	var all []string
	for name, v := range n.fields() {
		if foldName(name) != "type" || v.isNull() {
			continue
		}
		all = append(all, cmp.Or(v.text(), "?")) // A type that is not a string is unknown.
	}
	return all
}

// readBlock reads a message, a part of one, or a list of them. It also reads
// nested parts, but never what a model or a program wrote freely: the arguments
// of a tool, its schema.
func (r *reading) readBlock(n node) {
	for item := range n.items() {
		r.readBlock(item)
	}
	down := true
	for _, kind := range typesOf(n) {
		tool, known := r.blocks[kind]
		switch {
		case !known:
			r.addWish(loop.TypedTool(kind), "content of the kind %.80q", kind)
		case tool != clientSide:
			r.addWish(tool, "content of the kind %.80q", kind)
			down = false // Only the vendor writes such content.
		}
	}
	if down {
		for name, v := range n.fields() {
			r.readPart(foldName(name), v)
		}
	}
}

// readPart reads a field of a message or of a part of one.
func (r *reading) readPart(name string, v node) {
	switch name {
	case "content", "output", "toolchanges", "summary":
		r.readBlock(v)
	case "source":
		r.readSource(v)
	case "imageurl", "videourl", "audiourl", "fileurl", "documenturl", "inputurl":
		r.readAddress(v)
	case "file", "inputaudio", "audio":
		for inner, w := range v.fields() {
			if foldName(inner) == "id" && !w.isNull() {
				r.addWish(loop.ToolStored, "%s by its id", name)
			}
			r.readPart(foldName(inner), w)
		}
	case "fileid":
		if !v.isNull() {
			r.addWish(loop.ToolFiles, "a file by its id")
		}
	case "data", "filedata", "url":
		// Base64 has no colon; some servers accept a URL instead.
		if text := v.text(); strings.Contains(text[:min(len(text), 64)], ":") {
			r.readAddress(v)
		}
	case "tools":
		r.readTools(v)
	case "tool", "definition":
		r.readDefinition(v)
	}
}

// readSource reads the source of an image or a document in Anthropic's API. For a
// search result it is a text, which asks for nothing.
func (r *reading) readSource(v node) {
	for _, kind := range typesOf(v) {
		switch kind {
		case "base64", "text", "content":
		case "url":
			r.addWish(loop.ToolURLs, "content by its address")
		case "file":
			r.addWish(loop.ToolFiles, "a file by its id")
		default:
			r.addWish(loop.TypedTool(kind), "content from a source of the kind %.80q", kind)
		}
	}
	for name, w := range v.fields() {
		switch foldName(name) {
		case "content":
			r.readBlock(w)
		case "url":
			r.addWish(loop.ToolURLs, "content by its address")
		case "fileid":
			r.addWish(loop.ToolFiles, "a file by its id")
		}
	}
}

// readDefinition reads a tool that a message adds.
func (r *reading) readDefinition(v node) {
	if !v.isObject() {
		return
	}
	for name, w := range v.fields() {
		if foldName(name) == "definition" {
			r.readTool(w)
			return
		}
	}
	if !slices.Equal(typesOf(v), []string{"tool_reference"}) { // A reference names a tool that is judged elsewhere.
		r.readTool(v)
	}
}

// readAddress refuses any URL except data URLs.
func (r *reading) readAddress(v node) {
	if v.isObject() {
		for name, w := range v.fields() {
			if foldName(name) == "url" || foldName(name) == "uri" {
				r.readAddress(w)
			}
		}
		return
	}
	text := v.text()
	if text != "" && !strings.HasPrefix(text, "data:") {
		r.addWish(loop.ToolURLs, "content by its address")
	}
}

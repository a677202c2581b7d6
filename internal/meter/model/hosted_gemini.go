package model

import (
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// generateAPI is Gemini's. Its names are those that fold makes of both spellings.
var generateAPI = api{
	fields: with(map[string]loop.ModelTool{"cachedcontent": loop.ToolStored}, clientSide,
		`contents tools toolconfig safetysettings systeminstruction generationconfig labels model generatecontentrequest servicetier`),
	blocks: with(map[string]loop.ModelTool{"executablecode": loop.ToolCode, "codeexecutionresult": loop.ToolCode}, clientSide,
		`text thought thoughtsignature inlinedata functioncall functionresponse filedata videometadata mediaresolution partmetadata`),
	tool: func(node) (loop.ModelTool, string) { return clientSide, "" }, // It has as many as it has fields; see geminiTool.
}

var geminiTools = map[string]loop.ModelTool{
	"functionDeclarations": clientSide, "computerUse": clientSide,
	"googleSearch": loop.ToolWebSearch, "googleSearchRetrieval": loop.ToolWebSearch, "enterpriseWebSearch": loop.ToolWebSearch,
	"parallelAiSearch": loop.ToolWebSearch, "exaAiSearch": loop.ToolWebSearch, "urlContext": loop.ToolWebFetch,
	"codeExecution": loop.ToolCode, "fileSearch": loop.ToolSearch, "retrieval": loop.ToolSearch, "googleMaps": loop.ToolMaps,
	"mcpServers": loop.ToolMCP,
}

// foldedTools are Gemini's by what fold makes of their names.
var foldedTools = func() map[string]loop.ModelTool {
	all := map[string]loop.ModelTool{}
	for name, tool := range geminiTools {
		all[fold(name)] = tool
	}
	return all
}()

// generate reads a request of Gemini, or the one that lies within a count of
// tokens, from which nothing can be left out.
func (r *reading) generate(body node, outer bool) {
	for name, v := range body.fields() {
		tool, known := r.fields[fold(name)]
		switch {
		case v.null():
		case !known && outer:
			r.unknown = append(r.unknown, name)
		case !known:
			r.wants(loop.TypedTool(name), "the field %.80q", name)
		case tool != clientSide:
			r.wants(tool, "the field %q", name)
		case fold(name) == "generatecontentrequest":
			r.generate(v, false)
		case fold(name) == "model":
			r.model(v.text())
		case fold(name) == "tools":
			each(v, r.geminiTool)
		case fold(name) == "contents", fold(name) == "systeminstruction":
			each(v, r.geminiContent)
		}
	}
}

// each calls f for the values of a list, or for the one that stands in its place.
func each(v node, f func(node)) {
	if !v.list() {
		f(v)
	}
	for item := range v.items() {
		f(item)
	}
}

func (r *reading) geminiTool(t node) {
	for name, v := range t.fields() {
		tool, known := foldedTools[fold(name)]
		switch {
		case v.null():
		case !known:
			r.wants(loop.TypedTool(name), "the tool %.80q", name)
		default:
			r.wants(tool, "the tool %.80q", name)
		}
	}
}

func (r *reading) geminiContent(c node) {
	for name, v := range c.fields() {
		if fold(name) == "parts" {
			each(v, r.geminiPart)
		}
	}
}

func (r *reading) geminiPart(p node) {
	for name, v := range p.fields() {
		tool, known := r.blocks[fold(name)]
		switch {
		case v.null():
		case !known:
			r.wants(loop.TypedTool(name), "content of the kind %.80q", name)
		case tool != clientSide:
			r.wants(tool, "content of the kind %.80q", name)
		case fold(name) == "filedata":
			r.geminiFile(v)
		case fold(name) == "functionresponse":
			r.geminiContent(v) // It may have parts of its own.
		}
	}
}

// geminiFile is media by its address: that of a file at the vendor, or any other.
func (r *reading) geminiFile(f node) {
	for name, v := range f.fields() {
		switch {
		case fold(name) != "fileuri" || v.null():
		case strings.HasPrefix(v.text(), "https://generativelanguage.googleapis.com/"), strings.HasPrefix(v.text(), "files/"):
			r.wants(loop.ToolFiles, "a file by its address at the vendor")
		default:
			r.wants(loop.ToolURLs, "content by its address")
		}
	}
}

package modeltool

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Generate is Gemini's API. foldName makes the names from both spellings.
var Generate = &API{
	fields: addWords(map[string]loop.ModelTool{"cachedcontent": loop.ToolStored}, clientSide,
		`contents tools toolconfig safetysettings systeminstruction generationconfig labels model generatecontentrequest servicetier`),
	blocks: addWords(map[string]loop.ModelTool{"executablecode": loop.ToolCode, "codeexecutionresult": loop.ToolCode}, clientSide,
		`text thought thoughtsignature inlinedata functioncall functionresponse filedata videometadata mediaresolution partmetadata`),
	toolOf: func(node) (loop.ModelTool, string) { return clientSide, "" }, // Each field is a tool; see readGeminiTool.
}

var geminiTools = map[string]loop.ModelTool{
	"functionDeclarations": clientSide, "computerUse": clientSide,
	"googleSearch": loop.ToolWebSearch, "googleSearchRetrieval": loop.ToolWebSearch, "enterpriseWebSearch": loop.ToolWebSearch,
	"parallelAiSearch": loop.ToolWebSearch, "exaAiSearch": loop.ToolWebSearch, "urlContext": loop.ToolWebFetch,
	"codeExecution": loop.ToolCode, "fileSearch": loop.ToolSearch, "retrieval": loop.ToolSearch, "googleMaps": loop.ToolMaps,
	"mcpServers": loop.ToolMCP,
}

// foldedTools are Gemini's tools by their folded names.
var foldedTools = func() map[string]loop.ModelTool {
	all := map[string]loop.ModelTool{}
	for name, tool := range geminiTools {
		all[foldName(name)] = tool
	}
	return all
}()

// readGenerate reads a request of Gemini, or the request inside of a token count,
// from which nothing can be left out.
func (r *reading) readGenerate(body node, outer bool) {
	for name, v := range body.fields() {
		tool, known := r.fields[foldName(name)]
		switch {
		case v.isNull():
		case !known && outer:
			r.unknown = append(r.unknown, name)
		case !known:
			r.addWish(loop.TypedTool(name), "the field %.80q", name)
		case tool != clientSide:
			r.addWish(tool, "the field %q", name)
		case foldName(name) == "generatecontentrequest":
			r.readGenerate(v, false)
		case foldName(name) == "model":
			r.readModel(v.text())
		case foldName(name) == "tools":
			eachValue(v, r.readGeminiTool)
		case foldName(name) == "contents", foldName(name) == "systeminstruction":
			eachValue(v, r.readGeminiContent)
		}
	}
}

// eachValue calls f for each value of a list, or for a single value.
func eachValue(v node, f func(node)) {
	if !v.isList() {
		f(v)
	}
	for item := range v.items() {
		f(item)
	}
}

func (r *reading) readGeminiTool(t node) {
	for name, v := range t.fields() {
		tool, known := foldedTools[foldName(name)]
		switch {
		case v.isNull():
		case !known:
			r.addWish(loop.TypedTool(name), "the tool %.80q", name)
		default:
			r.addWish(tool, "the tool %.80q", name)
		}
	}
}

func (r *reading) readGeminiContent(c node) {
	for name, v := range c.fields() {
		if foldName(name) == "parts" {
			eachValue(v, r.readGeminiPart)
		}
	}
}

func (r *reading) readGeminiPart(p node) {
	for name, v := range p.fields() {
		tool, known := r.blocks[foldName(name)]
		switch {
		case v.isNull():
		case !known:
			r.addWish(loop.TypedTool(name), "content of the kind %.80q", name)
		case tool != clientSide:
			r.addWish(tool, "content of the kind %.80q", name)
		case foldName(name) == "filedata":
			r.readGeminiFile(v)
		case foldName(name) == "functionresponse":
			r.readGeminiContent(v) // It may have parts of its own.
		}
	}
}

// readGeminiFile reads media that is given by its URL: that of a file at the
// vendor, or any other.
func (r *reading) readGeminiFile(f node) {
	for name, v := range f.fields() {
		switch {
		case foldName(name) != "fileuri" || v.isNull():
		case strings.HasPrefix(v.text(), "https://generativelanguage.googleapis.com/"), strings.HasPrefix(v.text(), "files/"):
			r.addWish(loop.ToolFiles, "a file by its address at the vendor")
		default:
			r.addWish(loop.ToolURLs, "content by its address")
		}
	}
}

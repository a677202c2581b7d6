package loop

import (
	"slices"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// ModelTool is something that the vendor of a model does by itself when a request
// asks for it, such as searching the web. The agent's sandbox does not hold it,
// because it happens on the vendor's machines. Definitions name what is allowed
// in model_tools.
type ModelTool string

// The names, which are the same for all vendors.
const (
	ToolWebSearch ModelTool = "web_search"
	ToolWebFetch  ModelTool = "web_fetch"
	ToolCode      ModelTool = "code_execution"
	ToolSearch    ModelTool = "file_search"      // in documents that are stored at the vendor
	ToolImages    ModelTool = "image_generation" // by a tool; a model that answers with an image by itself needs no permission
	ToolMaps      ModelTool = "maps"
	ToolMCP       ModelTool = "mcp"     // remote MCP servers and connectors
	ToolAdvisor   ModelTool = "advisor" // another model, which the first one asks
	ToolURLs      ModelTool = "urls"    // images, documents and media that are given by their address
	ToolFiles     ModelTool = "files"   // the same, given by the id of a file at the vendor
	ToolStored    ModelTool = "stored"  // prompts, conversations, answers and caches that are kept at the vendor
)

var modelTools = []ModelTool{
	ToolWebSearch, ToolWebFetch, ToolCode, ToolSearch, ToolImages, ToolMaps, ToolMCP, ToolAdvisor, ToolURLs, ToolFiles, ToolStored,
}

// ModelTools lists the names. The caller owns the list.
func ModelTools() []ModelTool { return slices.Clone(modelTools) }

// typedTool matches the name of a tool without a name above: "type:" and the vendor's
// word.
var typedTool = lazyregexp.New(`^type:[A-Za-z0-9$][\w$.:-]{0,63}$`)

// TypedTool names a tool without a name above by the vendor's word for it.
func TypedTool(word string) ModelTool { return ModelTool("type:" + word) }

// IsKnown reports whether t is one of the names above, or a TypedTool.
func (t ModelTool) IsKnown() bool {
	return slices.Contains(modelTools, t) || typedTool.MatchString(string(t))
}

package fakemodel

import (
	"maps"
	"slices"
	"strings"
)

// ours are the types of tools that a client runs by itself.
var ours = []string{"", "function", "custom", "namespace", "local_shell", "apply_patch"}

// hosted is what a request asks of the vendor beside an answer: the types of its
// own tools, and the fields that stand for some.
func hosted(shape wire, m object) []string {
	var all []string
	for _, t := range list(m["tools"]) {
		o := fields(t)
		if shape.name == gemini.name {
			for _, name := range slices.Sorted(maps.Keys(o)) {
				if name != "functionDeclarations" {
					all = append(all, name)
				}
			}
			continue
		}
		if kind := text(o["type"]); !slices.Contains(ours, kind) {
			all = append(all, kind)
		}
	}
	for _, name := range []string{"mcp_servers", "container", "web_search_options", "prompt", "conversation", "cachedContent"} {
		if m[name] != nil {
			all = append(all, name)
		}
	}
	return all
}

// searching reports whether what a vendor is asked to do is a search of the web.
func searching(asked string) bool {
	name := strings.ToLower(strings.ReplaceAll(asked, "_", ""))
	return strings.HasPrefix(name, "websearch") || strings.HasPrefix(name, "googlesearch")
}

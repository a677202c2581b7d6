package claude

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// serverArguments names the MCP servers and allows all of their tools.
func serverArguments(servers []loop.Server) []string {
	if len(servers) == 0 {
		return nil
	}
	all, allowed := map[string]any{}, ""
	for _, s := range servers {
		if s.URL != "" {
			all[s.Name] = map[string]any{"type": "http", "url": s.URL}
		} else {
			argv := s.Argv()
			all[s.Name] = map[string]any{"type": "stdio", "command": argv[0], "args": argv[1:]}
		}
		if allowed != "" {
			allowed += ","
		}
		allowed += "mcp__" + s.Name
	}
	text, _ := json.Marshal(map[string]any{"mcpServers": all}) // Encoding strings never fails.
	return []string{"--mcp-config=" + string(text), "--allowedTools=" + allowed}
}

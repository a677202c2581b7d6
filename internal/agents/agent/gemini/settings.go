package gemini

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// attemptsPerCall is how often a call of the model is tried. The default
	// of ten takes minutes, during which nothing is printed.
	attemptsPerCall = 2
	// turnsPerTurn limits the calls of the model in one turn. It stops a
	// program that goes in circles; budgets stop the others.
	turnsPerTurn = 200
)

// rulesTemplate allows what the sandbox confines and denies everything else, with
// priority over the program's own rules. A rule for commands without argsPattern
// would be weakened: the program would ask about git and whatever looks
// dangerous, which is denied if nobody can be asked. Denied tools are not even
// offered to the model. Two of the program's tools run at the vendor.
const rulesTemplate = `[[rule]]
toolName = "*"
decision = "deny"
priority = 100
denyMessage = "pawl allows reading, editing and commands"

[[rule]]
toolName = ["read_file", "read_many_files", "list_directory", "glob", "grep_search", "write_todos", "update_topic", "complete_task", "write_file", "replace"%s]
decision = "allow"
priority = 200

[[rule]]
toolName = "run_shell_command"
argsPattern = "\"command\":"
decision = "allow"
allowRedirection = true
priority = 200
`

// rulesOf returns the rules, with the vendor's tools that the definition allows.
func rulesOf(r agent.Request) string {
	var hosted strings.Builder
	for _, t := range hostedTools {
		if r.Allows(t.allowed) {
			hosted.WriteString(", \"" + t.name + "\"")
		}
	}
	return fmt.Sprintf(rulesTemplate, hosted.String())
}

var hostedTools = []struct {
	name    string
	allowed loop.ModelTool
}{{"google_web_search", loop.ToolWebSearch}, {"web_fetch", loop.ToolWebFetch}}

type object = map[string]any

// settingsJSON returns all settings, so that none of a person's own apply. The
// sandbox is pawl's.
func settingsJSON(r agent.Request) ([]byte, error) {
	auth := "gemini-api-key"
	if r.Models.URL == "" {
		auth = "oauth-personal"
	}
	all := object{
		"general": object{
			"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": attemptsPerCall,
			"plan": object{"enabled": false}, "sessionRetention": object{"enabled": true, "maxAge": "30d"}, "topicUpdateNarration": false,
		},
		// With this check enabled, the program exits at once in an untrusted folder.
		// The environment still marks the folder as untrusted.
		"security": object{"auth": object{"selectedType": auth}, "folderTrust": object{"enabled": false}},
		"advanced": object{"ignoreLocalEnv": true},
		"context": object{
			"fileFiltering": object{"enableRecursiveFileSearch": false}, "includeDirectories": reportFolders(r.Env),
		},
		"experimental": object{
			"enableAgents": false, "extensionManagement": false, "gemma": false,
		},
		"hooksConfig": object{"enabled": false},
		"ide":         object{"enabled": false},
		"mcpServers":  object{},
		// After thirty calls, the loop detection would ask another model, and retry for
		// minutes if that one fails.
		"model":     object{"maxSessionTurns": turnsPerTurn, "disableLoopDetection": true},
		"privacy":   object{"usageStatisticsEnabled": false},
		"skills":    object{"enabled": false},
		"telemetry": object{"enabled": false},
		"tools":     object{"shell": object{"enableInteractiveShell": false}},
	}
	if r.Effort != "" {
		thinking := object{"thinkingConfig": object{"thinkingLevel": strings.ToUpper(r.Effort)}}
		match := object{}
		if r.Model != "" {
			match["model"] = r.Model
		}
		all["modelConfigs"] = object{"customOverrides": []object{{"match": match, "modelConfig": object{"generateContentConfig": thinking}}}}
	}
	return json.MarshalIndent(all, "", "  ")
}

// reportFolders returns the directory of the report, which the file tools may
// write to like the tree.
func reportFolders(env []string) []string {
	for _, e := range env {
		if file, ok := strings.CutPrefix(e, "PAWL_REPORT="); ok && file != "" {
			return []string{path.Dir(file)}
		}
	}
	return []string{}
}

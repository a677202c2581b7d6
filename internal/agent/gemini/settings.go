package gemini

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

const (
	// attemptsPerCall is how often a call of the model is tried: ten times, as it
	// is by default, takes minutes in which nothing is printed.
	attemptsPerCall = 2
	// turnsPerTurn bounds the calls of the model in one turn. It is for a program
	// that goes in circles; budgets end the others.
	turnsPerTurn = 200
)

// rules allow what the sandbox confines and deny everything else, above the
// program's own rules. A rule for commands without argsPattern would be
// softened: git and whatever looks dangerous would be asked for, which is denied
// where nobody can be asked. What is denied is not even offered to the model. Two
// of the program's tools run at the vendor.
const rules = `[[rule]]
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

// rulesOf are the rules with the vendor's tools that the definition allows.
func rulesOf(r agent.Request) string {
	var hosted strings.Builder
	for _, t := range hostedTools {
		if r.Allows(t.allowed) {
			hosted.WriteString(", \"" + t.name + "\"")
		}
	}
	return fmt.Sprintf(rules, hosted.String())
}

var hostedTools = []struct {
	name    string
	allowed loop.ModelTool
}{{"google_web_search", loop.ToolWebSearch}, {"web_fetch", loop.ToolWebFetch}}

type object = map[string]any

// settings is everything that the program is told, so that nothing of a person's
// own is. The sandbox is pawl's.
func settings(r agent.Request) ([]byte, error) {
	auth := "gemini-api-key"
	if r.Models.URL == "" {
		auth = "oauth-personal"
	}
	all := object{
		"general": object{
			"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": attemptsPerCall,
			"plan": object{"enabled": false}, "sessionRetention": object{"enabled": true, "maxAge": "30d"}, "topicUpdateNarration": false,
		},
		// An untrusted folder ends the program before it does anything, unless trust
		// is not asked for; the environment still says that it is untrusted.
		"security": object{"auth": object{"selectedType": auth}, "folderTrust": object{"enabled": false}},
		"advanced": object{"ignoreLocalEnv": true},
		"context": object{
			"fileFiltering": object{"enableRecursiveFileSearch": false}, "includeDirectories": reportFolder(r.Env),
		},
		"experimental": object{
			"enableAgents": false, "extensionManagement": false, "gemma": false,
		},
		"hooksConfig": object{"enabled": false},
		"ide":         object{"enabled": false},
		"mcpServers":  object{},
		// Whether it goes in circles it would ask another model, after thirty calls,
		// and try for minutes where that one does not answer as it should.
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

// reportFolder is the folder of the report, which the tools for files may write
// to as to the tree.
func reportFolder(env []string) []string {
	for _, e := range env {
		if file, ok := strings.CutPrefix(e, "PAWL_REPORT="); ok && file != "" {
			return []string{path.Dir(file)}
		}
	}
	return []string{}
}

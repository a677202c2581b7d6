package qwen

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

const (
	// extraRounds is how often a call of the model is repeated after its
	// seven attempts, which take more than a minute and cannot be shortened.
	extraRounds = 0
	// turnsPerTurn limits the calls of the model in one turn. It stops a
	// program that goes in circles; budgets stop the others.
	turnsPerTurn = 200
)

type object = map[string]any

// settingsJSON returns all settings, so that none of a person's own apply. A
// folder is untrusted unless somebody declared it trusted. The sandbox is pawl's.
func settingsJSON(r agent.Request) ([]byte, error) {
	model := object{"generationConfig": object{"maxRetries": extraRounds}}
	if r.Effort != "" {
		model = object{"generationConfig": object{"maxRetries": extraRounds, "extra_body": object{"reasoning_effort": r.Effort}}}
	}
	return json.MarshalIndent(object{
		"general":    object{"enableAutoUpdate": false, "chatRecording": r.Keep || r.Session != nil},
		"hooks":      object{},
		"ide":        object{"enabled": false},
		"mcpServers": object{},
		"model":      model,
		"privacy":    object{"usageStatisticsEnabled": false},
		"security":   object{"auth": object{"selectedType": "openai"}, "folderTrust": object{"enabled": true}},
		"telemetry":  object{"enabled": false},
		"tools":      object{"sandbox": false, "shell": object{"enableInteractiveShell": false}},
	}, "", "  ")
}

// reportFolder returns the directory of the report, which the file tools may
// write to like the tree; empty if missing.
func reportFolder(env []string) string {
	for _, e := range env {
		if file, ok := strings.CutPrefix(e, "PAWL_REPORT="); ok && file != "" {
			return path.Dir(file)
		}
	}
	return ""
}

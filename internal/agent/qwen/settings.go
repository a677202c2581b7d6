package qwen

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
)

const (
	// rounds is how often a call of the model is begun anew after its seven tries,
	// which take more than a minute and which nothing shortens.
	rounds = 0
	// turnsPerTurn bounds the calls of the model in one turn. It is for a program
	// that goes in circles; budgets end the others.
	turnsPerTurn = 200
)

type object = map[string]any

// settings is everything that the program is told, so that nothing of a person's
// own is. A folder that nobody called trusted is untrusted. The sandbox is pawl's.
func settings(r agent.Request) ([]byte, error) {
	model := object{"generationConfig": object{"maxRetries": rounds}}
	if r.Effort != "" {
		model = object{"generationConfig": object{"maxRetries": rounds, "extra_body": object{"reasoning_effort": r.Effort}}}
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

// reportFolder is the folder of the report, which the tools for files may write
// to as to the tree. Empty: there is none.
func reportFolder(env []string) string {
	for _, e := range env {
		if file, ok := strings.CutPrefix(e, "PAWL_REPORT="); ok && file != "" {
			return path.Dir(file)
		}
	}
	return ""
}

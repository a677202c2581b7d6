package bootrepo

import (
	_ "embed"
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
)

var (
	//go:embed scaffold/AGENT_RULES.md
	scaffoldRules []byte
	//go:embed scaffold/STOP_LINES.md
	scaffoldStopLines []byte
)

// ScaffoldVersion is the version of a new boot repository.
var ScaffoldVersion = bootlink.Version{Major: 1}

// Scaffold returns the files of a new boot repository, by their paths.
func Scaffold(now time.Time) map[string][]byte {
	state, tasks := bootstate.SchemaFiles()
	version, err := json.MarshalIndent(struct {
		Version    string   `json:"bootVersion"`
		Updated    string   `json:"lastUpdated"`
		Compatible []string `json:"compatibleWorkspaces"`
	}{ScaffoldVersion.String(), now.UTC().Format(time.RFC3339), []string{"1.0.x"}}, "", "  ")
	if err != nil {
		panic("bootrepo: " + err.Error()) // Texts always encode.
	}
	return map[string][]byte{
		bootlink.VersionFile: append(version, '\n'), bootlink.RulesFile: scaffoldRules, StopLineName: scaffoldStopLines,
		bootlink.StateSchemaFile: state, bootlink.TasksSchemaFile: tasks,
	}
}

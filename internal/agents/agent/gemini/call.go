package gemini

import (
	"cmp"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// toolKinds are the kinds of the program's tools.
var toolKinds = map[string]policy.CallKind{
	"read_file": policy.CallRead, "read_many_files": policy.CallRead, "list_directory": policy.CallRead, "glob": policy.CallRead,
	"grep_search": policy.CallRead, "search_file_content": policy.CallRead,
	"write_file": policy.CallEdit, "replace": policy.CallEdit,
	"run_shell_command": policy.CallRun,
	"web_fetch":         policy.CallFetch, "google_web_search": policy.CallFetch,
	"write_todos": policy.CallTalk, "update_topic": policy.CallTalk, "complete_task": policy.CallTalk, "ask_user": policy.CallTalk,
	"enter_plan_mode": policy.CallTalk, "exit_plan_mode": policy.CallTalk, "activate_skill": policy.CallTalk, "save_memory": policy.CallTalk,
}

// callOf describes a tool's call for the policy.
func callOf(use line) policy.Call {
	var in struct {
		File    string `json:"file_path"`
		Dir     string `json:"dir_path"`
		Path    string `json:"path"`
		Command string `json:"command"`
		Query   string `json:"query"`
		Prompt  string `json:"prompt"`
	}
	_ = json.Unmarshal(use.Input, &in) // An input of another form is left out.
	call := policy.Call{Kind: cmp.Or(toolKinds[use.Tool], policy.CallOther), Tool: use.Tool, Detail: cmp.Or(in.Query, in.Prompt)}
	switch call.Kind {
	case policy.CallRun:
		call.Command = in.Command
	case policy.CallRead, policy.CallEdit:
		if path := cmp.Or(in.File, in.Dir, in.Path); path != "" {
			call.Paths = []string{path}
		}
	case policy.CallFetch, policy.CallTalk, policy.CallOther:
	}
	return call
}

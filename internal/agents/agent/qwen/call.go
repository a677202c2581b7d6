package qwen

import (
	"cmp"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// toolKinds are the kinds of the program's tools.
var toolKinds = map[string]policy.CallKind{
	"read_file": policy.CallRead, "list_directory": policy.CallRead, "glob": policy.CallRead, "grep_search": policy.CallRead, "zoom_image": policy.CallRead,
	"write_file": policy.CallEdit, "edit": policy.CallEdit, "notebook_edit": policy.CallEdit,
	"run_shell_command": policy.CallRun, "monitor": policy.CallRun,
	"web_fetch": policy.CallFetch, "web_search": policy.CallFetch,
	"todo_write": policy.CallTalk, "agent": policy.CallTalk, "skill": policy.CallTalk, "save_memory": policy.CallTalk, "ask_user_question": policy.CallTalk,
}

// callOf describes for the policy what was denied.
func callOf(n denial) policy.Call {
	var in struct {
		File    string `json:"file_path"`
		Path    string `json:"path"`
		Command string `json:"command"`
		URL     string `json:"url"`
		Query   string `json:"query"`
	}
	_ = json.Unmarshal(n.Input, &in) // An input of another form is left out.
	call := policy.Call{Kind: cmp.Or(toolKinds[n.Tool], policy.CallOther), Tool: n.Tool, Detail: cmp.Or(in.URL, in.Query)}
	switch call.Kind {
	case policy.CallRun:
		call.Command = in.Command
	case policy.CallRead, policy.CallEdit:
		if path := cmp.Or(in.File, in.Path); path != "" {
			call.Paths = []string{path}
		}
	case policy.CallFetch, policy.CallTalk, policy.CallOther:
	}
	return call
}

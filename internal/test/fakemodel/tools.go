package fakemodel

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// call is a tool used.
type call struct {
	tool  tool
	input object
	text  string // for a tool that takes text
}

// The names that clients have for their tools.
var (
	writers = []string{"Write", "write", "write_file", "create_file"}
	readers = []string{"Read", "read", "read_file"}
	editors = []string{"Edit", "edit", "replace", "edit_file"}
	shells  = []string{"Bash", "bash", "shell_command", "run_shell_command", "exec_command", "shell", "run"}
)

// resolve is the use of whichever tool is offered for an intent; nil: none.
func (q request) resolve(u Use) *call {
	u.Path, u.Text = q.expand(u.Path), q.expand(u.Text)
	switch u.Intent {
	case IntentWrite:
		return q.write(u)
	case IntentRead:
		if c := q.use(readers, q.paths(u.Path)); c != nil {
			return c
		}
		return q.shell("cat " + quote(u.Path))
	case IntentEdit:
		return q.edit(u)
	case IntentShell:
		return q.shell(u.Text)
	case IntentTool:
		return q.named(u)
	}
	return nil
}

func (q request) expand(s string) string { return strings.ReplaceAll(s, "$CWD", q.dir) }

// use is the first offered tool of these names, with those fields that it has.
func (q request) use(names []string, all object) *call {
	for _, name := range names {
		t, ok := q.offered(name)
		if !ok || t.custom {
			continue
		}
		input := object{}
		for k, v := range all {
			if _, known := t.fields[k]; known || t.fields == nil {
				input[k] = v
			}
		}
		return &call{tool: t, input: input}
	}
	return nil
}

// offered finds a tool by its name, or the last part of one.
func (q request) offered(name string) (tool, bool) {
	for _, fits := range []func(t tool) bool{
		func(t tool) bool { return t.name == name || t.full() == name },
		func(t tool) bool { return strings.HasSuffix(t.name, "__"+name) || strings.HasSuffix(t.name, "."+name) },
	} {
		if i := slices.IndexFunc(q.tools, fits); i >= 0 {
			return q.tools[i], true
		}
	}
	return tool{}, false
}

func (q request) write(u Use) *call {
	all := q.paths(u.Path)
	all["content"], all["file_text"], all["text"] = u.Text, u.Text, u.Text
	if c := q.use(writers, all); c != nil {
		return c
	}
	lines := strings.Split(strings.TrimSuffix(u.Text, "\n"), "\n")
	if c := q.patch("*** Add File: " + u.Path + "\n+" + strings.Join(lines, "\n+")); c != nil {
		return c
	}
	return q.shell("printf %s " + quote(u.Text) + " > " + quote(u.Path))
}

func (q request) edit(u Use) *call {
	all := q.paths(u.Path)
	for _, k := range []string{"old_string", "oldString", "old_str", "old_text", "old", "before"} {
		all[k] = u.Old
	}
	for _, k := range []string{"new_string", "newString", "new_str", "new_text", "new", "after"} {
		all[k] = u.Text
	}
	all["instruction"] = "put one text in place of another"
	if c := q.use(editors, all); c != nil {
		return c
	}
	minus := "-" + strings.Join(strings.Split(u.Old, "\n"), "\n-")
	plus := "+" + strings.Join(strings.Split(u.Text, "\n"), "\n+")
	if c := q.patch("*** Update File: " + u.Path + "\n@@\n" + minus + "\n" + plus); c != nil {
		return c
	}
	return q.shell(fmt.Sprintf(`OLD=%s NEW=%s perl -0pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' %s`, quote(u.Old), quote(u.Text), quote(u.Path)))
}

// patch is the use of Codex's own tool for changes.
func (q request) patch(change string) *call {
	t, ok := q.offered("apply_patch")
	if !ok {
		return nil
	}
	whole := "*** Begin Patch\n" + change + "\n*** End Patch"
	if t.custom {
		return &call{tool: t, text: whole}
	}
	return &call{tool: t, input: object{"input": whole}}
}

func (q request) shell(command string) *call {
	if t, ok := q.offered("exec"); ok && t.custom { // Codex has a tool that takes JavaScript.
		return &call{tool: t, text: "text(JSON.stringify(await tools.exec_command({cmd: " + encode(command) + "})))"}
	}
	c := q.use(shells, object{"command": command, "cmd": command, "description": "fakemodel", "is_background": false})
	if c == nil {
		return nil
	}
	if kind := fields(c.tool.fields["command"])["type"]; kind == "array" {
		c.input["command"] = []string{"bash", "-lc", command}
	}
	return c
}

func (q request) named(u Use) *call {
	t, ok := q.offered(u.Name)
	if i := slices.IndexFunc(q.tools, func(t tool) bool { return strings.HasSuffix(t.full(), "_"+u.Name) }); !ok && i >= 0 {
		t, ok = q.tools[i], true
	}
	if !ok {
		return nil
	}
	c := &call{tool: t, input: object{}}
	if json.Unmarshal(u.Input, &c.text) == nil {
		return c
	}
	if err := json.Unmarshal(u.Input, &c.input); err != nil {
		return nil // A script that is wrong shows as a tool that does not fit.
	}
	return c
}

// paths are the names that a path has in tools. Most of them want a whole path,
// and some clients refuse any other.
func (q request) paths(name string) object {
	full := name
	if q.dir != "" && !path.IsAbs(name) {
		full = path.Join(q.dir, name)
	}
	return object{"file_path": full, "filePath": full, "absolute_path": full, "path": name}
}

// quote is a word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

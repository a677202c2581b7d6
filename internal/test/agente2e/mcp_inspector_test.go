//go:build agents && linux

package agente2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// inspection is how a tool is called well. A value of the form $NAME was remembered before.
type inspection struct {
	tool     string
	args     map[string]any
	unknown  string // the argument that can name what does not exist; empty: none can
	remember string // the name of a value of the result
	from     string // and where that is
}

// inspected has the tools in the order in which they are called.
var inspected = []inspection{
	{tool: "agent_list"},
	{tool: "agent_show", args: map[string]any{"agent": "fixer"}, unknown: "agent"},
	{tool: "loop_create", args: map[string]any{"goal": "The value is two.", "agentId": "fixer"}, unknown: "agentId", remember: "spec", from: "spec.id"},
	{tool: "loop_list"},
	{tool: "loop_get", args: map[string]any{"loopId": "$spec"}},
	{tool: "spec_export", args: map[string]any{"spec": "$spec"}, unknown: "spec"},
	{tool: "loop_run_step", args: map[string]any{"loopId": "$spec"}, unknown: "loopId"},
	{tool: "loop_flag", args: map[string]any{"loopId": "$spec", "text": "The value is not two."}, unknown: "loopId"},
	{tool: "loop_stop", args: map[string]any{"loopId": "$spec"}, unknown: "loopId"},
	{tool: "loop_overview"},
	{tool: "loop_show", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_next", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_plans"},
	{tool: "loop_check", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_doctor", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "run_plan", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_run", args: map[string]any{"loop": "fix", "wait": true}, unknown: "loop", remember: "run", from: "id"},
	{tool: "loop_estimate", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_why", args: map[string]any{"run": "$run"}, unknown: "run"},
	{tool: "loop_trace", args: map[string]any{"run": "$run"}, unknown: "run"},
	{tool: "loop_diff", args: map[string]any{"run": "$run"}, unknown: "run"},
	{tool: "run_events", args: map[string]any{"run": "$run"}, unknown: "run"},
	{tool: "run_list", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "run_log", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_stop_run", args: map[string]any{"run": "$run"}, unknown: "run"},
	{tool: "loop_pause", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "loop_resume", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "approval_list", remember: "approval", from: "data.0.id"},
	{tool: "approval_show", args: map[string]any{"approval": "$approval"}, unknown: "approval"},
	{tool: "budget_show", args: map[string]any{"loop": "fix"}, unknown: "loop"},
	{tool: "snapshot_list", remember: "snapshot", from: "data.0.ref"},
	{tool: "snapshot_diff", args: map[string]any{"snapshot": "$snapshot"}, unknown: "snapshot"},
	{tool: "snapshot_gone"},
	{tool: "memory_list", remember: "memory", from: "data.0.n"},
	{tool: "memory_why", args: map[string]any{"memory": "$memory"}, unknown: "memory"},
	{tool: "boot_check", args: map[string]any{"workspace": "$boot"}},
	{tool: "boot_status", args: map[string]any{"workspace": "$boot"}},
	{tool: "boot_log", args: map[string]any{"workspace": "$boot"}},
	{tool: "org_check", args: map[string]any{"workspace": "$org"}},
	{tool: "org_show", args: map[string]any{"workspace": "$org"}},
	{tool: "node_list"},
	{tool: "notice_list"},
	{tool: "board_list"},
	{tool: "board_show", args: map[string]any{"board": "work"}, unknown: "board"},
	{tool: "board_activity", args: map[string]any{"board": "work"}, unknown: "board"},
	{tool: "board_errors", args: map[string]any{"board": "work"}, unknown: "board"},
	{tool: "member_list"},
	{tool: "member_show", args: map[string]any{"agent": "maker"}, unknown: "agent"},
	{tool: "resource_list", remember: "resource", from: "data.0.id"},
	{tool: "resource_show", args: map[string]any{"resource": "$resource"}, unknown: "resource"},
	{tool: "task_create", args: map[string]any{"goal": "Mend the door.", "assignTo": "maker"}, unknown: "assignTo", remember: "task", from: "id"},
	{tool: "task_list", args: map[string]any{"board": "work"}, unknown: "board"},
	{tool: "task_get", args: map[string]any{"taskId": "$task"}, unknown: "taskId"},
	{tool: "task_why", args: map[string]any{"taskId": "$task"}, unknown: "taskId"},
	{tool: "task_handoff", args: map[string]any{"taskId": "$task", "toAgentId": "maker"}, unknown: "toAgentId"},
	{tool: "task_claim", args: map[string]any{"taskId": "$task", "agentId": "maker"}, unknown: "taskId"},
	{tool: "task_observe", args: map[string]any{"taskId": "$task", "agentId": "maker", "text": "$task is rusty"}, unknown: "agentId"},
	{tool: "task_update", args: map[string]any{"taskId": "$task", "priority": "high"}, unknown: "taskId"},
	{tool: "task_complete", args: map[string]any{"taskId": "$task"}, unknown: "taskId"},
	{tool: "agent_message_post", args: map[string]any{"from": "maker", "to": "human", "kind": "report", "content": "$task is done"}, unknown: "from", remember: "message", from: "id"},
	{tool: "agent_message_list", args: map[string]any{"from": "maker"}},
	{tool: "agent_message_get", args: map[string]any{"message": "$message"}, unknown: "message"},
}

// TestTheInspectorCallsEachToolWellAndBadly lists all tools with the inspector's command line, and
// calls each of them as it wants to be called, with an argument of a wrong type, without one that
// it requires, with one that it does not have and about something that does not exist. On a pipe
// it is only a wrong type.
func TestTheInspectorCallsEachToolWellAndBadly(t *testing.T) {
	for _, over := range []string{"a pipe", "HTTP"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			inspect(t, over == "HTTP")
		})
	}
}

func inspect(t *testing.T, http bool) {
	t.Helper()
	v := newFixture(t, subject{name: "command", agent: "command", keys: []string{"provider: openai", "agent_command: echo two >src/answer.txt"}}, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
	fix, err := os.ReadFile(filepath.Join(v.root, ".loops/fix/loop.config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	v.write(".loops/stuck/loop.config.yaml", strings.NewReplacer("name: fix", "name: stuck", "echo two >src/answer.txt", "echo three >src/answer.txt; echo written; sleep 60").Replace(string(fix)))
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "one more")
	known := map[string]any{"boot": t.TempDir(), "org": t.TempDir()}
	must := func(args ...string) {
		t.Helper()
		if out, errOut, exit := v.pawl(args...); exit != 0 {
			t.Fatalf("pawl %v: %d\n%s%s", args, exit, out, errOut)
		}
	}
	must("agent", "create", "@fixer", "--driver", "command", "--agent-command", "echo two >src/answer.txt")
	must("board", "create", "Work")
	must("agent", "create", "@maker", "--driver", "command", "--agent-command", "true", "--board", "work")
	must("resource", "create", "--board", "work", "--title", "How we work", "--content", "Small steps.")
	must("memory", "add", "the value is two", "--kind", "fact")
	for _, dir := range []string{"boot", "org"} {
		cmd := exec.CommandContext(t.Context(), "git", "-c", "user.name=t", "-c", "user.email=t@example.org", "init", "-q", "-b", "main", known[dir].(string))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	must("boot", "init", "--workspace", known["boot"].(string), "--new-boot", filepath.Join(t.TempDir(), "rules"), "--yes")
	must("org", "init", "--workspace", known["org"].(string), "--yes")
	stopped := v.command("run", "stuck") // It leaves a snapshot.
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	for out := ""; !strings.Contains(out, "written"); out, _, _ = v.pawl("logs", "stuck") {
		time.Sleep(100 * time.Millisecond)
	}
	must("stop", "stuck")
	_ = stopped.Wait()

	var server []string
	if http {
		is := v.daemon()
		server = []string{is.url, "--transport", "http", "--header", "Authorization: Bearer " + is.token}
	} else {
		server = []string{"-e", "PAWL_HOME=" + filepath.Join(v.home, ".pawl"), pawl, "mcp", "--tools", "all"} // It starts servers without most variables.
	}
	ask := func(args ...string) (out, said string, exit int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(agents, "mcp-inspector"), append(append([]string{"--cli"}, server...), args...)...)
		cmd.Dir, cmd.Env = v.root, v.environ()
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if stdout.Len() == 0 {
			t.Errorf("%v: %s", args, stderr.String())
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}

	out, said, exit := ask("--method", "tools/list", "--strict")
	type tool struct {
		Name        string
		InputSchema struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
	}
	var list struct{ Tools []tool }
	if err := json.Unmarshal([]byte(out), &list); err != nil || exit != 0 || strings.Contains(said, "Warning") {
		t.Fatalf("the tools are listed with exit status %d (%v):\n%.3000s\n%.3000s", exit, err, out, said)
	}
	offered := map[string]tool{}
	for _, one := range list.Tools {
		offered[one.Name] = one
		if !slices.ContainsFunc(inspected, func(i inspection) bool { return i.tool == one.Name }) {
			t.Errorf("the table does not call %s", one.Name)
		}
	}
	type bad struct {
		name, tool, argument string
		expected             bool // the error says what was
		args                 map[string]any
	}
	var bads []bad
	for _, i := range inspected {
		args := map[string]any{}
		for name, value := range i.args {
			if text, ok := value.(string); ok {
				for name, is := range known {
					text = strings.ReplaceAll(text, "$"+name, fmt.Sprint(is))
				}
				value = text
			}
			args[name] = value
		}
		one, ok := offered[i.tool]
		if !ok {
			t.Errorf("%s is not offered any more", i.tool)
			continue
		}
		if _, ok := one.InputSchema.Properties["workspace"]; ok && args["workspace"] == nil {
			args["workspace"] = v.root
		}
		out, _, exit := ask("--method", "tools/call", "--tool-name", i.tool, "--tool-args-json", encode(args))
		var result struct {
			StructuredContent any `json:"structuredContent"`
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || exit != 0 {
			t.Errorf("%s %v: exit status %d (%v)\n%s", i.tool, args, exit, err, out)
			continue
		}
		if i.remember != "" {
			known[i.remember] = valueAt(result.StructuredContent, i.from)
		}
		with := func(name string, value any) map[string]any {
			changed := maps.Clone(args)
			changed[name] = value
			return changed
		}
		bads = append(bads, bad{"an argument that it does not have", i.tool, "deep", true, with("deep", true)})
		for name, is := range one.InputSchema.Properties {
			var wrong any = []int{7}
			if is.Type == "array" {
				wrong = "seven"
			}
			bads = append(bads, bad{wrongType, i.tool, name, true, with(name, wrong)})
			break
		}
		for _, name := range one.InputSchema.Required {
			missing := maps.Clone(args)
			delete(missing, name)
			bads = append(bads, bad{"an argument left out", i.tool, name, true, missing})
		}
		if i.unknown != "" {
			bads = append(bads, bad{"something that does not exist", i.tool, i.unknown, false, with(i.unknown, nothing)})
		}
	}
	t.Logf("%d tools, %d bad calls", len(inspected), len(bads))

	var all sync.WaitGroup
	work := make(chan bad)
	for range 2 {
		all.Go(func() {
			for b := range work {
				out, _, exit := ask("--method", "tools/call", "--tool-name", b.tool, "--tool-args-json", encode(b.args))
				var result struct {
					IsError           bool
					Content           []struct{ Text string }
					StructuredContent struct {
						Error struct{ Code, Message, Argument, Value, Expected string }
					}
				}
				err := json.Unmarshal([]byte(out), &result)
				e := result.StructuredContent.Error
				switch {
				case err != nil || exit != 5 || !result.IsError || len(result.Content) != 1:
					t.Errorf("%s of %s: exit status %d (%v)\n%s", b.name, b.tool, exit, err, out)
				case len(result.Content[0].Text) > 2<<10 || strings.Contains(result.Content[0].Text, ".go:"):
					t.Errorf("%s of %s: the text is %q", b.name, b.tool, result.Content[0].Text)
				case e.Code == "" || e.Message == "" || e.Argument != b.argument || b.expected != (e.Expected != "") || !b.expected && e.Value != nothing:
					t.Errorf("%s of %s (%s): %+v", b.name, b.tool, b.argument, e)
				}
			}
		})
	}
	for _, b := range bads {
		if http || b.name == wrongType { // Each is a process, and what answers is the same.
			work <- b
		}
	}
	close(work)
	all.Wait()
}

const (
	nothing   = "nothing-like-this" // the name of nothing that exists
	wrongType = "a wrong type"
)

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// valueAt is what a value of JSON has at a place: names and indexes with points between them.
func valueAt(value any, place string) any {
	for part := range strings.SplitSeq(place, ".") {
		switch is := value.(type) {
		case map[string]any:
			value = is[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(is) {
				return nil
			}
			value = is[i]
		}
	}
	return value
}

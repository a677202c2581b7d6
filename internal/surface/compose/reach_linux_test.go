package compose_test

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/client"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// What a field of a request names. A field that is free text, a name, a path or a place in a list
// names nothing.
const (
	ofRun      = "run"
	ofApproval = "approval"
	ofStep     = "step"
	ofSnapshot = "snapshot"
	ofMemory   = "memory"
	ofLoop     = "loop"
	ofSpec     = "spec"
	ofBoard    = "board"
	ofTask     = "task"
	ofComment  = "comment"
	ofMessage  = "message"
	ofResource = "resource"
	nothing    = ""
)

// named says what the fields of requests name, by their names, and where a verb means something
// else by it, by the verb and the name.
var named = map[string]string{
	"run": ofRun, "id": ofRun, "approval": ofApproval, "step": ofStep, "snapshot": ofSnapshot, "memory": ofMemory, "loop": ofLoop, "spec": ofSpec,
	"board": ofBoard, "boards": ofBoard, "leads": ofBoard, "task": ofTask, "message": ofMessage, "answers": ofMessage, "resource": ofResource,
	"specs.spawn parent": ofSpec, "tasks.create parent": ofTask, "tasks.set parent": ofTask, "tasks.comment parent": ofComment,
	"specs.generate task": nothing,                                      // in words
	"boards.import board": nothing, "boards.plan-import board": nothing, // for steps of a TASKS.md only, which the request has not
	"members.create driver.board": nothing, "members.set driver.board": nothing, // of the roster, which is of no workspace
	// Arguments of tools.
	"loopId": ofSpec, "taskId": ofTask, "agent_message_list taskId": nothing, // It only selects.
}

// unnamed are the names of fields that name nothing of a workspace.
var unnamed = strings.Fields(`until name scope setup guard base_url budget_usd_day network env request agent agent_command model sandbox base hint why
after_name after_protocol gate document file template goal paths test typecheck lint coverage source by after text concurrency boot new_boot dir project
boot_version owner chief departments members slug description icon color verify path status assignee title acceptance_criteria priority due skills tags
column role layer lead interval capabilities driver command provider auth from to kind content category note via hash branch window caps
agentId templateId cursor assignTo createdBy toAgentId limit request_by digest`)

// besides is what a verb asks beside the field that is tried.
func (p populated) besides() map[string]map[string]any {
	const some = 5
	start, listed := map[string]any{"loop": "fix"}, map[string]any{"limit": some}
	member := map[string]any{"agent": p.handle, "layer": "specialist"}
	return map[string]map[string]any{
		"runs.list": listed, "runs.events": listed, "runs.plan": start, "runs.start": start, "runs.fire": start, "loops.next": {"count": some},
		"specs.flag": {"text": "what was missed"}, "specs.edit": {"document": "{}", "file": "it"}, "boards.show": listed, "boards.activity": listed, "boards.errors": listed,
		"boards.set": {"change": map[string]any{"name": "Other"}}, "tasks.list": listed, "messages.list": listed, "resources.list": listed, "memory.list": listed,
		"tasks.create": {"board": p.of[ofBoard], "title": "One more"}, "tasks.set": {"task": p.of[ofTask], "title": "Another"}, "tasks.move": {"column": "todo"},
		"tasks.comment": {"task": p.of[ofTask], "text": "something else"}, "tasks.assign": {"agent": p.handle}, "tasks.claim": {"agent": p.handle},
		"members.create": {"agent": "new", "layer": "specialist"}, "members.set": member,
		"messages.send":    {"to": p.handle, "kind": "question", "content": "how far is it?"},
		"resources.create": {"board": p.of[ofBoard], "title": "t", "content": "c"}, "resources.set": {"title": "t"},
		"budgets.set": {"window": "day", "caps": map[string]any{"tokens": "5"}}, "memory.add": {"text": "it is so"}, "snapshots.restore": {"branch": "rescue/1"},
		"loop_flag": {"text": "what was missed"}, "task_create": {"goal": "more", "assignTo": p.handle}, "task_claim": {"agentId": p.handle}, "task_update": {"title": "Another"},
		"task_observe": {"agentId": p.handle, "text": "seen"}, "task_handoff": {"toAgentId": p.handle},
		"agent_message_post": {"from": p.handle, "to": "human", "kind": "question", "content": "how far is it?"},
	}
}

// populated is a workspace with one of everything.
type populated struct {
	root, handle string
	of           map[string]string // the id of one, by kind
	more         map[string]string // further ids, by what they are of
}

// populate makes one of everything in a workspace. Memories is how many entries its memory gets.
func populate(t *testing.T, d *always, root, handle string, entries int) populated {
	t.Helper()
	ctx, c := t.Context(), d.callIn(root)
	p := populated{root: root, handle: handle, of: map[string]string{}, more: map[string]string{}}
	half := "half-" + handle // The refs of its snapshots have its name.
	for name, config := range map[string]string{
		"fix": fixConfig,
		half:  strings.NewReplacer("name: fix", "name: "+half, "grep -q three src/a.txt ||", "false ||", ".loops/fix/PAUSED", ".loops/PAUSED").Replace(fixConfig) + "max_iterations: 1\n",
	} {
		writeFile(t, filepath.Join(root, ".loops", name, "loop.config.yaml"), config+"sandbox: none\n")
	}
	state := filepath.Join(root, ".loops/fix/STATE.md")
	text, err := os.ReadFile(state)
	must(t, err)
	writeFile(t, state, strings.Replace(string(text), "a.txt is wrong", "a.txt is wrong for "+handle, 1)) // So that the keys of steps differ.
	start := func(name string) runs.View {
		t.Helper()
		v, err := api.StartRun.Call(ctx, c, runs.StartRequest{Loop: name})
		must(t, err)
		return v
	}
	fixed := start("fix")
	p.of[ofRun], p.of[ofApproval], p.of[ofSnapshot] = fixed.ID, fixed.Approval, start(half).Snapshot
	queued, err := api.FireRun.Call(ctx, c, runs.StartRequest{Loop: half})
	must(t, err)
	p.more["live run"] = queued.ID
	ws, err := d.parts.Verbs(ctx, root)
	must(t, err)
	p.of[ofLoop] = catalog.LoopID(ws.Lookup.ID, loop.ProtocolSpine, "fix")
	p.more["question"] = "ap_question_" + handle
	must(t, ws.Lookup.Store.Update(ctx, func(tx *store.Tx) error {
		steps, err := tx.Steps(ctx, p.of[ofLoop])
		if err != nil {
			return err
		}
		p.of[ofStep], p.more["step id"] = steps[0].Key, steps[0].ID
		now := tx.Now()
		return tx.AskApproval(ctx, loop.Approval{
			ID: p.more["question"], LoopID: p.of[ofLoop], RunID: fixed.ID, StepID: steps[0].ID, State: loop.ApprovalOpen,
			Action: loop.Action{Kind: loop.ActionQuestion, Why: "which?"}, Created: now, Expires: now.Add(time.Hour),
		})
	}))
	for n := range entries {
		e, err := api.AddMemory.Call(ctx, c, memories.Addition{Text: fmt.Sprintf("fact %d", n)})
		must(t, err)
		p.of[ofMemory] = fmt.Sprint(e.N)
	}
	if _, err := api.ShowAgent.Call(ctx, c, api.AgentRef{Agent: "fixer"}); err != nil {
		_, err := api.CreateAgent.Call(ctx, c, api.AgentChange{Agent: "fixer", Change: roster.Change{Driver: new("command"), Command: new("true")}})
		must(t, err)
	}
	made, err := specs.CreateSpec.Call(ctx, c, specs.CreateRequest{Fill: specs.Fill{Goal: "a.txt says three.", Agent: "fixer"}})
	must(t, err)
	p.of[ofSpec] = made.Spec.ID
	b, err := boards.CreateBoard.Call(ctx, c, boards.BoardCreation{Name: "Board of " + handle, BoardChange: boards.BoardChange{Scope: []string{"src/**"}}})
	must(t, err)
	p.of[ofBoard] = b.ID
	_, err = boards.CreateMember.Call(ctx, c, boards.MemberChange{Agent: handle, AgentChange: boards.AgentChange{Boards: []string{b.ID}}})
	must(t, err)
	task, err := boards.CreateTask.Call(ctx, c, boards.CreateTaskRequest{Board: b.ID, TaskChange: boards.TaskChange{Title: new("Task of " + handle)}})
	must(t, err)
	p.of[ofTask] = task.ID
	comment, err := boards.CommentTask.Call(ctx, c, boards.CommentRequest{Task: task.ID, Text: "looks fine"})
	must(t, err)
	p.of[ofComment] = comment.ID
	message, err := boards.SendMessage.Call(ctx, c, boards.SendRequest{To: handle, Kind: "question", Content: "what is new?"})
	must(t, err)
	p.of[ofMessage] = message.ID
	resource, err := boards.CreateResource.Call(ctx, c, boards.CreateResourceRequest{Board: b.ID, ResourceChange: boards.ResourceChange{Title: new("r"), Content: new("c")}})
	must(t, err)
	p.of[ofResource] = resource.ID
	return p
}

// callIn carries verbs out in a workspace as a command does without a daemon.
func (d *always) callIn(root string) verb.Caller {
	return verb.Local{Request: verb.Call{
		Open: func(ctx context.Context, register bool) (verb.Workspace, error) {
			return d.parts.Open(ctx, root, register)
		},
		Store: d.parts.StoreVerbs(), By: ann, Say: func(verb.Progress) {},
	}}
}

// kindOfID is the kind of one of everything.
func kindOfID(what string) string {
	switch what {
	case "live run":
		return ofRun
	case "question":
		return ofApproval
	case "step id":
		return ofStep
	}
	return what
}

// everything are all ids of a workspace, by what they are of.
func (p populated) everything() map[string]string {
	all := maps.Clone(p.of)
	maps.Copy(all, p.more)
	return all
}

// textFields lists the fields of a type of requests that hold texts, by their paths.
func textFields(of reflect.Type) (paths []string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	_, isText := reflect.New(of).Interface().(encoding.TextUnmarshaler)
	switch {
	case isText:
	case of.Kind() == reflect.String:
		return []string{""}
	case of.Kind() == reflect.Slice || of.Kind() == reflect.Map:
		for _, p := range textFields(of.Elem()) {
			paths = append(paths, "[]"+p)
		}
	case of.Kind() == reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			if name != "" {
				name = "." + name
			}
			for _, p := range textFields(f.Type) {
				paths = append(paths, name+p)
			}
		}
	}
	return paths
}

// kindOf says what a field names.
func kindOf(t *testing.T, verb, path string) string {
	t.Helper()
	path = strings.TrimPrefix(strings.ReplaceAll(path, "[]", ""), ".")
	name := path[strings.LastIndex(path, ".")+1:]
	for _, key := range []string{verb + " " + path, name} {
		if kind, ok := named[key]; ok {
			return kind
		}
	}
	if name != "parent" && slices.Contains(unnamed, name) {
		return nothing
	}
	t.Errorf("what does the field %s of %s name? say it in the table named, or that it names nothing in unnamed", path, verb)
	return nothing
}

// put sets the field at a path of a request.
func put(request map[string]any, path string, value any) {
	head, rest, deeper := strings.Cut(strings.TrimPrefix(path, "."), ".")
	name, isList := strings.CutSuffix(head, "[]")
	switch {
	case deeper:
		inner := map[string]any{}
		if was, ok := request[name].(map[string]any); ok {
			maps.Copy(inner, was)
		}
		put(inner, rest, value)
		if request[name] = inner; isList {
			request[name] = []any{inner}
		}
	case isList:
		request[name] = []any{value}
	default:
		request[name] = value
	}
}

// requests calls fn with each request of a verb or a tool that has one of the ids in a field that
// names something.
func (p populated) requests(t *testing.T, verb string, in reflect.Type, ids map[string]string, fn func(field, kind, what string, body []byte)) {
	t.Helper()
	for _, field := range textFields(in) {
		kind := kindOf(t, verb, field)
		if kind == nothing {
			continue
		}
		for what, id := range ids {
			request := map[string]any{}
			maps.Copy(request, p.besides()[verb])
			put(request, field, id)
			body, err := json.Marshal(request)
			must(t, err)
			fn(field, kind, what, body)
		}
	}
}

// refusesForeign asks a verb about each id of another workspace, in each field that names
// something, and wants that none is found.
func refusesForeign(t *testing.T, c verb.Caller, v verb.Info, mine, others populated, allKinds bool) (asked int) {
	t.Helper()
	ids := others.everything()
	mine.requests(t, v.Name, reflect.TypeOf(v.Request()), ids, func(field, kind, what string, body []byte) {
		if !allKinds && kindOfID(what) != kind {
			return
		}
		in := reflect.New(reflect.TypeOf(v.Request()))
		must(t, json.Unmarshal(body, in.Interface()))
		asked++
		var out any
		err := c.Call(t.Context(), v, in.Elem().Interface(), &out)
		problem := &verb.Problem{}
		if err != nil {
			problem = verb.ProblemOf(err)
		}
		switch malformed := kind != what && (kind == ofMemory || what == ofStep); {
		case malformed && problem.Exit == loop.ExitUsage: // It is not a number, or the key of a step with spaces in it.
		case problem.Status != http.StatusNotFound || problem.Kind != "not_found":
			t.Errorf("%s with the %s of another workspace as %s is answered %d %s, want 404", v.Name, what, field, problem.Status, problem.Title)
		case !strings.Contains(problem.Title, strings.TrimPrefix(ids[what], "#")):
			t.Errorf("%s with the %s of another workspace as %s does not find something else: %s", v.Name, what, field, problem.Title)
		}
	})
	return asked
}

// TestNoVerbReachesWhatIsOfAnotherWorkspace asks every verb, in the process and on the socket, and
// every tool of MCP about everything that another workspace of the same store has: there is no
// such thing, and nothing is done.
func TestNoVerbReachesWhatIsOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	s := startSurfaces(t)
	mine, others := populate(t, s.always, s.root, "ada", 1), populate(t, s.always, newFixture(t, "").root, "bea", 2)
	remote := client.New(s.socket)
	defer remote.Close()
	remote.Dir, remote.By = s.root, ann
	before := s.rows()
	for surface, by := range map[string]struct {
		caller   verb.Caller
		allKinds bool
		least    int
	}{"in this process": {s.callIn(s.root), true, 500}, "on the socket": {remote, false, 50}} {
		t.Run(surface, func(t *testing.T) {
			asked := 0
			for _, v := range api.Verbs() {
				if !v.InWorkspace {
					continue
				}
				asked += refusesForeign(t, by.caller, v, mine, others, by.allKinds)
				if now := s.rows(); now != before {
					t.Fatalf("%s has changed something:\n%s", v.Name, firstDifference(before, now))
				}
			}
			if asked < by.least {
				t.Errorf("only %d requests were made", asked)
			}
		})
	}
	t.Run("by MCP", func(t *testing.T) {
		s.joins()
		asked := 0
		for _, tool := range api.Tools() {
			mine.requests(t, tool.Name, tool.In, others.everything(), func(field, kind, what string, body []byte) {
				if kindOfID(what) != kind {
					return
				}
				asked++
				body = fmt.Appendf(nil, `{"workspace":%q,%s`, s.root, body[1:])
				_, said, _ := s.send(s.agent(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool.Name + `","arguments":` + string(body) + `}}`))
				absent := strings.Contains(said, `"code":"not_found"`) || tool.Name == "loop_get" && strings.Contains(said, "null")
				if !absent {
					t.Errorf("%s with the %s of another workspace as %s is answered %s", tool.Name, what, field, said)
				}
			})
		}
		if now := s.rows(); now != before {
			t.Errorf("something has changed:\n%s", firstDifference(before, now))
		}
		if asked < 30 {
			t.Errorf("only %d calls were made", asked)
		}
	})
	t.Run("what is of the own one is found", func(t *testing.T) {
		byFile := []string{api.CheckLoops.Name, api.DiagnoseLoops.Name, api.EstimateLoop.Name} // They take names of loops that files define.
		for _, v := range api.Verbs() {
			if !v.InWorkspace || v.Writes {
				continue
			}
			mine.requests(t, v.Name, reflect.TypeOf(v.Request()), mine.of, func(field, kind, what string, body []byte) {
				if kind != what || kind == ofStep || kind == ofLoop && slices.Contains(byFile, v.Name) {
					return
				}
				in := reflect.New(reflect.TypeOf(v.Request()))
				must(t, json.Unmarshal(body, in.Interface()))
				var out any
				if err := s.callIn(s.root).Call(t.Context(), v, in.Elem().Interface(), &out); err != nil && verb.ProblemOf(err).Status == http.StatusNotFound {
					t.Errorf("%s does not find the %s of its workspace: %v", v.Name, what, err)
				}
			})
		}
	})
}

// rows are all rows of the store but those that say when somebody was there.
func (s *surfaces) rows() string {
	s.t.Helper()
	var text strings.Builder
	must(s.t, s.parts.StoreVerbs().Rows.Update(s.t.Context(), func(tx *store.Tx) error {
		tables, err := readRows(s.t.Context(), tx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('nodes', 'placements') ORDER BY name`)
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows, err := readRows(s.t.Context(), tx, fmt.Sprintf(`SELECT * FROM "%v"`, table[0]))
			if err != nil {
				return err
			}
			for _, row := range rows {
				fmt.Fprintf(&text, "%v %v\n", table[0], row)
			}
		}
		return nil
	}))
	return text.String()
}

// readRows returns the rows of a query.
func readRows(ctx context.Context, tx *store.Tx, query string) (all [][]any, err error) {
	rows, err := tx.SQLite().QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// firstDifference is the first line in which two texts differ.
func firstDifference(before, now string) string {
	a, b := strings.Split(before, "\n"), strings.Split(now, "\n")
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return b[i]
		}
	}
	return "a row is gone"
}

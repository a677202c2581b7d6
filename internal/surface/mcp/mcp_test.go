package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// connect returns a client of a server whose verbs answer as ask says.
func connect(t *testing.T, o Options, ask verb.Caller) *sdk.ClientSession {
	t.Helper()
	o.Version, o.Log, o.Dir = "1", slog.New(slog.DiscardHandler), "/repo"
	if o.By.Role == "" {
		o.By = loop.Actor{Who: "agent", Role: loop.RoleAgent, From: "mcp"}
	}
	o.Open = func(Request) verb.Caller { return ask }
	s := New(o)
	t.Cleanup(s.Close)
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func TestTheListOfToolsIsSmallAndSaysWhatEachDoes(t *testing.T) {
	t.Parallel()
	for group, most := range map[verb.ToolGroup]struct{ tools, bytes int }{verb.ToolsSeed: {5, 8 << 10}, verb.ToolsCore: {24, 24 << 10}, verb.ToolsAll: {80, 64 << 10}} {
		session := connect(t, Options{Group: group}, nil)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) > most.tools || len(body) > most.bytes {
			t.Errorf("%s: %d tools in %d bytes, want at most %d in %d", group, len(list.Tools), len(body), most.tools, most.bytes)
		}
		t.Logf("%s: %d tools, %d bytes", group, len(list.Tools), len(body))
		for _, tool := range list.Tools {
			in := tool.InputSchema.(map[string]any)
			if in["additionalProperties"] != false || tool.OutputSchema == nil || tool.Description == "" || tool.Annotations == nil {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
	}
	if n := len(instructions); n > 1<<10 {
		t.Errorf("the instructions have %d bytes", n)
	}
}

func TestAViewerIsOfferedOnlyWhatReads(t *testing.T) {
	t.Parallel()
	for _, tool := range offered(verb.ToolsAll, loop.Actor{Role: loop.RoleViewer}) {
		if tool.Writes() {
			t.Errorf("a viewer is offered %s", tool.Name)
		}
	}
}

// Models' APIs take names of 64 characters, of which programs use some for the server, and have
// one type for a schema.
func TestNamesAndSchemasFitTheAPIsOfModels(t *testing.T) {
	t.Parallel()
	for _, tool := range api.Tools() {
		if name := "mcp__pawl__" + tool.Name; len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("not every API takes the name %s", name)
		}
		d := (&Server{}).describe(tool)
		for where, schema := range map[string]any{"arguments": d.InputSchema, "result": d.OutputSchema} {
			for name, p := range schema.(map[string]any)["properties"].(map[string]any) {
				kind, ok := p.(map[string]any)["type"].(string)
				if where == "arguments" && kind == "" || !ok && p.(map[string]any)["type"] != nil {
					t.Errorf("%s: %s of its %s has the type %v", tool.Name, name, where, p.(map[string]any)["type"])
				}
			}
		}
	}
}

// Many clients refuse a result that is not as the schema says, also if it is an error, and then
// the model is not told why.
func TestAnErrorOfAnyToolIsAsItsSchemaSays(t *testing.T) {
	t.Parallel()
	session := connect(t, Options{Group: verb.ToolsAll}, nil)
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(body, &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: map[string]any{"deep": true}})
		if err != nil || !r.IsError {
			t.Fatalf("%s: %v, %+v", tool.Name, err, r)
		}
		if err := resolved.Validate(r.StructuredContent); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
}

// TestAttack116 shows what unknown tools, extra fields and wrong types come to.
func TestAttack116OverMCP(t *testing.T) {
	t.Parallel()
	session := connect(t, Options{Group: verb.ToolsAll}, nil)
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "loop_destroy"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
	for name, c := range map[string]struct {
		tool, arguments        string
		argument, value, wants string
	}{
		"an extra field":        {"loop_get", `{"loopId":"lp_1234567","deep":true}`, "deep", "true", "one of loopId, workspace"},
		"a name that is near":   {"loop_get", `{"loop_id":"lp_1234567"}`, "loop_id", `"lp_1234567"`, "one of loopId, workspace"},
		"nothing at all":        {"loop_get", `{}`, "loopId", "", "a text"},
		"null":                  {"loop_get", `{"loopId":null}`, "loopId", "null", "a text"},
		"a number for a text":   {"loop_get", `{"loopId":7}`, "loopId", "7", "a text"},
		"a list for a text":     {"loop_get", `{"loopId":["a"]}`, "loopId", `["a"]`, "a text"},
		"a text for a number":   {"loop_next", `{"loop":"a","count":"7"}`, "count", `"7"`, "a whole number"},
		"a half":                {"loop_next", `{"loop":"a","count":0.5}`, "count", "0.5", "a whole number"},
		"a number without end":  {"loop_next", `{"loop":"a","count":1e309}`, "count", "1e309", "a whole number"},
		"a text for yes":        {"loop_run", `{"loop":"a","wait":"yes"}`, "wait", `"yes"`, "true or false"},
		"no page":               {"loop_list", `{"limit":0}`, "limit", "0", "1 to 200"},
		"a page that is a book": {"loop_list", `{"limit":100000}`, "limit", "100000", "1 to 200"},
		"depth":                 {"loop_get", `{"loopId":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`, "loopId", strings.Repeat("[", 80) + "…", "a text"},
	} {
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := json.Marshal(r.StructuredContent)
		var got struct{ Error problem }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if e := got.Error; !r.IsError || e.Code != "usage" || e.Exit != loop.ExitUsage || e.Argument != c.argument || e.Value != c.value || e.Expected != c.wants || e.Fix == "" {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestAdviceToMoveATaskBackNamesTheToolThatCan(t *testing.T) {
	t.Parallel()
	f := &loop.Fault{Exit: loop.ExitHeld, What: "the task is held", Fix: "take it back: {1}", Actions: []loop.Command{loop.PawlCommand("task move", "tk_1", "todo")}}
	session := connect(t, Options{Group: verb.ToolsAll}, failing{f})
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "task_handoff", Arguments: map[string]any{"taskId": "tk_1", "toAgentId": "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, "take it back: task_update (`pawl task move tk_1 todo`)") {
		t.Errorf("%s", text)
	}
}

// failing answers each verb with an error.
type failing struct{ err error }

// Call fails.
func (f failing) Call(context.Context, verb.Info, any, any) error { return f.err }

func TestAnErrorIsShortWhateverIsInIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 100_000)
	lines := strings.Repeat("a line of it\n", 9000)
	for name, f := range map[string]*loop.Fault{
		"one line":    {Exit: loop.ExitNotFound, What: "there is no loop " + long, Fix: "make it: {1}", Actions: []loop.Command{loop.PawlCommand("new", long)}},
		"many lines":  {Exit: loop.ExitError, What: "the gate failed", Why: lines, Fix: lines},
		"all of them": {Exit: loop.ExitError, What: long, Why: lines + long, Fix: long},
	} {
		session := connect(t, Options{}, failing{f})
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "loop_check", Arguments: map[string]any{"loop": long}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(r.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if len(text) > mostText || len(body) > 4*mostText || !strings.HasSuffix(text, "\n…") || !strings.HasPrefix(text, codes[f.Exit]+": "+f.What[:12]) && f.Exit != loop.ExitError {
			t.Errorf("%s: %d bytes of text, %d of structured content: %.200s", name, len(text), len(body), text)
		}
	}
	session := connect(t, Options{}, nil)
	if r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "loop_check", Arguments: map[string]any{long: long}}); err != nil || len(fmt.Sprint(r.StructuredContent)) > 4*mostText {
		t.Errorf("an argument with a long name: %v, %d bytes", err, len(fmt.Sprint(r.StructuredContent)))
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: long}); err == nil || len(err.Error()) > 2*mostText {
		t.Errorf("a tool with a long name: %.200v, %d bytes", err, len(fmt.Sprint(err)))
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "pawl://" + long}); err == nil || len(err.Error()) > 2*mostText {
		t.Errorf("a resource with a long address: %.200v, %d bytes", err, len(fmt.Sprint(err)))
	}
	if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: long}); err == nil || len(err.Error()) > 2*mostText {
		t.Errorf("a prompt with a long name: %.200v, %d bytes", err, len(fmt.Sprint(err)))
	}
}

func TestNearArgumentsAreSuggested(t *testing.T) {
	t.Parallel()
	tool := offered(verb.ToolsSeed, loop.Actor{})[2]
	_, err := (&Server{Options: Options{Dir: "/repo"}}).parse(tool, json.RawMessage(`{"loopid":"x"}`))
	if f := verb.Explain(err); !strings.HasPrefix(f.Fix, "did you mean loopId?") {
		t.Errorf("fix %q", f.Fix)
	}
}

// TestShortenedTextIsJSONOfTheRightSize shortens any value.
func TestShortenedTextIsJSONOfTheRightSize(t *testing.T) {
	t.Parallel()
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		text := rapid.Map(rapid.StringN(0, 600, -1), func(s string) any { return s })
		number := rapid.Map(rapid.Int(), func(n int) any { return n })
		if depth == 0 {
			return rapid.OneOf(text, number)
		}
		list := rapid.Map(rapid.SliceOfN(value(depth-1), 0, 30), func(l []any) any { return l })
		object := rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,9}`), value(depth-1), 0, 12), func(m map[string]any) any { return m })
		return rapid.OneOf(text, number, list, object)
	}
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.Marshal(map[string]any{"a": value(3).Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		text := shorten(body, mostText)
		if len(text) > mostText {
			t.Fatalf("%d bytes of %d", len(text), len(body))
		}
		if len(body) <= mostText && text != string(body) {
			t.Fatalf("%s became %s", body, text)
		}
		if strings.HasPrefix(text, "{") && !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", text)
		}
	})
}

func TestAPageEndsBetweenEntriesAndSaysWhereItGoesOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size, n := rapid.IntRange(1, 9000).Draw(t, "size"), rapid.IntRange(1, 60).Draw(t, "entries")
		var l verb.Listing
		for i := range n {
			l.Data = append(l.Data, map[string]any{"i": i, "text": strings.Repeat("x", size)})
			l.Cursors = append(l.Cursors, fmt.Sprint(i+1))
		}
		l.Cursors[n-1] = ""
		r, err := listed(l)
		if err != nil {
			t.Fatal(err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		var page struct {
			Data []struct {
				I    int
				Text string
			}
			Meta pageMeta
		}
		if err := json.Unmarshal(r.StructuredContent.(json.RawMessage), &page); err != nil || len(text) > mostText {
			t.Fatalf("%v, %d bytes of text", err, len(text))
		}
		have := len(page.Data)
		for i, e := range page.Data {
			if e.I != i || len(e.Text) != size {
				t.Fatalf("entry %d is %d with %d bytes", i, e.I, len(e.Text))
			}
		}
		want := ""
		if have < n {
			want = fmt.Sprint(have)
		}
		if page.Meta.NextCursor != want || have == 0 {
			t.Fatalf("%d of %d entries, and goes on at %q", have, n, page.Meta.NextCursor)
		}
	})
}

func TestWorkThatDoesNotEndIsInterruptedAfterAWhile(t *testing.T) {
	t.Parallel()
	var j jobs
	j.start()
	interrupted := make(chan struct{})
	if !j.begin(func(ctx context.Context) {
		<-ctx.Done()
		close(interrupted)
	}) {
		t.Fatal("no work is taken")
	}
	j.drain(time.Millisecond)
	select {
	case <-interrupted:
	default:
		t.Error("it returned before the work had ended")
	}
	if j.begin(func(context.Context) {}) {
		t.Error("it takes work afterwards")
	}
}

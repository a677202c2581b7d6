package fakemodel_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

func TestAnIntentionUsesWhicheverToolIsOffered(t *testing.T) {
	edit := fakemodel.Edit("$CWD/a", "old", "new")
	for name, c := range map[string]struct {
		turn  fakemodel.Turn
		tools string // name: fields
		want  string
	}{
		"Claude edits":                     {edit, "Edit:file_path old_string new_string", `Edit {"file_path":"/w/a","new_string":"new","old_string":"old"}`},
		"opencode edits":                   {edit, "edit:filePath oldString newString", `edit {"filePath":"/w/a","newString":"new","oldString":"old"}`},
		"Goose edits":                      {edit, "developer__edit:path before after", `developer__edit {"after":"new","before":"old","path":"/w/a"}`},
		"Gemini edits":                     {edit, "replace:file_path old_string new_string instruction", `replace {"file_path":"/w/a","instruction":"put one text in place of another","new_string":"new","old_string":"old"}`},
		"a shell edits":                    {edit, "bash:command", `bash {"command":"OLD='old' NEW='new' perl -0pi -e 's/\\Q$ENV{OLD}\\E/$ENV{NEW}/' '/w/a'"}`},
		"a shell reads":                    {fakemodel.Read("it's"), "bash:command", `bash {"command":"cat 'it'\\''s'"}`},
		"a tool reads":                     {fakemodel.Read("b"), "bash:command read_file:absolute_path", `read_file {"absolute_path":"/w/b"}`},
		"a shell writes":                   {fakemodel.Write("a", "x\n"), "exec_command:cmd", "exec_command {\"cmd\":\"printf %s 'x\\n' \\u003e 'a'\"}"},
		"a tool by the end of its name":    {fakemodel.Tool("loop_get", `{"id":1}`), "mcp__pawl__loop_get:id", `mcp__pawl__loop_get {"id":1}`},
		"a tool that is not offered":       {fakemodel.Tool("loop_get", `{}`), "bash:command", "fakemodel: no tool to tool loop_get among bash"},
		"an intention that no tool serves": {fakemodel.Shell("true"), "grep:pattern", "fakemodel: no tool to shell among grep"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := serve(t, c.turn)
			var tools []string
			for part := range strings.SplitSeq(c.tools, " ") {
				if tool, field, ok := strings.Cut(part, ":"); ok {
					tools = append(tools, fmt.Sprintf(`{"name":%q,"input_schema":{"properties":{%q:{}`, tool, field))
				} else {
					tools[len(tools)-1] += fmt.Sprintf(`,%q:{}`, part)
				}
			}
			body := fmt.Sprintf(`{"model":"m","system":"Working directory: /w","tools":[%s}}}],"messages":[]}`, strings.Join(tools, "}}},"))
			if g := post(t, url+"/v1/messages", body); g.status != http.StatusOK {
				t.Fatalf("it is %d %s", g.status, g.body)
			}
			if got := s.Log()[0].Did; got != c.want {
				t.Errorf("it did\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestModelsAndCountsAreServed(t *testing.T) {
	s, url := serve(t)
	for path, want := range map[string]string{"/v1/models": "data", "/v1beta/models": "models"} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s is %d, want a list of %s", path, res.StatusCode, want)
		}
	}
	if got := decode(t, post(t, url+"/v1/messages/count_tokens", `{"messages":[]}`).body)["input_tokens"]; got != 3.0 {
		t.Errorf("counted %v tokens", got)
	}
	if got := decode(t, post(t, url+"/v1beta/models/m:countTokens", `{"contents":[]}`).body)["totalTokens"]; got != 3.0 {
		t.Errorf("counted %v tokens", got)
	}
	if g := post(t, url+"/nowhere", `{}`); g.status != http.StatusNotFound {
		t.Errorf("nowhere is %d", g.status)
	}
	if n := len(s.Turns()); n != 0 {
		t.Errorf("%d turns were taken", n)
	}
}

func TestAKeyIsRecordedAndNeverChecked(t *testing.T) {
	s, url := serve(t)
	path, body := shapes["gemini"].ask(0, false)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path+"?key=in-the-query", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", "in-a-header")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if auth := s.Log()[0].Auth; auth["key"] != "in-the-query" || auth["x-goog-api-key"] != "in-a-header" {
		t.Errorf("keys are recorded as %v", auth)
	}
}

package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// tree is a place in a folder of the test that allows everything, and what it
// was asked.
func tree(t *testing.T) (*place, *[]policy.Call) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	asked := new([]policy.Call)
	return &place{root: root, dir: dir, env: os.Environ(), permit: func(_ string, c policy.Call) policy.Answer {
		*asked = append(*asked, c)
		return policy.Answer{Allow: true}
	}}, asked
}

func (p *place) try(t *testing.T, tool, input string) string {
	t.Helper()
	text, err := p.runTool(t.Context(), "1", call{tool: tool, input: input})
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

func TestToolsAnswerTheModel(t *testing.T) {
	for name, c := range map[string]struct{ tool, input, want string }{
		"a file is read":                         {"read", `{"path":"a.txt"}`, "1\tone\n2\ttwo\n3\tthree\n"},
		"a part of a file is read":               {"read", `{"path":"a.txt","offset":2,"limit":1}`, "2\ttwo\n[there is more: go on at offset 3]\n"},
		"beyond the end there is nothing":        {"read", `{"path":"a.txt","offset":9}`, "a.txt has 3 lines, and none of them is among those asked for"},
		"a file that is not there":               {"read", `{"path":"none"}`, "error: read none: there is no such file"},
		"a folder is not a file":                 {"read", `{"path":"sub"}`, "error: read sub: it is a folder, use list"},
		"a program is not text":                  {"read", `{"path":"bin"}`, "error: read bin: it is not text"},
		"a folder is listed":                     {"list", `{"path":"."}`, ".git/\na.txt\nbin\nlong\nsub/"},
		"lines are found":                        {"search", `{"pattern":"^t"}`, "a.txt:2:two\na.txt:3:three\nsub/b.go:1:two go\n"},
		"lines are found in some files":          {"search", `{"pattern":"two","glob":"*.go"}`, "sub/b.go:1:two go\n"},
		"lines are found below a folder":         {"search", `{"pattern":"two","path":"sub","glob":"**/b.*"}`, "sub/b.go:1:two go\n"},
		"nothing is found":                       {"search", `{"pattern":"absent"}`, "nothing matches"},
		"an invalid pattern":                     {"search", `{"pattern":"("}`, "error: read the pattern: error parsing regexp: missing closing ): `(`"},
		"a search outside":                       {"search", `{"pattern":"x","path":"../"}`, "error: search ../: it is not in the tree; read files outside of it one by one"},
		"a text is replaced":                     {"edit", `{"path":"a.txt","old":"two\n","new":""}`, "edited a.txt"},
		"a text that is not there":               {"edit", `{"path":"a.txt","old":"four","new":"4"}`, "error: edit a.txt: the old text does not occur in it; read it again"},
		"a text that is there twice":             {"edit", `{"path":"a.txt","old":"o","new":"0"}`, "error: edit a.txt: the old text occurs 2 times; take more lines around it"},
		"no text":                                {"edit", `{"path":"a.txt","old":"","new":"x"}`, "error: edit a.txt: the old text is empty, or the same as the new one"},
		"a file is written with its folders":     {"write", `{"path":"x/y/z.txt","content":"new"}`, "wrote 3 bytes to x/y/z.txt"},
		"a folder cannot be written":             {"write", `{"path":"sub","content":"new"}`, "error: write sub: it exists and is not a file"},
		"the tree itself cannot be written":      {"write", `{"path":".","content":"new"}`, "error: write .: it is not in the tree; only files below DIR can be changed"},
		"a file outside cannot be written":       {"write", `{"path":"../x","content":"new"}`, "error: write ../x: it is not in the tree; only files below DIR can be changed"},
		"a command runs":                         {"run", `{"command":"echo out; echo err >&2"}`, "out\nerr\n[exit status 0]"},
		"a command fails":                        {"run", `{"command":"echo out; exit 3"}`, "error: out\n[exit status 3]"},
		"a command is ended":                     {"run", `{"command":"echo begun; exec sleep 60","timeout_seconds":1}`, "error: begun\n[it was ended after 1s]"},
		"an empty command":                       {"run", `{"command":" "}`, "error: run: the command is empty"},
		"an unknown tool":                        {"fly", `{}`, `error: there is no tool "fly", use one of: read, list, search, edit, write, run`},
		"an input that is not JSON":              {"read", `{"path":`, "error: read the tool's input: unexpected EOF"},
		"an input with a field that nobody has":  {"read", `{"file":"a.txt"}`, `error: read the tool's input: json: unknown field "file"`},
		"a report where none is wanted":          {"report", `{}`, `error: there is no tool "report", use one of: read, list, search, edit, write, run`},
		"an absolute path in the tree is inside": {"write", `{"path":"DIR/abs.txt","content":"x"}`, "wrote 1 bytes to abs.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := tree(t)
			put(t, filepath.Join(p.dir, "a.txt"), "one\ntwo\nthree\n")
			put(t, filepath.Join(p.dir, "bin"), "two\x00\n")
			put(t, filepath.Join(p.dir, "long"), strings.Repeat("x", 100_000))
			put(t, filepath.Join(p.dir, "sub", "b.go"), "two go\n")
			put(t, filepath.Join(p.dir, ".git", "config"), "two\n")
			got := p.try(t, c.tool, strings.ReplaceAll(c.input, "DIR", p.dir))
			if want := strings.ReplaceAll(c.want, "DIR", p.dir); got != want {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
		})
	}
}

func TestNoLinkLeadsAChangeElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	p, asked := tree(t)
	outside := t.TempDir()
	put(t, filepath.Join(outside, "f.txt"), "outside\n")
	put(t, filepath.Join(p.dir, "AGENTS.md"), "rules\n")
	for name, to := range map[string]string{
		"out": outside, "file": filepath.Join(outside, "f.txt"), "up": "..", "other": "AGENTS.md", "gone": filepath.Join(outside, "new.txt"),
	} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"out/f.txt", "out/new.txt", "file", "up/x", "other", "gone"} {
		for _, input := range []string{
			fmt.Sprintf(`{"path":%q,"content":"changed"}`, name), fmt.Sprintf(`{"path":%q,"old":"rules","new":"changed"}`, name),
		} {
			tool := "write"
			if strings.Contains(input, "old") {
				tool = "edit"
			}
			if got := p.try(t, tool, input); !strings.Contains(got, "is a link") {
				t.Errorf("%s %s: %s", tool, name, got)
			}
		}
	}
	if len(*asked) > 0 {
		t.Errorf("leave was asked for %+v", *asked)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 || content(t, filepath.Join(outside, "f.txt")) != "outside\n" {
		t.Errorf("outside there is %v, %v", names, err)
	}
	if got := content(t, filepath.Join(p.dir, "AGENTS.md")); got != "rules\n" {
		t.Errorf("what the link leads to is %q", got)
	}
}

func TestAReadThroughALinkIsJudgedByWhereItLeads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	p, asked := tree(t)
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(outside, "f.txt"), "outside\n")
	put(t, filepath.Join(p.dir, "in.txt"), "inside\n")
	for name, to := range map[string]string{"out": filepath.Join(outside, "f.txt"), "in": "in.txt"} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.try(t, "read", `{"path":"in"}`); got != "1\tinside\n" || len(*asked) > 0 {
		t.Errorf("a link in the tree gives %q after %+v", got, *asked)
	}
	if got := p.try(t, "read", `{"path":"out"}`); got != "1\toutside\n" {
		t.Errorf("a link out of the tree gives %q", got)
	}
	if len(*asked) != 1 || (*asked)[0].Paths[0] != filepath.Join(outside, "f.txt") {
		t.Errorf("leave was asked for %+v", *asked)
	}
}

func TestWhateverAPathIsNothingOutsideChanges(t *testing.T) {
	p, _ := tree(t)
	above := filepath.Dir(p.dir)
	before, err := os.ReadDir(above)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"..", ".", "", "a", "b.txt", "/", "~", "\\", "c/../.."}), 1, 6).Draw(rt, "parts")
		name := strings.Join(parts, "/")
		input, err := json.Marshal(writeInput{Path: name, Content: "x"})
		if err != nil {
			rt.Fatal(err)
		}
		text, err := p.runTool(t.Context(), "1", call{tool: "write", input: string(input)})
		if (text == "") == (err == nil) {
			rt.Fatalf("write %q: %q, %v", name, text, err)
		}
	})
	after, err := os.ReadDir(above)
	if err != nil || len(after) != len(before) {
		t.Errorf("above the tree there is %v, %v, and was %v", after, err, before)
	}
}

func TestOutputIsCapped(t *testing.T) {
	p, _ := tree(t)
	put(t, filepath.Join(p.dir, "many"), strings.Repeat("a line of some length\n", 50_000))
	for tool, input := range map[string]string{
		"read": `{"path":"many"}`, "search": `{"pattern":"line"}`, "run": `{"command":"cat many"}`,
	} {
		if got := p.try(t, tool, input); len(got) > maxOutputBytes+200 || !strings.Contains(got, "more") && !strings.Contains(got, "dropped") {
			t.Errorf("%s gives %d bytes: …%s", tool, len(got), got[len(got)-100:])
		}
	}
}

func TestSchemasAreJSON(t *testing.T) {
	p, _ := tree(t)
	p.report = filepath.Join(p.dir, "report.json")
	for _, tool := range p.availableTools() {
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal([]byte(tool.schema), &schema); err != nil || schema.Type != "object" {
			t.Errorf("the schema of %s: %v", tool.name, err)
		}
		for _, name := range schema.Required {
			if schema.Properties[name] == nil {
				t.Errorf("%s needs %s, which it does not have", tool.name, name)
			}
		}
	}
}

func TestAReportThatCannotBeReadIsRefused(t *testing.T) {
	p, _ := tree(t)
	p.report = filepath.Join(p.dir, "report.json")
	if got := p.try(t, "report", `{"outcome":"splendid"}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("it is %q", got)
	}
	if _, err := os.Stat(p.report); err == nil {
		t.Error("it was written")
	}
	if got := p.try(t, "report", `{"outcome":"blocked","reason":"no network","new_field":1}`); got != "reported" {
		t.Errorf("a good one is %q", got)
	}
	if got := content(t, p.report); !strings.Contains(got, "new_field") {
		t.Errorf("the file has %s", got)
	}
}

func TestEffortIsAskedForInTheWordsOfEachVendor(t *testing.T) {
	for provider, want := range map[string]string{
		anthropic: `"output_config":{"effort":"high"}`, openai: `"reasoning_effort":"high"`, gemini: `"thinkingLevel":"HIGH"`,
	} {
		for effort, has := range map[string]bool{"high": true, "": false} {
			_, _, body := shapeOf(provider).buildRequest(conversation{model: "m", effort: effort}, "k")
			if strings.Contains(string(body), want) != has || !has && strings.Contains(string(body), "ffort") {
				t.Errorf("%s with effort %q: %s", provider, effort, body)
			}
		}
	}
}

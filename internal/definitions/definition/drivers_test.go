package definition

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

func TestEveryBuiltInDriverIsInTheTableOfWhatItCan(t *testing.T) {
	f, _ := LookupField("agent")
	if diff := cmp.Diff(slices.Sorted(slices.Values(f.Values)), slices.Sorted(maps.Keys(drivers))); diff != "" {
		t.Errorf("drivers (-known +table):\n%s", diff)
	}
	levels := valuesOf("effort")
	for name, d := range drivers {
		for _, e := range d.efforts {
			if !slices.Contains(levels, e) {
				t.Errorf("%s has the level %q, which the key does not", name, e)
			}
		}
		if (len(d.efforts) == 0 || !d.servers) && d.why == "" {
			t.Errorf("%s does not say why it lacks something", name)
		}
	}
}

// complaints are the errors about the keys in a definition with these lines.
func complaints(t *testing.T, lines ...string) (loop.Definition, []string) {
	t.Helper()
	doc, err := Parse("x.yaml", []byte("name: fix\ntier: L1\ngoal: look\n"+strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	def, findings := doc.Definition("fix")
	var all []string
	for _, f := range findings {
		if f.Severity == readiness.SeverityError && slices.Contains([]string{"agent_command", "effort", "mcp", "pawl_tools", "instructions"}, f.Key) {
			all = append(all, f.Message)
		}
	}
	return def, all
}

func TestKeysThatADriverLacksAreRefusedInWords(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string // the beginning of the one complaint; empty: none
	}{
		"a level that there is":                   {[]string{"agent: claude", "effort: max"}, ""},
		"a level of another driver":               {[]string{"agent: codex", "effort: max"}, `effort: agent codex does not have the level 'max'; write one of minimal, low`},
		"a level that nobody has":                 {[]string{"agent: claude", "effort: huge"}, `effort: 'huge' is unknown; write one of minimal`},
		"a driver without levels":                 {[]string{"agent: goose", "effort: low"}, "effort: agent goose has no levels of effort: Goose has no setting"},
		"a program that nobody knows":             {[]string{"agent_command: ./a.sh", "effort: low"}, "effort: agent command has no levels of effort: pawl does not know"},
		"the program of a driver":                 {[]string{"agent_command: CI=1 timeout 60 claude -p fix"}, "agent_command: claude has no login inside the sandbox; use agent: claude instead"},
		"that of another":                         {[]string{"agent_command: cd src && /opt/bin/codex exec --json"}, "agent_command: codex has no login inside the sandbox; use agent: codex"},
		"with a provider":                         {[]string{"agent_command: claude -p fix", "provider: anthropic"}, ""},
		"with a variable":                         {[]string{"agent_command: claude -p fix", "env: [A_TOKEN]"}, ""},
		"without a sandbox":                       {[]string{"agent_command: claude -p fix", "sandbox: none"}, ""},
		"a program of the project by that name":   {[]string{"agent_command: tools/goose run"}, ""},
		"another use of the name":                 {[]string{"agent_command: goose up"}, ""},
		"an entry of the roster is not known yet": {[]string{"agent: maker", "effort: low"}, ""},
		"a server":                                {[]string{"agent: claude", `mcp: ["a=node x.js --flag=1"]`}, ""},
		"no servers":                              {[]string{"agent: api", "mcp: none"}, ""},
		"a driver without servers":                {[]string{"agent: qwen", "mcp: [a=b]"}, "mcp: agent qwen takes no MCP servers: Qwen Code starts no servers"},
		"pawl's own tools":                        {[]string{"agent: claude", "pawl_tools: post", "mcp: [a=b]"}, ""},
		"none of pawl's own tools":                {[]string{"agent: qwen", "pawl_tools: none", "mcp: none"}, ""},
		"pawl's own tools for a driver without":   {[]string{"agent: qwen", "pawl_tools: read"}, "pawl_tools: agent qwen takes no MCP servers, and pawl's tools are one: Qwen Code"},
		"another server with the name of pawl's":  {[]string{"agent: claude", "pawl_tools: read", "mcp: [pawl=b]"}, "mcp: the server of pawl_tools has the name 'pawl'; rename this one"},
		"an unknown level of pawl's own tools":    {[]string{"agent: claude", "pawl_tools: write"}, "pawl_tools: 'write' is unknown; write one of none, read, post"},
		"a server without a name":                 {[]string{"agent: claude", "mcp: [node x.js]"}, `mcp: 'node x.js': write NAME=COMMAND`},
		"an invalid name":                         {[]string{"agent: claude", `mcp: ["a b=c"]`}, `mcp: 'a b=c': the name of a server`},
		"one name twice":                          {[]string{"agent: claude", "mcp: [a=b, a=c]"}, `mcp: two servers have the name 'a'; rename one`},
		"a host that is not allowed":              {[]string{"agent: claude", "network: [other.example]", `mcp: ["a=https://mcp.example/x"]`}, "mcp: mcp.example is not in network; add it"},
		"a host that is":                          {[]string{"agent: claude", `network: ["*.example"]`, `mcp: ["a=https://mcp.example/x"]`}, ""},
		"another port of it":                      {[]string{"agent: claude", `network: ["mcp.example:8443"]`, `mcp: ["a=https://mcp.example/x"]`}, "mcp: mcp.example is not in network"},
		"that port":                               {[]string{"agent: claude", `network: ["mcp.example:8443"]`, `mcp: ["a=https://MCP.example:8443/x"]`}, ""},
		"a URL with a user":                       {[]string{"agent: claude", `network: ["mcp.example"]`, `mcp: ["a=https://u:p@mcp.example/x"]`}, `mcp: 'a=https://u:p@mcp.example/x': https`},
		"none and more":                           {[]string{"instructions: [none, AGENTS.md]"}, "instructions: none stands beside other entries"},
		"instructions that are no glob":           {[]string{`instructions: ["a[/b"]`}, "instructions: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := complaints(t, c.lines...)
			if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("complaints %q, want %q", got, c.want)
			}
		})
	}
}

func TestAProgramThatIsGivenAPromptIsThatOfItsDriver(t *testing.T) {
	for line, want := range map[string]string{
		"claude -p fix": "claude", "claude --print fix": "claude", "codex exec fix": "codex", "codex e fix": "codex", "gemini -p fix": "gemini", "gemini --prompt fix": "gemini",
		"opencode run fix": "opencode", "qwen -p fix": "qwen", "qwen --prompt fix": "qwen", "goose run": "goose", "claude": "", "codex fix": "", "opencode": "", "other -p fix": "", "": "",
	} {
		if got := headlessAgent(line); got != want {
			t.Errorf("%q starts %q, want %q", line, got, want)
		}
	}
}

func TestTheNewKeysOfADefinitionAreRead(t *testing.T) {
	def, got := complaints(t, "agent: claude", "effort: high", "network: [mcp.example]", "mcp: [a=node x.js, b=https://mcp.example/v1]", "instructions: [docs/style.md]")
	if got != nil || def.Effort != "high" || !slices.Equal(def.Instructions, []string{"docs/style.md"}) {
		t.Errorf("definition %+v, complaints %q", def, got)
	}
	want := []loop.Server{{Name: "a", Command: "node x.js"}, {Name: "b", URL: "https://mcp.example/v1"}}
	if diff := cmp.Diff(want, def.Servers()); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

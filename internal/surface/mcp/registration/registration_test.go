package registration_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/mcp/registration"
)

const program = "/usr/local/bin/pawl"

// codexTable is the entry of pawl in TOML.
const codexTable = `[mcp_servers.pawl]
command = "/usr/local/bin/pawl"
args = ["mcp"]
env_vars = ["PAWL_HOME", "PAWL_DATABASE", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
tool_timeout_sec = 3600
`

// machine is one of Linux on which nothing is installed.
func machine(t *testing.T) registration.Machine {
	t.Helper()
	return registration.Machine{
		System: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }, FindInPath: func(string) string { return "" },
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// enter plans a change, makes it, and returns what the file says then.
func enter(t *testing.T, m registration.Machine, client string) (registration.Change, string) {
	t.Helper()
	c, err := m.Plan(client, program)
	if err != nil {
		t.Fatalf("%s: %v", client, err)
	}
	if err := c.Write(); err != nil {
		t.Fatalf("%s: %v", client, err)
	}
	return c, read(t, c.File)
}

func TestANewFileHasTheEntryThatTheProgramItselfWouldWrite(t *testing.T) {
	for client, want := range map[string]struct{ file, text string }{
		"claude": {".claude.json", `{
  "mcpServers": {
    "pawl": {
      "type": "stdio",
      "command": "/usr/local/bin/pawl",
      "args": ["mcp"]
    }
  }
}
`},
		"codex": {".codex/config.toml", codexTable},
		"gemini": {".gemini/settings.json", `{
  "mcpServers": {
    "pawl": {
      "command": "/usr/local/bin/pawl",
      "args": ["mcp"],
      "timeout": 3600000
    }
  }
}
`},
		"opencode": {".config/opencode/opencode.json", `{
  "mcp": {
    "pawl": {
      "type": "local",
      "command": ["/usr/local/bin/pawl", "mcp"],
      "timeout": 3600000
    }
  }
}
`},
		"cursor": {".cursor/mcp.json", `{
  "mcpServers": {
    "pawl": {
      "type": "stdio",
      "command": "/usr/local/bin/pawl",
      "args": ["mcp"]
    }
  }
}
`},
		"vscode": {".config/Code/User/mcp.json", `{
  "servers": {
    "pawl": {
      "type": "stdio",
      "command": "/usr/local/bin/pawl",
      "args": ["mcp"]
    }
  }
}
`},
	} {
		m := machine(t)
		c, text := enter(t, m, client)
		if c.File != filepath.Join(m.Home, want.file) || c.State != registration.StateNew || c.Installed {
			t.Errorf("%s: %+v", client, c)
		}
		if diff := cmp.Diff(want.text, text); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", client, diff)
		}
		again, after := enter(t, m, client)
		if again.State != registration.StateSame || again.Diff != "" || after != text {
			t.Errorf("%s, the second time: %+v\n%s", client, again, after)
		}
	}
}

func TestTheConfigurationIsWhereTheProgramLooks(t *testing.T) {
	for name, c := range map[string]struct {
		client, system, variable string
		there                    string // is in the folder already
		want                     string // below the user's folder
	}{
		"claude's own folder":     {"claude", "linux", "CLAUDE_CONFIG_DIR", "", "/else/.claude.json"},
		"codex's own folder":      {"codex", "linux", "CODEX_HOME", "", "/else/config.toml"},
		"gemini's own folder":     {"gemini", "linux", "GEMINI_CLI_HOME", "", "/else/.gemini/settings.json"},
		"opencode with comments":  {"opencode", "linux", "", ".config/opencode/opencode.jsonc", ".config/opencode/opencode.jsonc"},
		"opencode, XDG":           {"opencode", "darwin", "XDG_CONFIG_HOME", "", "/else/opencode/opencode.json"},
		"VS Code, XDG":            {"vscode", "linux", "XDG_CONFIG_HOME", "", "/else/Code/User/mcp.json"},
		"VS Code on macOS":        {"vscode", "darwin", "", "", "Library/Application Support/Code/User/mcp.json"},
		"VS Code on Windows":      {"vscode", "windows", "", "", "AppData/Roaming/Code/User/mcp.json"},
		"VS Code on Windows, own": {"vscode", "windows", "APPDATA", "", "/else/Code/User/mcp.json"},
	} {
		m := machine(t)
		m.System = c.system
		m.Getenv = func(variable string) string {
			if variable == c.variable {
				return "/else"
			}
			return ""
		}
		if c.there != "" {
			write(t, filepath.Join(m.Home, c.there), "{}")
		}
		want := c.want
		if !filepath.IsAbs(want) {
			want = filepath.Join(m.Home, want)
		}
		if got, err := m.Plan(c.client, program); err != nil || got.File != want {
			t.Errorf("%s: %s (%v), want %s", name, got.File, err, want)
		}
	}
}

func TestAProgramIsInstalledIfPATHOrATraceSaysSo(t *testing.T) {
	for _, client := range registration.Clients() {
		m := machine(t)
		m.FindInPath = func(string) string { return "/usr/bin/it" }
		if c, err := m.Plan(client, program); err != nil || !c.Installed {
			t.Errorf("%s in PATH is not installed (%v)", client, err)
		}
	}
	for client, trace := range map[string]string{
		"claude": ".claude/settings.json", "codex": ".codex/auth.json", "gemini": ".gemini/x", "opencode": ".local/share/opencode/auth.json",
		"cursor": ".cursor/x", "vscode": ".vscode/extensions/x",
	} {
		m := machine(t)
		write(t, filepath.Join(m.Home, trace), "")
		if c, err := m.Plan(client, program); err != nil || !c.Installed {
			t.Errorf("%s, which left %s, is not installed (%v)", client, trace, err)
		}
	}
}

// changes of files as people write them, by what is special in them.
var changes = map[string]struct{ before, after string }{
	"comments, tabs and a comma after the last": {
		before: "// my servers\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* { */ \"x\": {\"command\": \"x, //}\"}, // the last\n\t},\n\t// the end\n}\n",
		after: "// my servers\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* { */ \"x\": {\"command\": \"x, //}\"}, // the last\n\t\t\"pawl\": {\n" +
			"\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/usr/local/bin/pawl\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t},\n\t},\n\t// the end\n}\n",
	},
	"four spaces, CRLF, no end of line": {
		before: "{\r\n    \"servers\": {\r\n        \"x\": {}\r\n    }\r\n}",
		after: "{\r\n    \"servers\": {\r\n        \"x\": {},\r\n        \"pawl\": {\r\n            \"type\": \"stdio\",\r\n            \"command\": \"/usr/local/bin/pawl\",\r\n" +
			"            \"args\": [\"mcp\"]\r\n        }\r\n    }\r\n}",
	},
	"one line": {
		before: `{"servers": {"x": {"command": "x"}}, "inputs": []}`,
		after:  `{"servers": {"x": {"command": "x"}, "pawl": {"type": "stdio", "command": "/usr/local/bin/pawl", "args": ["mcp"]}}, "inputs": []}`,
	},
	"no servers": {
		before: "{\n  \"inputs\": []\n}\n",
		after: "{\n  \"inputs\": [],\n  \"servers\": {\n    \"pawl\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/local/bin/pawl\",\n" +
			"      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
	},
	"an empty object with a comment": {
		before: "{ // nothing yet\n}\n",
		after: "{ // nothing yet\n  \"servers\": {\n    \"pawl\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/local/bin/pawl\",\n" +
			"      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
	},
	"a comment after the last value": {
		before: "{\"servers\": {}, \"a\": 1 // one\n}",
		after:  "{\"servers\": {\n  \"pawl\": {\n    \"type\": \"stdio\",\n    \"command\": \"/usr/local/bin/pawl\",\n    \"args\": [\"mcp\"]\n  }\n}, \"a\": 1 // one\n}",
	},
	"a comment where the member comes": {
		before: "{\"a\": 1 // one\n}",
		after:  "{\"a\": 1, // one\n  \"servers\": {\n    \"pawl\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/local/bin/pawl\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}",
	},
	"a byte-order mark": {
		before: "\ufeff{\"servers\":{\"x\":{}}}",
		after:  "\ufeff{\"servers\":{\"x\":{}, \"pawl\": {\"type\": \"stdio\", \"command\": \"/usr/local/bin/pawl\", \"args\": [\"mcp\"]}}}",
	},
	"an old entry, with what the user has added": {
		before: "{\n  \"servers\": {\n    \"pawl\": {\n      \"command\": \"/old/pawl\", // mine\n      \"args\": [ \"mcp\" ],\n      \"env\": {\"PAWL_HOME\": \"/data\"}\n    }\n  }\n}\n",
		after:  "{\n  \"servers\": {\n    \"pawl\": {\n      \"command\": \"/usr/local/bin/pawl\", // mine\n      \"args\": [ \"mcp\" ],\n      \"env\": {\"PAWL_HOME\": \"/data\"},\n      \"type\": \"stdio\"\n    }\n  }\n}\n",
	},
}

func TestEverythingElseInTheFileStays(t *testing.T) {
	for name, c := range changes {
		m := machine(t)
		write(t, filepath.Join(m.Home, ".config/Code/User/mcp.json"), c.before)
		_, text := enter(t, m, "vscode")
		if diff := cmp.Diff(c.after, text); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if again, _ := enter(t, m, "vscode"); again.State != registration.StateSame {
			t.Errorf("%s: the second time it is %s:\n%s", name, again.State, again.Diff)
		}
	}
}

func TestATimeoutThatTheUserHasSetStays(t *testing.T) {
	m := machine(t)
	write(t, filepath.Join(m.Home, ".gemini/settings.json"), `{"mcpServers": {"pawl": {"command": "/old/pawl", "args": ["mcp"], "timeout": 1000}}}`)
	if c, text := enter(t, m, "gemini"); c.State != registration.StateChanged || !strings.Contains(text, `"command": "/usr/local/bin/pawl", "args": ["mcp"], "timeout": 1000}`) {
		t.Errorf("%s\n%s", c.State, text)
	}
	write(t, filepath.Join(m.Home, ".codex/config.toml"), "[mcp_servers.pawl]\ncommand = \"/usr/local/bin/pawl\"\nargs = [\"mcp\"]\ntool_timeout_sec = 1\n")
	if c, _ := enter(t, m, "codex"); c.State != registration.StateSame {
		t.Errorf("%s\n%s", c.State, c.Diff)
	}
}

func TestATableComesToTheEndOfTOML(t *testing.T) {
	table := codexTable
	for name, c := range map[string]struct{ before, after string }{
		"comments":          {"# mine\nmodel = \"m\" # the best\n\n[mcp_servers.x]\ncommand = 'x'\n", "\n" + table},
		"no end of line":    {"model = \"m\"", "\n\n" + table},
		"only blanks":       {"\n", table},
		"CRLF":              {"model = \"m\"\r\n", "\r\n" + strings.ReplaceAll(table, "\n", "\r\n")},
		"names with points": {"mcp_servers.x.command = \"x\"\n", "\n" + table},
	} {
		m := machine(t)
		write(t, filepath.Join(m.Home, ".codex/config.toml"), c.before)
		change, text := enter(t, m, "codex")
		if text != c.before+c.after || change.State != registration.StateAdded {
			t.Errorf("%s: %s\n%s", name, change.State, text)
		}
		if again, _ := enter(t, m, "codex"); again.State != registration.StateSame {
			t.Errorf("%s: the second time it is %s", name, again.State)
		}
	}
}

func TestAFileThatCannotBeChangedWithoutDoubtStays(t *testing.T) {
	for name, c := range map[string]struct{ client, file, text, says string }{
		"not JSON":                {"claude", ".claude.json", "{\n  \"a\": }\n", "2:8"},
		"a name twice":            {"claude", ".claude.json", `{"mcpServers": {}, "mcpServers": {}}`, "mcpServers"},
		"a list":                  {"claude", ".claude.json", `[]`, "it is a list"},
		"servers that are a list": {"claude", ".claude.json", `{"mcpServers": []}`, "mcpServers is a list"},
		"an entry that is a text": {"claude", ".claude.json", `{"mcpServers": {"pawl": "no"}}`, "another server"},
		"a server elsewhere":      {"claude", ".claude.json", `{"mcpServers": {"pawl": {"type": "http", "url": "http://localhost/"}}}`, "another server"},
		"two documents":           {"claude", ".claude.json", `{} {}`, "1:4"},
		"a comment without end":   {"vscode", ".config/Code/User/mcp.json", `{} /* {`, "1:4"},
		"not UTF-8":               {"gemini", ".gemini/settings.json", "{\"a\": \"\xff\"}", "UTF-8"},
		"not TOML":                {"codex", ".codex/config.toml", "a = 1\nb = = 2\n", "2:"},
		"a table on one line":     {"codex", ".codex/config.toml", "mcp_servers = {x = {command = \"x\"}}\n", "does not add to"},
		"TOML's servers a list":   {"codex", ".codex/config.toml", "mcp_servers = []\n", "not a table"},
		"another entry in TOML":   {"codex", ".codex/config.toml", "[mcp_servers.pawl]\nurl = \"http://localhost/\"\n", "another server"},
	} {
		m := machine(t)
		file := filepath.Join(m.Home, c.file)
		write(t, file, c.text)
		_, err := m.Plan(c.client, program)
		fault, ok := errors.AsType[*loop.Fault](err)
		if !ok || fault.Exit != loop.ExitRefused || !strings.Contains(fault.Why, c.says) || !strings.Contains(fault.Why, "nothing was changed") {
			t.Errorf("%s: %v, want a refusal that says %q", name, err, c.says)
		}
		if got := read(t, file); got != c.text {
			t.Errorf("%s: the file is %q", name, got)
		}
	}
}

func TestAFileThatWasChangedMeanwhileStays(t *testing.T) {
	for name, before := range map[string]string{"there": "{}", "missing": ""} {
		m := machine(t)
		file := filepath.Join(m.Home, ".claude.json")
		if before != "" {
			write(t, file, before)
		}
		c, err := m.Plan("claude", program)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, `{"theirs": true}`)
		err = c.Write()
		if fault, ok := errors.AsType[*loop.Fault](err); !ok || fault.Exit != loop.ExitHeld {
			t.Errorf("%s: %v, want that it was changed meanwhile", name, err)
		}
		if got := read(t, file); got != `{"theirs": true}` {
			t.Errorf("%s: the file is %s", name, got)
		}
	}
}

func TestALinkStaysALinkAndTheFileKeepsItsMode(t *testing.T) {
	m := machine(t)
	real, link := filepath.Join(m.Home, "dotfiles", "claude.json"), filepath.Join(m.Home, ".claude.json")
	write(t, real, "{}")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if c, text := enter(t, m, "claude"); c.File != link || !strings.Contains(text, program) {
		t.Errorf("%+v\n%s", c, text)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v (%v)", info.Mode(), err)
	}
	if info, err = os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v (%v)", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(m.Home, "dotfiles", ".pawl*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A key of another server, beside the entry of pawl, is not shown.
func TestADifferenceShowsOnlyWhatChanges(t *testing.T) {
	m := machine(t)
	write(t, filepath.Join(m.Home, ".claude.json"), "{\n  \"mcpServers\": {\n    \"x\": {\"env\": {\"KEY\": \"s3cret\"},\n      \"command\": \"x\"\n    }\n  }\n}\n")
	c, err := m.Plan("claude", program)
	if err != nil {
		t.Fatal(err)
	}
	want := `@@ line 5 @@
+    },
+    "pawl": {
+      "type": "stdio",
+      "command": "/usr/local/bin/pawl",
+      "args": ["mcp"]
`
	if diff := cmp.Diff(want, c.Diff); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	data, err := json.Marshal(c)
	if err != nil || strings.Contains(string(data), "s3cret") {
		t.Errorf("as JSON it is %s (%v)", data, err)
	}
}

func TestAnUnknownProgramIsNotGuessed(t *testing.T) {
	_, err := machine(t).Plan("emacs", program)
	if fault, ok := errors.AsType[*loop.Fault](err); !ok || fault.Exit != loop.ExitUsage || !strings.Contains(fault.Why, "claude, codex, gemini, opencode, cursor, vscode") {
		t.Errorf("%v", err)
	}
}

func TestAttack131AConfigurationOfGreatDepthIsRefused(t *testing.T) {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for name, c := range map[string]struct{ client, file, text string }{
		"lists":                {"claude", ".claude.json", `{"a":` + deep("[", "]", 1_000) + `}`},
		"a million lists":      {"claude", ".claude.json", `{"a":` + deep("[", "]", 1_000_000) + `}`},
		"objects":              {"claude", ".claude.json", deep(`{"a":`, "}", 100_000)},
		"lists without an end": {"gemini", ".gemini/settings.json", strings.Repeat("[", 3_000_000)},
		"lists of TOML":        {"codex", ".codex/config.toml", "a = " + deep("[", "]", 100_000)},
		"tables of TOML":       {"codex", ".codex/config.toml", "a = " + deep("{a = ", "}", 100_000)},
		"TOML of megabytes":    {"codex", ".codex/config.toml", strings.Repeat("# \n", 1_000_000)},
	} {
		m := machine(t)
		write(t, filepath.Join(m.Home, c.file), c.text)
		_, err := m.Plan(c.client, program)
		if fault, ok := errors.AsType[*loop.Fault](err); !ok || fault.Exit != loop.ExitRefused || len(fault.Why) > 1000 {
			t.Errorf("%s: %.200v, want a refusal", name, err)
		}
	}
}

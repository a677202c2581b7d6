// Package registration enters pawl into the configuration of the programs that
// use MCP servers, so that they start `pawl mcp`. It changes one entry of one
// file of the user, and leaves every other byte of that file as it is.
//
// It starts no program, and writes nothing that was not returned as a Change
// before.
package registration

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// entryName is the name of the server in each configuration. Models see it in the
// names of tools.
const entryName = "pawl"

// Machine is where the programs are looked for.
type Machine struct {
	System     string // operating system, as Go calls it
	Home       string // the user's folder
	Getenv     func(name string) string
	FindInPath func(program string) string // its path, or ""
}

// A client is a program that uses MCP servers.
type client struct {
	name, title string
	programs    []string
	traces      []string                               // below the user's folder; one of them is there once it ran
	file        func(m Machine) string                 // its configuration
	table       []string                               // where in that the servers are; of TOML its only name
	entry       func(program string) []jsontree.Member // of pawl, in JSON
	remove      loop.Command                           // takes an entry away, if the client can do that
	after       string                                 // what makes it see a change
}

func text(name, value string) jsontree.Member {
	return jsontree.Member{Name: name, Value: jsontree.NewText(value)}
}

func texts(name string, values ...string) jsontree.Member {
	list := jsontree.NewList()
	for _, v := range values {
		list.Items = append(list.Items, jsontree.NewText(v))
	}
	return jsontree.Member{Name: name, Value: list}
}

// subcommand is what pawl is started with.
const subcommand = "mcp"

// longestCall is for how long a program is told to wait for an answer, where its own patience is
// shorter: a step of a loop takes as long as its agent and its gates do.
const longestCall = time.Hour

// timeoutMember is where that is in JSON. What the user has set there stays.
const timeoutMember = "timeout"

// timeout is the member, in milliseconds.
func timeout() jsontree.Member {
	return jsontree.Member{Name: timeoutMember, Value: jsontree.NewInt(longestCall.Milliseconds())}
}

// forwarded are the variables that a program with an environment of its own is told to hand on:
// where pawl's store is, and the keys with which runs reach their models.
var forwarded = []string{"PAWL_HOME", "PAWL_DATABASE", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}

var clients = []client{
	{
		name: "claude", title: "Claude Code", programs: []string{"claude"}, traces: []string{".claude.json", ".claude"},
		file: func(m Machine) string {
			return filepath.Join(m.folder("CLAUDE_CONFIG_DIR", ""), ".claude.json")
		},
		table:  []string{"mcpServers"},
		entry:  stdioEntry,
		remove: loop.HostCommand("claude", "mcp", "remove", "--scope", "user", entryName),
		after:  "sessions that run see it when they are started again; claude mcp get pawl shows it",
	},
	{
		name: "codex", title: "Codex", programs: []string{"codex"}, traces: []string{".codex"},
		file: func(m Machine) string {
			return filepath.Join(m.folder("CODEX_HOME", ".codex"), "config.toml")
		},
		table:  []string{"mcp_servers"},
		remove: loop.HostCommand("codex", "mcp", "remove", entryName),
		after:  "sessions that run see it when they are started again; codex mcp get pawl shows it",
	},
	{
		name: "gemini", title: "Gemini CLI", programs: []string{"gemini"}, traces: []string{".gemini"},
		file: func(m Machine) string {
			return filepath.Join(m.folder("GEMINI_CLI_HOME", ""), ".gemini", "settings.json")
		},
		table: []string{"mcpServers"},
		entry: func(program string) []jsontree.Member {
			return []jsontree.Member{text("command", program), texts("args", subcommand), timeout()}
		},
		remove: loop.HostCommand("gemini", "mcp", "remove", "--scope", "user", entryName),
		after:  "sessions that run see it when they are started again, in folders that you trust; gemini mcp list shows it",
	},
	{
		name: "opencode", title: "opencode", programs: []string{"opencode"}, traces: []string{".config/opencode", ".local/share/opencode"},
		file:  opencodeFile,
		table: []string{"mcp"},
		entry: func(program string) []jsontree.Member {
			return []jsontree.Member{text("type", "local"), texts("command", program, subcommand), timeout()}
		},
		after: "sessions that run see it when they are started again; opencode mcp list shows it",
	},
	{
		name: "cursor", title: "Cursor", programs: []string{"cursor", "cursor-agent"}, traces: []string{".cursor"},
		file:  func(m Machine) string { return filepath.Join(m.Home, ".cursor", "mcp.json") },
		table: []string{"mcpServers"},
		entry: stdioEntry,
		after: "switch it on in Cursor's settings, under MCP",
	},
	{
		name: "vscode", title: "VS Code", programs: []string{"code"}, traces: []string{".vscode"},
		file:  func(m Machine) string { return filepath.Join(m.codeFolder(), "User", "mcp.json") },
		table: []string{"servers"},
		entry: stdioEntry,
		after: "the command MCP: List Servers shows it, and starts it",
	},
}

func stdioEntry(program string) []jsontree.Member {
	return []jsontree.Member{text("type", "stdio"), text("command", program), texts("args", subcommand)}
}

// folder is the folder that an environment variable names, or one of the user.
func (m Machine) folder(variable, below string) string {
	if dir := m.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(m.Home, below)
}

// codeFolder is where VS Code keeps what belongs to the user.
func (m Machine) codeFolder() string {
	switch m.System {
	case "darwin":
		return filepath.Join(m.Home, "Library", "Application Support", "Code")
	case "windows":
		return filepath.Join(m.folder("APPDATA", filepath.Join("AppData", "Roaming")), "Code")
	}
	return filepath.Join(m.folder("XDG_CONFIG_HOME", ".config"), "Code")
}

// opencodeFile is the file that counts most of those that are there. All are
// read, and later ones win.
func opencodeFile(m Machine) string {
	dir := filepath.Join(m.folder("XDG_CONFIG_HOME", ".config"), "opencode")
	commented := filepath.Join(dir, "opencode.jsonc")
	if exists(commented) {
		return commented
	}
	return filepath.Join(dir, "opencode.json")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Clients are the names of the programs that pawl can be entered into.
func Clients() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// State is what a Change does.
type State string

// States of a Change.
const (
	StateSame    State = "same"    // pawl is there already
	StateNew     State = "new"     // the file is made
	StateAdded   State = "added"   // the file gets an entry
	StateChanged State = "changed" // the entry of pawl becomes another one
)

// A Change is what enters pawl into a configuration, schema pawl.mcp_install/v1.
type Change struct {
	Schema    string `json:"schema"`
	Client    string `json:"client"`
	Title     string `json:"title"`
	Installed bool   `json:"installed"` // the program was found on this machine
	File      string `json:"file"`
	State     State  `json:"state"`
	Diff      string `json:"diff,omitempty"` // of the file, without lines that stay
	After     string `json:"after"`          // what makes the program see it

	path     string // File, without links
	old, new []byte
}

// Plan returns what enters pawl into the configuration of a client. Program is
// the path of pawl. A file that could not be changed without doubt is a
// *loop.Fault.
func (m Machine) Plan(name, program string) (Change, error) {
	i := clientIndex(name)
	if i < 0 {
		return Change{}, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("unknown client %q", name), Why: "pawl can be entered into " + strings.Join(Clients(), ", "),
			Fix: "in other programs, enter this command as a server on standard input and output: {1}", Actions: []loop.Command{loop.PawlCommand("mcp")},
		}
	}
	k := clients[i]
	c := Change{Schema: "pawl.mcp_install/v1", Client: k.name, Title: k.title, Installed: m.isInstalled(k), File: k.file(m), After: k.after}
	c.path = c.File
	if real, err := filepath.EvalSymlinks(c.File); err == nil {
		c.path = real // the link stays a link
	}
	old, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.State = StateNew
	case err != nil:
		return c, &loop.Fault{Exit: loop.ExitError, What: "read the configuration of " + k.title, Why: err.Error(), Fix: "make the file readable", Err: err}
	default:
		c.old = old
	}
	var had bool
	if k.entry == nil {
		c.new, had, err = enterTOML(c.old, k.table[0], program)
	} else {
		c.new, had, err = enterJSON(c.old, append(k.table[:len(k.table):len(k.table)], entryName), k.entry(program))
	}
	if err != nil {
		return c, k.refusal(c.File, err)
	}
	switch {
	case bytes.Equal(c.old, c.new):
		c.State = StateSame
	case had:
		c.State = StateChanged
	case c.State == "":
		c.State = StateAdded
	}
	c.Diff = diff(string(c.old), string(c.new))
	return c, nil
}

func clientIndex(name string) int {
	for i, k := range clients {
		if k.name == name {
			return i
		}
	}
	return -1
}

func (m Machine) isInstalled(k client) bool {
	for _, p := range k.programs {
		if m.FindInPath(p) != "" {
			return true
		}
	}
	for _, trace := range k.traces {
		if exists(filepath.Join(m.Home, filepath.FromSlash(trace))) {
			return true
		}
	}
	return exists(k.file(m))
}

// errTaken means that a configuration has another server with the name of pawl.
var errTaken = errors.New("it has another server with the name " + entryName)

func (k client) refusal(file string, err error) error {
	f := &loop.Fault{Exit: loop.ExitRefused, What: "enter pawl into " + file, Why: err.Error() + "; nothing was changed", Err: err}
	switch {
	case !errors.Is(err, errTaken):
		f.Fix, f.Actions = "mend the file, or enter this command into it by hand: {1}", []loop.Command{loop.PawlCommand("mcp")}
	case k.remove.Program != "":
		f.Fix, f.Actions = "if pawl may take its place: {1}", []loop.Command{k.remove}
	default:
		f.Fix = "if pawl may take its place, remove it from the file"
	}
	return f
}

// diff shows the lines that change, and none of those around them: what is
// beside the entry of pawl may be a key of another server.
func diff(old, changed string) string {
	var b strings.Builder
	for _, e := range udiff.Lines(old, changed) {
		fmt.Fprintf(&b, "@@ line %d @@\n", strings.Count(old[:e.Start], "\n")+1)
		writeLines(&b, "-", old[e.Start:e.End])
		writeLines(&b, "+", e.New)
	}
	return b.String()
}

func writeLines(b *strings.Builder, sign, lines string) {
	for line := range strings.Lines(lines) {
		b.WriteString(sign + strings.TrimRight(line, "\r\n") + "\n")
	}
}

// Write makes the change. It fails if the file is not what it was when the
// change was planned.
func (c Change) Write() error {
	if c.State == StateSame {
		return nil
	}
	now, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) && c.State == StateNew {
		err = nil
	}
	if err == nil && !bytes.Equal(now, c.old) {
		return &loop.Fault{Exit: loop.ExitHeld, What: "enter pawl into " + c.File, Why: "the file was changed by somebody else meanwhile, and stays as it is", Fix: "try again"}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path), 0o700)
	}
	if err == nil {
		err = durable.ReplaceFile(c.path, c.new, 0o600)
	}
	if err != nil {
		return &loop.Fault{Exit: loop.ExitError, What: "write " + c.File, Why: err.Error(), Fix: "make its folder writable", Err: err}
	}
	return nil
}

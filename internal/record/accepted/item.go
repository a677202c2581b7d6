package accepted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Kind says what an item is.
type Kind string

// The kinds of items.
const (
	KindChannel    Kind = "channel"    // a channel of notices
	KindAgent      Kind = "agent"      // an entry of the roster
	KindDefinition Kind = "definition" // of a loop
	KindPlace      Kind = "place"      // where a workspace lies on this machine
	KindAnswer     Kind = "answer"     // a yes
)

// Item is something that rows ask a machine to do.
type Item struct {
	Kind Kind            `json:"kind"`
	Name string          `json:"name"` // of the channel, the agent, the loop, the workspace or the approval
	Does []string        `json:"does"` // what it makes the machine do, for whoever accepts it
	Body json.RawMessage `json:"body"` // what is accepted, and nothing else
}

// What says in words which item it is.
func (i Item) What() string {
	switch i.Kind {
	case KindChannel:
		return "the channel " + i.Name
	case KindAgent:
		return "the agent @" + i.Name
	case KindDefinition:
		return "this definition of the loop " + i.Name
	case KindPlace:
		return "the place of the workspace " + i.Name
	case KindAnswer:
		return "the yes to " + i.Name
	}
	return i.Name
}

// item makes an item whose digest is that of body. It reports false if the item does nothing
// that anybody has to accept.
func item(kind Kind, name string, body any, does ...string) (Item, bool) {
	text, err := json.Marshal(body)
	if err != nil {
		panic("accepted: " + string(kind) + " does not marshal: " + err.Error()) // Rows hold nothing that JSON cannot write.
	}
	does = slices.DeleteFunc(does, func(line string) bool { return line == "" })
	return Item{kind, name, does, text}, len(does) > 0
}

// line is "key: value"; empty without a value.
func line(key, value string) string {
	if value == "" {
		return ""
	}
	return key + ": " + value
}

// Channel returns the item of a channel. One that runs no program and sends nothing of this
// machine but the notice has none.
func Channel(c loop.Channel) (Item, bool) {
	is := struct {
		Kind                          loop.ChannelKind
		Target, SecretEnv, SecretFile string
	}{c.Kind, c.Target, c.SecretEnv, c.SecretFile}
	if c.Kind == loop.ChannelCommand {
		return item(KindChannel, c.Name, is, line("runs outside of any sandbox", c.Target))
	}
	does := []string{line("uses the variable", c.SecretEnv), line("uses the file", c.SecretFile)}
	if c.SecretEnv != "" || c.SecretFile != "" {
		does = append(does, line("sends to", c.Target))
	}
	return item(KindChannel, c.Name, is, does...)
}

// Agent returns the item of an entry of the roster. One that only names a driver and a model
// has none: each driver is an agent by itself.
func Agent(a loop.Agent) (Item, bool) {
	is := struct {
		Driver, Command, Provider, BaseURL string
		Auth                               loop.Auth
	}{a.Driver, a.Command, a.Provider, a.BaseURL, a.Auth}
	lends := ""
	if a.Auth == loop.AuthLend {
		lends = "lends a login of this machine"
	}
	return item(KindAgent, a.Handle, is, line("starts", a.Command), line("sends the key of its provider to", a.BaseURL), lends)
}

// Definition returns the item of a definition with its defaults. One whose programs are
// confined by tier full and get nothing of this machine but a copy of the tree has none: it
// is the most that a row may ask for by itself.
func Definition(d loop.Definition) (Item, bool) {
	open := d.Sandbox != "" && d.Sandbox != "full"
	does := []string{line("env", strings.Join(d.Env, ", ")), line("network", strings.Join(d.Network, ", ")), line("mcp", strings.Join(d.MCP, ", "))}
	does = append(does, line("agent_command", d.AgentCommand), line("base_url", d.BaseURL))
	if open {
		does = append([]string{line("sandbox", d.Sandbox)}, does...)
	}
	if d.Setup != "none" {
		does = append(does, line("setup", d.Setup))
	}
	if d.Auth == loop.AuthLend {
		does = append(does, line("auth", string(d.Auth)))
	}
	for _, tool := range d.ModelTools {
		does = append(does, line("model_tools", string(tool)))
	}
	if d.Tier == loop.TierUnattended && len(d.Autoland) > 0 {
		does = append(does, line("lands without a person", strings.Join(d.Autoland, ", ")))
	}
	if d.Protocol == loop.ProtocolBoot {
		does = append(does, "pushes to the remote")
	}
	if open { // What it executes then acts as the user.
		does = append(does, line("sense", d.SenseCommand()), line("verify", d.Verify), line("guard", d.Guard))
		for _, g := range d.Gates {
			does = append(does, line("gate "+g.Name, g.Check))
		}
		for _, on := range d.On {
			does = append(does, line("on", on))
		}
	}
	return item(KindDefinition, d.Name, d, does...)
}

// Place returns the item of a place on this machine.
func Place(p loop.Placement) Item {
	i, _ := item(KindPlace, p.WorkspaceID, []string{p.WorkspaceID, p.Path}, line("reads and fires the loops of", p.Path))
	return i
}

// Answer returns the item of a yes to an approval.
func Answer(a loop.Approval) Item {
	i, _ := item(KindAnswer, a.ID, []string{a.ID, a.BindingHash()}, fmt.Sprintf("%s of %s", a.Action.Kind, a.LoopID), line("command", strings.Join(a.Action.Argv, " ")), line("commit", a.Action.Commit), line("base", a.Action.Base))
	return i
}

package definition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// driver says which keys a driver supports.
type driver struct {
	efforts []string // levels of reasoning effort, lowest first; empty: it has no such option
	servers bool     // its program uses MCP servers that pawl names
	why     string   // why it does not support the rest
	prompts []string // arguments with which its program takes a prompt and asks nobody
}

// drivers are the built-in drivers. Every driver that can act is here.
var drivers = map[string]driver{
	"claude":   {efforts: []string{"low", "medium", "high", "xhigh", "max"}, servers: true, prompts: []string{"-p", "--print"}},
	"codex":    {efforts: []string{"minimal", "low", "medium", "high", "xhigh"}, servers: true, prompts: []string{"exec", "e"}},
	"gemini":   {efforts: []string{"minimal", "low", "medium", "high"}, why: "Gemini CLI connects to none from a folder that it does not trust, and pawl trusts no tree", prompts: []string{"-p", "--prompt"}},
	"opencode": {efforts: []string{"minimal", "low", "medium", "high", "xhigh"}, servers: true, prompts: []string{"run"}},
	"qwen":     {efforts: []string{"minimal", "low", "medium", "high", "xhigh"}, why: "Qwen Code starts no servers in its safe mode, in which pawl runs it", prompts: []string{"-p", "--prompt"}},
	"goose":    {servers: true, why: "Goose has no setting for it that holds for every model", prompts: []string{"run"}},
	"api":      {efforts: []string{"minimal", "low", "medium", "high", "xhigh", "max"}, why: "the built-in agent has its own tools only"},
	"acp":      {why: "the Agent Client Protocol leaves it to the program: configure it there"},
	"command":  {why: "pawl does not know the program: configure it there"},
}

// UnsupportedKey returns a key of a definition that a driver does not support, and the fix.
// It is empty if the driver supports all keys, and for drivers that are not built in.
func UnsupportedKey(name string, d loop.Definition) (key, why, fix string) {
	able, known := drivers[name]
	switch {
	case !known:
		return "", "", ""
	case d.Effort != "" && len(able.efforts) == 0:
		return "effort", fmt.Sprintf("agent %s has no levels of effort: %s", name, able.why), "remove effort, or use one of " + driversWith(func(d driver) bool { return len(d.efforts) > 0 })
	case d.Effort != "" && !slices.Contains(able.efforts, d.Effort):
		return "effort", fmt.Sprintf("agent %s does not have the level %s", name, readiness.Quote(d.Effort)), writeOneOf(able.efforts)
	case len(d.MCP) > 0 && !able.servers:
		return "mcp", fmt.Sprintf("agent %s takes no MCP servers: %s", name, able.why), "remove mcp, or use one of " + driversWith(func(d driver) bool { return d.servers })
	case d.PawlTools != "" && !able.servers:
		return "pawl_tools", fmt.Sprintf("agent %s takes no MCP servers, and pawl's tools are one: %s", name, able.why), "remove pawl_tools, or use one of " + driversWith(func(d driver) bool { return d.servers })
	case name == "command" && d.Provider == "" && len(d.Env) == 0 && d.Sandbox != "none" && d.Sandbox != "external" && CommandAdvice(d) != "":
		return "agent_command", headlessAgent(d.AgentCommand) + " has no login inside the sandbox", CommandAdvice(d)
	}
	return "", "", ""
}

// CommandAdvice says what to write instead of an agent_command that starts the program of a
// driver. It is empty if the command starts another program.
func CommandAdvice(d loop.Definition) string {
	if d.AgentCommand == "" || d.Agent != "" && d.Agent != "command" {
		return ""
	}
	agent := headlessAgent(d.AgentCommand)
	if agent == "" {
		return ""
	}
	return fmt.Sprintf("use agent: %s instead of agent_command (--agent %s instead of --agent-command); pawl then gives it the prompt and its login", agent, agent)
}

// headlessAgent returns the driver whose program a line starts with a prompt. A program of
// the project with the same name does not count.
func headlessAgent(line string) string {
	for _, words := range shell.Commands(line) {
		for behind, ok := shell.Behind(words); ok; behind, ok = shell.Behind(words) {
			words = behind
		}
		if len(words) == 0 || strings.Contains(words[0], "/") && !path.IsAbs(words[0]) {
			continue
		}
		name := path.Base(words[0])
		if slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(drivers[name].prompts, w) }) {
			return name
		}
	}
	return ""
}

func driversWith(has func(driver) bool) string {
	var names []string
	for _, name := range valuesOf("agent") {
		if has(drivers[name]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// readEffort reads the reasoning effort. checkDriver checks whether the driver has the
// level.
func (c *converter) readEffort() string { return c.oneOf("effort", valuesOf("effort")) }

// readMCPServers reads MCP servers. The host of a server must be allowed by network: the
// key alone does not allow it.
func (c *converter) readMCPServers() []string {
	var all []string
	seen := map[string]bool{}
	for _, item := range c.readList("mcp") {
		s, err := loop.ParseServer(item.Text)
		host, port := s.HostPort()
		switch {
		case item.Text == "none":
			continue
		case err != nil:
			c.reportErrorAt("mcp", item, readiness.Quote(item.Text)+": "+err.Error())
		case s.Name == loop.PawlServer && c.def.PawlTools != "":
			c.reportErrorAt("mcp", item, "the server of pawl_tools has the name "+readiness.Quote(s.Name)+"; rename this one")
		case seen[s.Name]:
			c.reportErrorAt("mcp", item, "two servers have the name "+readiness.Quote(s.Name)+"; rename one")
		case host != "" && !allowsHost(c.def.Network, host, port):
			c.reportErrorAt("mcp", item, fmt.Sprintf("%s is not in network; add it there: network: [%s]", host, host))
		default:
			seen[s.Name] = true
			all = append(all, item.Text)
		}
	}
	return all
}

// allowsHost reports whether a list of hosts, as network has them, allows one.
func allowsHost(network []string, host, port string) bool {
	return slices.ContainsFunc(network, func(entry string) bool {
		name, only, _ := strings.Cut(strings.ToLower(entry), ":")
		if only != "" && only != port || only == "" && port != "443" && port != "80" {
			return false
		}
		below, wild := strings.CutPrefix(name, "*")
		return name == host || wild && strings.HasSuffix(host, below)
	})
}

// checkDriver refuses keys that the driver does not support. An entry of the roster is
// checked when the loop runs.
func (c *converter) checkDriver() {
	name := c.def.Agent
	if name == "" && c.def.AgentCommand != "" {
		name = "command"
	}
	if key, why, fix := UnsupportedKey(name, c.def); key != "" {
		c.reportError(key, "%s; %s", why, fix)
	} else if advice := CommandAdvice(c.def); advice != "" {
		c.reportWarning("agent_command", "%s", advice)
	}
}

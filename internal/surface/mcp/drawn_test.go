package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/test/drawn"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// TestTheTablesOfTheDocumentDrawn keeps docs/mcp.md what the code says.
func TestTheTablesOfTheDocumentDrawn(t *testing.T) {
	t.Parallel()
	tables := map[string]string{"tools": toolTable(), "without": withoutTable(), "roles": roleTable(), "inside": insideTable(), "resources": resourceTable(), "prompts": promptTable()}
	for name, table := range tables {
		tables[name] = "\n" + table + "\n"
	}
	drawn.Sections(t, "../../../docs/mcp.md", tables)
}

func toolTable() string {
	var b strings.Builder
	b.WriteString("| tool | group | arguments | does | command |\n|---|---|---|---|---|\n")
	for _, t := range api.Tools() {
		var list []string
		for _, a := range argumentsOf(t) {
			switch {
			case a.index == nil:
			case a.required:
				list = append(list, "`"+a.name+"`")
			default:
				list = append(list, "`"+a.name+"`?")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `pawl %s` |\n", t.Name, t.Group, strings.Join(list, " "), t.Does, t.Command)
	}
	return b.String()
}

func withoutTable() string {
	var b strings.Builder
	b.WriteString("| verb | why it has no tool |\n|---|---|\n")
	verbs := slices.SortedFunc(slices.Values(api.Verbs()), func(a, b verb.Info) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range verbs {
		if why := cmp.Or(v.WhyNoTool, v.Hidden); why != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v.Name, why)
		}
	}
	return b.String()
}

func roleTable() string {
	var b strings.Builder
	b.WriteString("| verb | does | agent | viewer | a person's command |\n|---|---|---|---|---|\n")
	for _, v := range api.Verbs() {
		agent, viewer, command := "yes", "yes", ""
		if v.RefusesAgents() != "" {
			agent = "refused"
		}
		if v.RefusesViewers() != "" {
			viewer = "refused"
		}
		if c := v.PersonsCommand(v.Request()); c.Verb != "" {
			command = "`" + c.String() + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", v.Name, v.Does, agent, viewer, command)
	}
	return b.String()
}

// insideTable says which tools the agent of a run has.
func insideTable() string {
	of := func(tools loop.PawlTools) map[string]bool {
		there := map[string]bool{}
		for _, t := range offered(verb.ToolsAll, loop.Actor{Role: loop.RoleAgent, Grant: &loop.Grant{Inside: &loop.Inside{Tools: tools}}}) {
			there[t.Name] = true
		}
		return there
	}
	read, post := of(loop.PawlToolsRead), of(loop.PawlToolsPost)
	var b strings.Builder
	b.WriteString("| tool | `read` | `post` | limited to |\n|---|---|---|---|\n")
	words := map[bool]string{true: "yes", false: "no"}
	for _, t := range api.Tools() {
		if post[t.Name] {
			fmt.Fprintf(&b, "| `%s` | %s | yes | %s |\n", t.Name, words[read[t.Name]], t.Verbs[0].PostLimit)
		}
	}
	return b.String()
}

func resourceTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| address | what |\n|---|---|\n| `%s` | What waits for a person in your folder. |\n", inbox)
	for _, t := range templates() {
		does := t.does
		if len(t.parts) > 0 {
			does += " {part} is " + strings.Join(t.parts, ", ") + "."
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.uri, does)
	}
	return b.String()
}

func promptTable() string {
	var b strings.Builder
	b.WriteString("| prompt | does | argument |\n|---|---|---|\n")
	for _, p := range prompts() {
		fmt.Fprintf(&b, "| `%s` | %s | `%s`: %s |\n", p.name, p.does, p.argument, p.about)
	}
	return b.String()
}

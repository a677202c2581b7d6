package readiness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDoctorSaysWhatToChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		perRun int64
		known  bool
		want   []Row
	}{
		"nothing, with a budget that is just enough": {func(*Config) {}, 200000, true, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
			{StateOK, "budget", "'200000' covers 200000 tokens/run", ""},
		}},
		"a budget that is one too small": {func(*Config) {}, 200001, true, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
			{StateBad, "budget", "'200000' is less than 200001 tokens/run of the pattern", "set budget_tokens: 200001"},
		}},
		"an unknown pattern has no row": {func(*Config) {}, 0, false, []Row{{StateOK, "permission_mode", "'dontAsk'", ""}}},
		"a budget in words has no row": {func(c *Config) { c.BudgetTokens.Text = "2e5" }, 1, true, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
		}},
		"a budget beyond 64 bits": {func(c *Config) { c.BudgetTokens.Text = strings.Repeat("9", 100) }, 1 << 62, true, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
			{StateOK, "budget", "'" + strings.Repeat("9", 60) + "…' covers 4611686018427387904 tokens/run", ""},
		}},
		"a budget of zeros": {func(c *Config) { c.BudgetTokens.Text = strings.Repeat("0", 30) + "9" }, 10, true, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
			{StateBad, "budget", "'" + strings.Repeat("0", 30) + "9' is less than 10 tokens/run of the pattern", "set budget_tokens: 10"},
		}},
		"an interactive mode": {func(c *Config) { c.PermissionMode.Text = "default" }, 0, false, []Row{
			{StateBad, "permission_mode", "'default' is interactive; the agent would ask, and nobody is there", "set permission_mode: dontAsk"},
		}},
		"no mode at L3": {func(c *Config) { c.PermissionMode, c.Tier.Text = Value{}, "L3" }, 0, false, []Row{
			{StateBad, "permission_mode", "missing; the agent would ask, and nobody is there", "set permission_mode: bypassPermissions"},
		}},
		"a mode that is none is for check to name": {func(c *Config) { c.PermissionMode.Text = "yolo\t\x1b" }, 0, false, []Row{
			{StateOK, "permission_mode", "'yolo \ufffd'", ""},
		}},
		"isolation in scope": {func(c *Config) {
			c.Tier.Text, c.PermissionMode.Text = "L3", "bypassPermissions"
			c.Scope = append(c.Scope, at(".devcontainer/**", 12))
		}, 0, false, []Row{
			{StateOK, "permission_mode", "'bypassPermissions'", ""},
			{StateOK, "isolation", "declared in escalation or scope", ""},
		}},
		"no isolation": {func(c *Config) { c.Tier.Text, c.PermissionMode.Text = "L3", "bypassPermissions" }, 0, false, []Row{
			{StateOK, "permission_mode", "'bypassPermissions'", ""},
			{
				StateBad, "isolation", "bypassPermissions at L3, and no isolation is declared",
				`add to escalation "runs only in a container", and see to it that it does`,
			},
		}},
		"L3 in another mode has no row about isolation": {func(c *Config) { c.Tier.Text = "L3" }, 0, false, []Row{
			{StateOK, "permission_mode", "'dontAsk'", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config := baseA()
			c.change(&config)
			if diff := cmp.Diff(c.want, DoctorRows(config, c.perRun, c.known)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProgramOfAGateIsItsFirstWordWithoutAnAssignment(t *testing.T) {
	for command, want := range map[string]struct {
		word string
		skip bool
	}{
		"npm test":               {"npm", false},
		"CI=1 npm test":          {"npm", false},
		"A=1 B=2\tgo test":       {"go", false},
		`CI="a b" npm test`:      {"npm", false},
		`'./my gate.sh' --all`:   {"./my gate.sh", false},
		"./gate.sh":              {"./gate.sh", false},
		"  go\nvet":              {"go", false},
		"don't":                  {"don't", false},
		`"" go`:                  {"go", false},
		"A=1":                    {"", false},
		"":                       {"", true},
		" \t":                    {"", true},
		"<fill: gate command>":   {"", true},
		"npm test -- <a pattern": {"npm", false},
	} {
		if word, skip := GateProgram(command); word != want.word || skip != want.skip {
			t.Errorf("GateProgram(%q) = %q, %v, want %q, %v", command, word, skip, want.word, want.skip)
		}
	}
}

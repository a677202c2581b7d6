package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Flags are values of keys that come from a command line and not from a file. They are
// read like those of a file. An empty value means that the key is absent.
type Flags struct {
	Setup        string   `json:"setup,omitempty"` // a command
	Guard        string   `json:"guard,omitempty"` // a command
	BaseURL      string   `json:"base_url,omitempty"`
	BudgetUSDDay string   `json:"budget_usd_day,omitempty"`
	Network      []string `json:"network,omitempty"`
	Env          []string `json:"env,omitempty"`
}

// Apply sets the flags in a definition. The error is a *loop.Fault with exit status 2 about
// the first invalid value.
func (f Flags) Apply(d *loop.Definition) error {
	doc := &Document{first: map[string]int{}}
	given := map[string][]string{"network": f.Network, "env": f.Env, "base_url": {f.BaseURL}, "budget_usd_day": {f.BudgetUSDDay}}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		e := entry{key: Key{Name: key}}
		for _, text := range given[key] {
			e.scalar = readiness.Value{Text: text}
			e.items = append(e.items, e.scalar)
		}
		doc.first[key] = len(doc.entries)
		doc.entries = append(doc.entries, e)
	}
	c := &converter{doc: doc}
	d.Setup, d.Guard = f.Setup, f.Guard
	d.BaseURL = parseOptional(c, "base_url", baseURL)
	d.BudgetUSDDay = parseOptional(c, "budget_usd_day", parseDollars)
	d.Network, d.Env = c.readNetworkHosts(), c.readEnv()
	if len(c.more) == 0 {
		return nil
	}
	bad := c.more[0]
	flag := map[string]string{"base_url": "--base-url", "budget_usd_day": "--usd", "env": "--env", "network": "--network"}[bad.Key]
	why, fix, _ := strings.Cut(strings.TrimPrefix(bad.Message, bad.Key+": "), "; ")
	return &loop.Fault{Exit: loop.ExitUsage, What: flag + " cannot be used", Why: why, Fix: fix}
}

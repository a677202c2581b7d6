package loop

// TaskLoop is what an agent of protocol tasks has beside the keys of every loop: which
// files it keeps, and its place in the organisation at the time the definition was read.
type TaskLoop struct {
	Enabled    bool     `json:"enabled"`              // false: it never fires
	Reads      []string `json:"reads"`                // files that the agent is given, as written; relative ones begin in its folder
	Writes     []string `json:"writes"`               // files that a cycle writes results to, in the same form
	Escalation string   `json:"escalation,omitempty"` // agent that is told beyond the threshold; empty: the chief
	CycleLog   bool     `json:"cycle_log"`            // a row of HEARTBEAT.md for each cycle
	Role       string   `json:"role,omitempty"`       // text below the front matter of LOOP.md, given to the agent as it is

	Tier       int               `json:"tier"` // of the organisation: 1 or 2
	Department string            `json:"department,omitempty"`
	ReportsTo  string            `json:"reports_to,omitempty"` // id of the superior; empty: the owner
	Reports    []string          `json:"reports,omitempty"`    // ids of those who report to the agent, sorted
	Chief      string            `json:"chief,omitempty"`      // id; empty if missing
	Owner      string            `json:"owner,omitempty"`      // the person who answers for all; empty: whoever runs pawl
	Routing    map[string]string `json:"routing,omitempty"`    // tag to agent
	MaxAgents  int               `json:"max_agents"`           // agents of the organisation at work at once
	MaxRetries int               `json:"max_retries"`          // blocked or failed so often, a step is escalated

	FromHour  int `json:"from_hour,omitempty"`  // of a day in the loop's time zone: it fires from then
	UntilHour int `json:"until_hour,omitempty"` // and before that; if both are the same, at any time
}

// Hours returns the hours between which the agent works; nil has none.
func (t *TaskLoop) Hours() (from, until int) {
	if t == nil || t.FromHour == t.UntilHour {
		return 0, 0
	}
	return t.FromHour, t.UntilHour
}

// WorksAt reports whether the agent works at an hour of its day, from 0 to 23. If it begins
// later than it ends, it works past midnight.
func (t *TaskLoop) WorksAt(hour int) bool {
	from, until := t.Hours()
	switch {
	case from == until:
		return true
	case from < until:
		return from <= hour && hour < until
	}
	return from <= hour || hour < until
}

// DefaultMaxRetries is MaxRetries without max_retries_per_step, and DefaultMaxAgents is
// MaxAgents without max_agents.
const (
	DefaultMaxRetries = 3
	DefaultMaxAgents  = 2
)

// AgentsGroup is the group of the agents of a workspace: their scopes may overlap.
const AgentsGroup = "agents"

// NeverFires reports whether the definition says that nothing fires the loop.
func (d Definition) NeverFires() bool { return d.Tasks != nil && !d.Tasks.Enabled }

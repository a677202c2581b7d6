package loop

import "time"

// Agent is an entry of the roster: who acts. The name of every driver is an entry
// too, with only that driver.
type Agent struct {
	ID       string   `json:"id,omitempty"` // empty for a driver's own entry
	Handle   string   `json:"handle"`       // without the @
	Role     string   `json:"role,omitempty"`
	Board    string   `json:"board,omitempty"`
	Skills   []string `json:"skills,omitempty"`
	Driver   string   `json:"driver"`
	Command  string   `json:"agent_command,omitempty"` // run by the shell
	Model    string   `json:"model,omitempty"`
	Provider string   `json:"provider,omitempty"`
	BaseURL  string   `json:"base_url,omitempty"`
	Auth     Auth     `json:"auth,omitempty"`

	MaxRuns        int64 `json:"max_runs,omitempty"`         // at once, of all loops and nodes; 0: any number
	AccountMaxRuns int64 `json:"account_max_runs,omitempty"` // at once with its account, whoever acts; 0: any number

	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// Auth is how an agent gets at its model.
type Auth string

// The ways. The zero Auth is the first of them for which the machine has a
// credential.
const (
	// AuthInject keeps the key outside the sandbox: it is added to requests on their
	// way, and every token is metered.
	AuthInject Auth = "inject"
	// AuthLend puts a subscription's login where the program looks for it. The
	// program can read it, and reports its own usage.
	AuthLend Auth = "lend"
)

// Session is a conversation that a later turn can continue.
type Session struct {
	ID     string       `json:"id"`
	Totals []ModelUsage `json:"totals,omitempty"` // the program's own counters at its end, since the session began
	Turns  int          `json:"turns"`
}

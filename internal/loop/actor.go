package loop

// Role is the kind of actor that asks for a change.
type Role string

// The roles. The zero Role is unknown.
const (
	RoleHuman   Role = "human"
	RoleAgent   Role = "agent"
	RoleTrigger Role = "trigger" // a schedule or an event, set up by a human before
	RoleViewer  Role = "viewer"  // it changes nothing
)

// Actor is who asked for a change. It is kept in the audit chain with what was
// changed. The zero Actor is unknown.
type Actor struct {
	Who  string `json:"who"`
	Role Role   `json:"role"`
	From string `json:"from"` // the surface: cli, api, mcp, …

	Run   string `json:"run,omitempty"`   // id of the run whose agent it is; empty: it acts outside of runs
	Depth int    `json:"depth,omitempty"` // of the loop of that run

	Grant *Grant `json:"-"` // nil: its role alone decides
}

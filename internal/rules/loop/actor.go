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

// Recorded is the role as it is recorded with a text that somebody with the role wrote:
// nothing for a person. Of the zero Role it is RoleTrigger, which is no person either.
func (r Role) Recorded() Role {
	switch r {
	case RoleHuman:
		return ""
	case "":
		return RoleTrigger
	case RoleAgent, RoleTrigger, RoleViewer:
	}
	return r
}

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

// IsPerson reports whether a person asked. Nobody else registers a workspace, or reaches one
// that is not registered.
func (a Actor) IsPerson() bool { return a.Role == RoleHuman }

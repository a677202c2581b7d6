package format

import (
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// LoopRequest describes a new loop. Only Name is required. Empty fields are filled
// from the pattern of the catalogue. A pattern that is not in it, like custom, leaves
// placeholders, with which no loop runs.
type LoopRequest struct {
	Name    string    // lower-case words and digits, joined by single hyphens
	Pattern string    // empty: custom
	Tier    loop.Tier // empty: L1
	Cadence string    // an interval in m, h or d, or five cron fields; empty: 1h
	Now     time.Time // written to STATE.md

	Goal, Escalation    string
	Scope               []string
	Verify, Guard       string // commands; below L2 comments
	Setup               string // command; empty: every run detects it again
	SetupFound          string // the detected command, for a comment; ignored if Setup is set
	LandVia             string // empty: human; below L2 a comment
	Sense               string // command, or loop.SenseGates; empty: the pattern's
	Agent, AgentCommand string // empty: a comment says how to name one
	Env                 []string
}

// NewFile is one file of a new loop's folder.
type NewFile struct {
	Name string
	Body []byte
}

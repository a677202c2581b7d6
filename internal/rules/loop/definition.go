package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Definition is the immutable form of a loop's configuration. A run pins its
// Digest and is judged by nothing else.
//
// The zero value of an optional field means that the key was absent; the
// methods below give the default that then applies.
type Definition struct {
	Name           string      `json:"name"`
	Protocol       string      `json:"protocol"`
	Pattern        string      `json:"pattern,omitempty"`
	Tier           Tier        `json:"tier"`
	Cadence        string      `json:"cadence,omitempty"`
	Goal           string      `json:"goal"`
	GoalBy         Role        `json:"goal_by,omitempty"` // who wrote the goal, if it was no person; see GoalAuthor
	Scope          []string    `json:"scope,omitempty"`
	Protect        []string    `json:"protect,omitempty"`
	AllowExec      bool        `json:"allow_exec,omitempty"` // files may become executable
	AnyNames       bool        `json:"any_names,omitempty"`  // new files may have names that Windows cannot hold
	Verify         string      `json:"verify,omitempty"`
	Guard          string      `json:"guard,omitempty"`
	Flaky          string      `json:"flaky,omitempty"`      // "2 of 3": so many tries of a gate must pass; empty: one try
	Spec           string      `json:"spec,omitempty"`       // the LoopSpec that it was made from, JSON; empty: it was made from something else
	Gates          []Gate      `json:"gates,omitempty"`      // beside Verify and Guard, which are the short form of two of them
	Canary         bool        `json:"canary,omitempty"`     // what the agent does is a trial of the gates, which no model made
	Rubric         []string    `json:"rubric,omitempty"`     // criteria of all reviewers; empty: each has the check of its gate
	Claims         []string    `json:"claims,omitempty"`     // what agents say that reviewers missed
	LoopType       Determinism `json:"loop_type,omitempty"`  // empty: all gates together decide
	Denies         []Denial    `json:"denies,omitempty"`     // nobody is asked about these
	HumanGate      HumanGate   `json:"human_gate,omitempty"` // empty: HumanGatePropose
	Sense          string      `json:"sense,omitempty"`
	PermissionMode string      `json:"permission_mode,omitempty"`
	Escalation     string      `json:"escalation,omitempty"`
	KillSwitch     string      `json:"kill_switch,omitempty"`
	LandVia        string      `json:"land_via,omitempty"`
	Autoland       []string    `json:"autoland,omitempty"`     // classes that land without a human, at L3
	Base           string      `json:"base,omitempty"`         // branch; empty: the one checked out
	Instructions   []string    `json:"instructions,omitempty"` // globs of files of the base that the agent is given, or none alone; empty: those along Scope

	Agent        string    `json:"agent,omitempty"`
	AgentCommand string    `json:"agent_command,omitempty"` // run by the shell
	Model        string    `json:"model,omitempty"`
	Effort       string    `json:"effort,omitempty"`     // of the model's reasoning; empty: the driver's own
	MCP          []string  `json:"mcp,omitempty"`        // servers, NAME=COMMAND or NAME=URL
	PawlTools    PawlTools `json:"pawl_tools,omitempty"` // pawl's own tools, inside of the run; empty: none
	Provider     string    `json:"provider,omitempty"`   // who serves the model; empty: the driver's own
	BaseURL      string    `json:"base_url,omitempty"`   // where the meter forwards to; empty: the provider's
	Auth         Auth      `json:"auth,omitempty"`       // empty: detected
	Resume       bool      `json:"resume,omitempty"`     // runs continue one conversation

	BudgetUSDDay    int64         `json:"budget_usd_day,omitempty"`    // millionths of a US dollar
	BudgetTokensDay int64         `json:"budget_tokens_day,omitempty"` // input, cache writes and output
	BudgetTokens    int64         `json:"budget_tokens,omitempty"`     // output tokens of one run
	MaxIterations   int           `json:"max_iterations,omitempty"`
	MaxItems        int           `json:"max_items,omitempty"`
	MaxStepTimeout  time.Duration `json:"max_step_timeout,omitempty"`
	MaxWallClock    time.Duration `json:"max_wall_clock,omitempty"`
	MaxDisk         int64         `json:"max_disk,omitempty"` // bytes of disk that the files of one run may use; 0: DefaultMaxDisk, also after WithDefaults

	Life              *Life        `json:"life,omitempty"` // what a step may use in all runs together; nil: each run has its own limits alone
	GiveUpAfter       int          `json:"give_up_after,omitempty"`
	GiveUp            []GiveUpRule `json:"give_up,omitempty"` // instead of GiveUpAfter
	OnBlocked         string       `json:"on_blocked,omitempty"`
	OnFailure         string       `json:"on_failure,omitempty"`
	Asks              bool         `json:"asks,omitempty"`                // a step that is handed over or given up is a question to a person, which a yes with a note answers
	RetryBlockedAfter int          `json:"retry_blocked_after,omitempty"` // runs of the loop
	ErrorPolicy       *ErrorPolicy `json:"error_policy,omitempty"`        // of errors that are not the work's; nil: that of the class of error

	StopLines   []string `json:"stop_lines,omitempty"`   // conditions like errors >= 5 at which a run halts
	CommitState bool     `json:"commit_state,omitempty"` // the files of the memory become a commit when a run has written them

	Timezone      string        `json:"timezone,omitempty"`       // of a cron cadence; empty: UTC, also after WithDefaults
	CatchUp       CatchUp       `json:"catch_up,omitempty"`       // empty: CatchUpOne, also after WithDefaults
	StartDeadline time.Duration `json:"start_deadline,omitempty"` // a firing that is later than this is skipped; 0: none is too late
	Jitter        time.Duration `json:"jitter,omitempty"`         // a firing is put off by less than this, whole seconds

	On []string `json:"on,omitempty"` // events that fire the loop, each an EventSource

	Priority   int      `json:"priority,omitempty"`    // among loops that may touch the same; the higher one goes first; 0: the pattern's
	DeferBound int      `json:"defer_bound,omitempty"` // after so many deferrals in a row the loop goes first; 0: DefaultDeferBound, also after WithDefaults
	NodeLabels []string `json:"node_labels,omitempty"` // that a node must have to execute runs; empty: any node
	Group      string   `json:"group,omitempty"`       // loops of one group do not exclude each other; set by protocols whose loops share their work

	Sandbox string   `json:"sandbox,omitempty"`
	History string   `json:"history,omitempty"` // commits that agent and gates may read; empty: the base and all before it
	Env     []string `json:"env,omitempty"`     // names of variables that agent and gates may see
	Setup   string   `json:"setup,omitempty"`   // command that prepares dependencies; "none": no command; empty: detected
	Network []string `json:"network,omitempty"` // hosts that may be reached, HOST[:PORT] or *.HOST

	Capabilities [][]string `json:"capabilities,omitempty"` // first words of commands that pawl runs for the agent without a question, beside those for all

	ModelTools []ModelTool `json:"model_tools,omitempty"` // tools of the model's vendor that requests may ask for; empty: none

	Tasks *TaskLoop `json:"tasks,omitempty"` // of an agent of protocol tasks; nil for all others
}

// SenseGates as Sense runs the gates on the base. If they pass, and nothing else is
// asked for, there is nothing to do.
const SenseGates = "gates"

// GoalAuthor is the role of who wrote the goal: a person, if nobody else is recorded.
func (d Definition) GoalAuthor() Role { return orDefault(d.GoalBy, RoleHuman) }

// SenseCommand returns the command that looks for work; empty if missing.
func (d Definition) SenseCommand() string {
	if d.Sense == SenseGates {
		return ""
	}
	return d.Sense
}

// HistoryNone as History shows programs only the base commit, not those before it.
const HistoryNone = "none"

// Defaults of the optional keys.
const (
	DefaultStepTimeout       = 10 * time.Minute
	DefaultWallClock         = 45 * time.Minute
	DefaultGiveUpAfter       = 3
	DefaultRetryBlockedAfter = 3
	DefaultMaxItems          = 1
	DefaultMaxDisk           = 8 << 30
	DefaultDeferBound        = 5
)

// DiskLimit returns how many bytes of disk the files of one run may use.
func (d Definition) DiskLimit() int64 { return orDefault(d.MaxDisk, DefaultMaxDisk) }

// WithDefaults returns d with every absent limit and policy filled in. This form is
// recorded, digested and run.
func (d Definition) WithDefaults() Definition {
	if d.Protocol == "" {
		d.Protocol = ProtocolSpine
	}
	if d.MaxIterations == 0 {
		d.MaxIterations = 3
		if d.Tier == TierReport || d.Protocol == ProtocolTasks {
			d.MaxIterations = 1
		}
	}
	d.MaxItems = orDefault(d.MaxItems, DefaultMaxItems)
	d.MaxStepTimeout = orDefault(d.MaxStepTimeout, DefaultStepTimeout)
	d.MaxWallClock = orDefault(d.MaxWallClock, DefaultWallClock)
	if d.MaxDisk == DefaultMaxDisk {
		d.MaxDisk = 0 // Definitions from before the key keep their digest.
	}
	if d.DeferBound == DefaultDeferBound {
		d.DeferBound = 0 // The same.
	}
	if d.Timezone == "UTC" {
		d.Timezone = ""
	}
	if d.CatchUp == CatchUpOne {
		d.CatchUp = ""
	}
	d.GiveUpAfter = orDefault(d.GiveUpAfter, DefaultGiveUpAfter)
	d.RetryBlockedAfter = orDefault(d.RetryBlockedAfter, DefaultRetryBlockedAfter)
	d.Sandbox = orDefault(d.Sandbox, "full")
	d.OnBlocked = orDefault(d.OnBlocked, "log_and_skip")
	d.OnFailure = orDefault(d.OnFailure, "log_skip_continue")
	return d
}

// Digest is the SHA-256 of the definition's canonical JSON, in hex. Two
// definitions with one digest run alike.
func (d Definition) Digest() string {
	body, err := json.Marshal(d)
	if err != nil {
		// A Definition holds nothing that JSON cannot write.
		panic("loop: definition does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

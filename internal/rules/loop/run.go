package loop

import (
	"fmt"
	"time"
)

// Run is one firing of a loop, from trigger to outcome. A run never waits: one
// that needs a human ends, and the answer triggers a new run.
type Run struct {
	ID         string    `json:"id"`
	LoopID     string    `json:"loop_id"`
	N          int64     `json:"n"`             // numbered per loop, from 1, without gaps
	Seq        int64     `json:"seq,omitempty"` // order of firing among all runs of the store, with gaps
	Key        string    `json:"key"`           // loop + planned time or event id, unique
	Trigger    string    `json:"trigger"`
	Event      string    `json:"event,omitempty"`  // what triggered it; empty: a person or the time
	By         Actor     `json:"by,omitzero"`      // who asked for it
	Planned    time.Time `json:"planned,omitzero"` // when a trigger planned it for; zero: nobody planned it
	Request    string    `json:"request,omitempty"`
	State      RunState  `json:"state"`
	Phase      Phase     `json:"phase"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Reason     Reason    `json:"reason,omitempty"`
	Detail     string    `json:"detail,omitempty"` // the reason in words, with names and numbers
	Summary    string    `json:"summary,omitempty"`
	Cause      Cause     `json:"cause,omitzero"`
	Definition string    `json:"definition"` // digest
	Overrides  Overrides `json:"overrides,omitzero"`
	BaseCommit string    `json:"base_commit,omitempty"`
	BaseTree   string    `json:"base_tree,omitempty"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Snapshot   string    `json:"snapshot,omitempty"` // ref under refs/pawl/snapshots, empty when none was taken
	Approval   string    `json:"approval,omitempty"`
	Sandbox    string    `json:"sandbox"`
	Readiness  int       `json:"readiness"`       // 0..100, the loop's self-assessment after this run
	Agent      string    `json:"agent,omitempty"` // of the roster; empty: nobody acted
	Auth       Auth      `json:"auth,omitempty"`  // how the agent reached its model; empty: by itself, unmetered
	Usage      Usage     `json:"usage,omitzero"`
	Cost       Cost      `json:"cost,omitzero"`
	Spent      Spent     `json:"spent,omitzero"`
	Holder     Holder    `json:"holder,omitzero"`
	Node       string    `json:"node,omitempty"` // id of the node that claimed it last; empty: none, or not known
	Owed       bool      `json:"owed,omitempty"` // another node ended it; its own still has to keep its work and write its files
	Fence      int64     `json:"fence"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	Cancel     string    `json:"cancel,omitempty"` // who asked the holder to stop, and why
	Lock       Lock      `json:"-"`                // that it is fired with; not read back with the run
	NodeLabels []string  `json:"-"`                // that a node must have to execute it; not read back with the run either
	DeferredTo Deferral  `json:"deferred_to,omitzero"`
	Created    time.Time `json:"created"`
	Started    time.Time `json:"started,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
}

// Overrides are the parts of a definition that one run replaced. They are
// recorded with the run, and the digest that the run pins includes them.
type Overrides struct {
	Agent         string `json:"agent,omitempty"`
	AgentCommand  string `json:"agent_command,omitempty"`
	Model         string `json:"model,omitempty"`
	MaxIterations int    `json:"max_iterations,omitempty"`
	Sandbox       string `json:"sandbox,omitempty"`

	Base string `json:"base,omitempty"` // commit to start from, instead of the tip of the base branch
	Step string `json:"step,omitempty"` // key of the only step that may be worked on, whatever became of it before
	Hint string `json:"hint,omitempty"` // what a person tells the agent; sensed first

	RequestBy Role `json:"request_by,omitempty"` // who wrote the request, if the run repeats an earlier one; empty: who asked for the run
}

// Requester is the role of who wrote the request; empty: it is not known.
func (r Run) Requester() Role {
	if r.Overrides.RequestBy != "" {
		return r.Overrides.RequestBy
	}
	return r.By.Role
}

// Apply returns d with the overrides in place. If the agent changes, the
// definition's program and model of the former agent are dropped.
func (o Overrides) Apply(d Definition) Definition {
	if o.Agent != "" && o.Agent != d.Agent {
		d.AgentCommand, d.Model, d.Provider, d.BaseURL, d.Auth = "", "", "", "", ""
	}
	d.Agent = orDefault(o.Agent, d.Agent)
	d.AgentCommand = orDefault(o.AgentCommand, d.AgentCommand)
	d.Model = orDefault(o.Model, d.Model)
	d.MaxIterations = orDefault(o.MaxIterations, d.MaxIterations)
	d.Sandbox = orDefault(o.Sandbox, d.Sandbox)
	return d
}

// Holder identifies the process that owns a run. A process id alone is not enough,
// because systems use it again.
type Holder struct {
	PID   int    `json:"pid,omitempty"`
	Start int64  `json:"start,omitempty"` // when the process started, in the platform's own unit
	Boot  string `json:"boot,omitempty"`  // boot of the host; empty where the platform has none
	Host  string `json:"host,omitempty"`  // host name
	Node  string `json:"node,omitempty"`  // id of the node; empty: the process has none
}

// String names the process for people. The zero Holder is nobody.
func (h Holder) String() string {
	switch {
	case h.PID == 0:
		return "no process"
	case h.Host == "":
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d on %s", h.PID, h.Host)
}

// HolderState is what this host knows of the process behind a Holder.
type HolderState int

const (
	// HolderElsewhere is a process of another host or of an earlier boot: only
	// its lease tells whether it still acts.
	HolderElsewhere HolderState = iota
	// HolderRunning is alive and keeps its run, however old its lease is.
	HolderRunning
	// HolderStopped was stopped by a signal and does nothing until it is
	// continued.
	HolderStopped
	// HolderDead will never act again.
	HolderDead
)

// Spent is the wall-clock time of a run, by use. Agent and Gates are lifetimes of
// processes; the rest of Total is overhead.
type Spent struct {
	Total time.Duration `json:"total"`
	Agent time.Duration `json:"agent"`
	Gates time.Duration `json:"gates"`
}

// Overhead is the time of the run that neither an agent nor a gate used.
func (s Spent) Overhead() time.Duration { return max(0, s.Total-s.Agent-s.Gates) }

// TriggerApproval is the Trigger of runs that carry out an answer.
const TriggerApproval = "approval"

// IsCycle reports whether a run that has ended counts as one of the loop's cycles: it was not
// paused, and did not carry out an answer.
func (r Run) IsCycle() bool { return r.Outcome != OutcomePaused && r.Trigger != TriggerApproval }

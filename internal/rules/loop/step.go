package loop

import "time"

// StepKind is work or reply; replies go first.
type StepKind string

// Kinds of steps.
const (
	StepWork  StepKind = "work"
	StepReply StepKind = "reply"
)

// Step is the durable unit of work: a STATE.md item, a task, a mention to
// answer, a pinned goal. It outlives the runs that work on it.
type Step struct {
	ID       string    `json:"id"`
	LoopID   string    `json:"loop_id"`
	Key      string    `json:"key"` // the protocol's identity of it, unique in the loop
	Kind     StepKind  `json:"kind"`
	Title    string    `json:"title"`        // one line
	By       Role      `json:"by,omitempty"` // who wrote what is to be done, if it was no person; see Author
	State    StepState `json:"state"`
	Attempts int       `json:"attempts"`       // iterations that worked on it
	Tokens   int64     `json:"tokens"`         // input, cache writes and output of all its turns
	Begun    time.Time `json:"begun,omitzero"` // when its first iteration began; put off by the time for which it waited for a human, or nothing was found to do

	Tried Tried `json:"tried,omitzero"`

	BlockedAt int64  `json:"blocked_at"`          // run number of the last block or failure, 0 for never
	WaitsFor  string `json:"waits_for,omitempty"` // approval id, or what the report says
	Snapshot  string `json:"snapshot,omitempty"`  // ref whose tree the next attempt starts from
	Feedback  string `json:"feedback,omitempty"`  // result of the last attempt, for the next one
	RunID     string `json:"run_id,omitempty"`    // the run that claims it

	// Inputs is the digest of the inputs of the last attempt. A step that is done or
	// escalated is worked on again when its inputs have changed. Without a digest, only
	// its protocol decides.
	Inputs string `json:"inputs,omitempty"`

	Updated time.Time `json:"updated"`
}

// Author is the role of who wrote what is to be done: a person, if nobody else is recorded.
func (s Step) Author() Role { return orDefault(s.By, RoleHuman) }

// WrittenBy returns the step with who wrote what is to be done.
func (s Step) WrittenBy(by Role) Step {
	s.By = by.Recorded()
	return s
}

// AsNew returns the step as if it were seen for the first time. An escalated step
// keeps its feedback, which says what had failed.
func (s Step) AsNew() Step {
	fresh := Step{ID: s.ID, LoopID: s.LoopID, Key: s.Key, Kind: s.Kind, Title: s.Title, By: s.By, State: StepOpen}
	if s.State == StepEscalated {
		fresh.Feedback = s.Feedback
	}
	return fresh
}

// Retried returns the step as AsNew does, with what its attempts have used: the budget of its
// life goes on.
func (s Step) Retried() Step {
	again := s.AsNew()
	again.Attempts, again.Tokens, again.Begun = s.Attempts, s.Tokens, s.Begun
	return again
}

// Iteration is one step worked once. The five texts are the trace that users
// see; each holds what really happened.
type Iteration struct {
	RunID      string        `json:"run_id"`
	N          int           `json:"n"`
	StepID     string        `json:"step_id"`
	Step       string        `json:"step"` // title
	Sensed     string        `json:"sensed"`
	Decided    string        `json:"decided"`
	Acted      string        `json:"acted"`
	Feedback   string        `json:"feedback"`
	Verdict    Verdict       `json:"verdict"`
	Reason     Reason        `json:"reason,omitempty"`
	Gates      []GateResult  `json:"gates"`
	Inputs     string        `json:"inputs,omitempty"` // digest of what the result depends on, without base and definition, which the run has
	Considered []Considered  `json:"considered"`       // each candidate with the rule that chose or dropped it
	Tree       string        `json:"tree,omitempty"`
	Candidate  string        `json:"candidate,omitempty"` // commit of Tree on the run's base, on no branch
	Changed    []string      `json:"changed,omitempty"`   // paths
	Report     string        `json:"report,omitempty"`    // the agent's report as it wrote it, JSON
	Words      string        `json:"words,omitempty"`     // the answer, where only that counts; or without a report at L1 the agent's last words, and what was sensed
	Usage      Usage         `json:"usage,omitzero"`
	Agent      time.Duration `json:"agent"`
	Started    time.Time     `json:"started,omitzero"`
	Ended      time.Time     `json:"ended,omitzero"`
}

// Beginnings of the parts of an iteration's Words.
const (
	WordsMark  = "no report; the agent's last words, which nobody has checked:"
	SensedMark = "sensed:"
)

// Verdict is the runtime's judgement of an iteration.
type Verdict string

// Verdicts. Intended means that the iteration has not been judged (yet).
const (
	VerdictIntended Verdict = "intended"
	VerdictPass     Verdict = "pass"
	VerdictFail     Verdict = "fail"
	VerdictPending  Verdict = "pending" // a human decides
)

// GateResult is what one gate or guard said about one tree.
type GateResult struct {
	Name     string        `json:"name"`
	Kind     GateKind      `json:"kind"`
	Pass     bool          `json:"pass"`
	Exit     int           `json:"exit"`
	Evidence string        `json:"evidence"` // bounded tail of what it printed
	Took     time.Duration `json:"took"`

	Tests   *TestCounts `json:"tests,omitempty"`   // the tests that its output reports; nil if none could be counted
	Base    *TestCounts `json:"base,omitempty"`    // the same gate on the base, where it was counted
	Note    string      `json:"note,omitempty"`    // why only the exit status counted, or why it failed in spite of it
	Pending bool        `json:"pending,omitempty"` // it found nothing out: a human decides, and Note says why
	Known   bool        `json:"known,omitempty"`   // the result is that of an earlier run of the gate on the same tree
	Tries   []Try       `json:"tries,omitempty"`   // every try, if the definition allows more than one

	// Names are the tests behind Tests, where the output names them. They are
	// compared with those of the base and are not kept with the run.
	Names TestNames `json:"-"`
}

// TestCounts is how many tests a gate's output reports. The code under test writes to
// the same stream as its test runner, so a report is evidence and not proof.
type TestCounts struct {
	Format  string `json:"format"` // go, junit, tap, node, pytest, unittest, cargo
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// Ran returns how many tests ran, without the skipped ones.
func (c TestCounts) Ran() int { return c.Passed + c.Failed }

// TestNames are the tests of a gate by name. The zero value names none.
type TestNames struct {
	// Ran are the tests that passed or failed: sorted, each once, after their format,
	// such as "go example.com/x.TestOne". It is empty if the output does not name
	// every test that it counts.
	Ran []string `json:"ran"`

	// Failed are those that failed, as far as the output names them.
	Failed []string `json:"failed,omitempty"`

	// Broken are the Go packages that failed. Their output may not name all of
	// their tests.
	Broken []string `json:"broken,omitempty"`
}

// TestRecord is the result of a gate on one tree, kept for later runs.
type TestRecord struct {
	TestCounts
	Names  *TestNames  `json:"names"` // nil in records of versions that kept counts only
	Result *GateResult `json:"result,omitempty"`
}

// Try is one try of a gate that the definition calls flaky.
type Try struct {
	Pass bool          `json:"pass"`
	Exit int           `json:"exit"`
	Took time.Duration `json:"took"`
}

// Considered says why a candidate step was chosen or dropped.
type Considered struct {
	Step   string `json:"step"` // title
	Key    string `json:"key"`
	Chosen bool   `json:"chosen"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// Purposes of turns.
const (
	PurposeAct      = "act"      // works on a step
	PurposeReply    = "reply"    // answers
	PurposeReview   = "review"   // judges what another agent did
	PurposeGenerate = "generate" // writes a document that its run is for
)

// Turn is one invocation of an agent, with a purpose.
type Turn struct {
	RunID     string        `json:"run_id"`
	N         int           `json:"n"`
	Iteration int           `json:"iteration"`
	Purpose   string        `json:"purpose"` // act reply review plan generate
	Agent     string        `json:"agent"`
	Driver    string        `json:"driver"`
	Model     string        `json:"model,omitempty"`
	Exit      int           `json:"exit"`
	Ended     string        `json:"ended"` // exit, timeout, killed, canceled, not_started
	Auth      Auth          `json:"auth,omitempty"`
	Usage     Usage         `json:"usage,omitzero"`
	Models    []ModelUsage  `json:"models,omitempty"` // Usage by model, where it is known
	Cost      Cost          `json:"cost,omitzero"`
	Failure   *Failure      `json:"failure,omitempty"`
	Session   string        `json:"session,omitempty"`
	Took      time.Duration `json:"took"`
	Started   time.Time     `json:"started"`
}

package loop

// Reason is a stable code that says why something was chosen, dropped or ended.
// Scripts match on codes; people read the detail beside them.
type Reason string

// Reasons why decide chose or dropped a candidate.
const (
	ReasonChosen        Reason = "chosen"
	ReasonOutranked     Reason = "outranked"       // an earlier candidate was taken
	ReasonStepDone      Reason = "step_done"       //
	ReasonStepWaiting   Reason = "step_waiting"    // a human has not answered yet
	ReasonStepEscalated Reason = "step_escalated"  // a human has it
	ReasonStepBackoff   Reason = "blocked_until"   // blocked or failed, waiting time not over
	ReasonStepClaimed   Reason = "claimed"         // another run works on it
	ReasonNotEligible   Reason = "not_eligible"    // the protocol's own rule; see the detail
	ReasonSensedNothing Reason = "sensed_nothing"  // the sense command said that there is nothing to do
	ReasonUnchanged     Reason = "unchanged"       // it needed no change, and its inputs are still the same
	ReasonPullRequest   Reason = "pull_request"    // its pull request is open, or it is unknown whether it still is
	ReasonLandingWaits  Reason = "landing_waits"   // a human said yes, it has not landed, and a later run tries again
	ReasonLandingRests  Reason = "landing_rests"   // likewise, and it was tried so often that a human has to ask for it
	ReasonRejected      Reason = "rejected"        // its proposal was rejected, and its inputs are still the same
	ReasonMerged        Reason = "merged"          // its pull request was merged, and the base does not have the merge yet
	ReasonTriedThisRun  Reason = "tried_this_run"  // settled earlier in this run
	ReasonNoCandidates  Reason = "no_candidates"   // the memory holds nothing to do
	ReasonAllDropped    Reason = "all_dropped"     // every candidate was dropped; each says why
	ReasonMaxItems      Reason = "max_items"       //
	ReasonMaxIterations Reason = "max_iterations"  //
	ReasonWallClock     Reason = "max_wall_clock"  //
	ReasonBudgetTokens  Reason = "budget_tokens"   // output tokens of the run are used up
	ReasonBudget        Reason = "budget"          // a window has nothing left to reserve
	ReasonPriceUnknown  Reason = "price_unknown"   // money has a cap, and the model has no price and is of no known family
	ReasonCoolOff       Reason = "cool_off"        // the agent's program failed several times in a row
	ReasonAgentBusy     Reason = "agent_busy"      // the agent has as many live runs as it may have
	ReasonAccountBusy   Reason = "account_busy"    // so has the account that it acts with
	ReasonLifeBudget    Reason = "life_budget"     // the budget of a spec's whole life is used up
	ReasonGiveUp        Reason = "same_gate_fails" // too often in a row
	ReasonSameTest      Reason = "same_test_fails" // likewise
	ReasonOscillates    Reason = "oscillates"      // attempts come back to trees that failed before
	ReasonNoFindings    Reason = "no_new_findings" // reports in a row had none
	ReasonDisabled      Reason = "disabled"        // the definition says that the loop never fires
)

// Reasons why an iteration or a run ended as it did.
const (
	ReasonGatesPass       Reason = "gates_pass"
	ReasonNoGate          Reason = "no_gate"
	ReasonUndecided       Reason = "undecided" // no gate failed, and those that ran do not decide: a human does
	ReasonGateFailed      Reason = "gate_failed"
	ReasonGuardFailed     Reason = "guard_failed"
	ReasonGateStart       Reason = "gate_cannot_start" // on the base, before a turn
	ReasonNoChanges       Reason = "no_changes"        // the report says done but not no_change, and nothing changed
	ReasonReportedOnly    Reason = "reported_only"
	ReasonReplied         Reason = "replied"
	ReasonAgentQuiet      Reason = "agent_found_nothing"
	ReasonAgentBlocked    Reason = "agent_blocked"
	ReasonAgentFailed     Reason = "agent_failed"
	ReasonAgentEscalated  Reason = "agent_escalated"
	ReasonContinues       Reason = "agent_continues" // it takes another turn when its commands have run
	ReasonCommandFailed   Reason = "command_failed"  // a command of the agent's did not end as it expected
	ReasonCommandRefused  Reason = "command_refused" // one is not allowed
	ReasonAgentExit       Reason = "agent_exit"
	ReasonAgentTimeout    Reason = "agent_timeout"
	ReasonLimit           Reason = "limit"    // a program ran into one of processes, memory, output or file size
	ReasonDisk            Reason = "max_disk" // the files of a run took up more of the disk than it may have
	ReasonAgentMissing    Reason = "agent_missing"
	ReasonReportMalformed Reason = "report_malformed"
	ReasonSenseFailed     Reason = "sense_failed"
	ReasonSetupFailed     Reason = "setup_failed" // the dependencies of a tree could not be prepared
	ReasonUnfilled        Reason = "unfilled"     // submodules or files of git LFS are not in the clone
	ReasonScope           Reason = "scope"
	ReasonApproval        Reason = "approval_asked"
	ReasonKillSwitch      Reason = "kill_switch"
	ReasonStopped         Reason = "stopped"
	ReasonCanceled        Reason = "canceled" // the process was asked to end (Ctrl-C, TERM)
	ReasonHolderDied      Reason = "holder_died"
	ReasonNodeLost        Reason = "node_lost"       // its node does not answer; another one ended it
	ReasonTakenOver       Reason = "taken_over"      // from a process that did not extend its lease and may still live
	ReasonStoodStill      Reason = "stood_still"     // pawl was stopped, or the machine, for longer than its lease lasts
	ReasonStoreAway       Reason = "store_away"      // the store did not answer for so long that the lease could have lapsed
	ReasonMemory          Reason = "memory_unusable" // the protocol could not open its files
	ReasonInternal        Reason = "internal_error"
	ReasonEffectFailed    Reason = "effect_failed"
	ReasonApproved        Reason = "approved"        // a human said yes
	ReasonLanding         Reason = "landing_refused" // the checkout or the branch does not allow it now
	ReasonConflict        Reason = "conflict"        // the base moved, and the change does not fit on it
	ReasonGitConfig       Reason = "git_config"      // what git would execute changed since the workspace was registered
	ReasonSecret          Reason = "secret"          // the candidate holds one
	ReasonNoChange        Reason = "no_change"       // the report declared that nothing had to change
)

// Reasons of arbitration among runs that may touch the same.
const (
	ReasonLockFree    Reason = "lock_free"    // nothing is in the way
	ReasonLockNone    Reason = "lock_none"    // a run that may change nothing takes no lock
	ReasonLockHigher  Reason = "lock_higher"  // a live run has the lock, and the one that asks does not rank above it
	ReasonLockHeld    Reason = "lock_held"    // a live run has the lock; whoever asks goes next
	ReasonLockDue     Reason = "lock_due"     // a run that ranks above is due
	ReasonLockGroup   Reason = "lock_group"   // as many runs of its group are live as may be at once
	ReasonLockOverdue Reason = "lock_overdue" // a run that has waited or deferred too often is due
)

// Reasons of the boot protocol: each row of its tables of failures has one.
const (
	ReasonLinkMissing    Reason = "link_missing"    // AGENT_LINK.md
	ReasonLinkMalformed  Reason = "link_malformed"  //
	ReasonLinkNoBoot     Reason = "link_no_boot"    // no repository or no reference
	ReasonLinkNoVersion  Reason = "link_no_version" //
	ReasonLinkOlder      Reason = "link_older"      // the older form, which has no version
	ReasonLinkContract   Reason = "link_contract"   // a companion contract is asked for, which pawl does not read
	ReasonBootAway       Reason = "boot_away"       // the repository or the reference is not to be had
	ReasonBootIncomplete Reason = "boot_incomplete" // VERSION.json, the rules or a schema is missing
	ReasonBootMoved      Reason = "boot_moved"      // its rules or stop lines have changed since the last session
	ReasonBootMalformed  Reason = "boot_malformed"  // VERSION.json or the stop lines cannot be read
	ReasonBootSchema     Reason = "boot_schema"     // a schema is not one of the draft 07

	ReasonVersionEqual    Reason = "version_equal"
	ReasonVersionPatch    Reason = "version_patch"    // only the patch differs
	ReasonVersionBehind   Reason = "version_behind"   // a lower minor is expected: compatible, with a warning
	ReasonVersionAhead    Reason = "version_ahead"    // a higher minor is expected
	ReasonVersionMajor    Reason = "version_major"    //
	ReasonVersionUnlisted Reason = "version_unlisted" // not in compatibleWorkspaces

	ReasonStateFirstRun   Reason = "state_first_run"  // from the template
	ReasonStateLost       Reason = "state_lost"       // missing, and a commit had it
	ReasonStateCommit     Reason = "state_commit"     // invalid JSON, restored from a commit
	ReasonStateStash      Reason = "state_stash"      // … from a stash
	ReasonStateChangelog  Reason = "state_changelog"  // … rebuilt from the changelog
	ReasonStateTemplate   Reason = "state_template"   // … from the template, the last resort
	ReasonStateDefault    Reason = "state_default"    // a required field was missing
	ReasonStateManual     Reason = "state_manual"     // a wrong type or value, which a person has to mend
	ReasonStateOlder      Reason = "state_older"      // of 0.9, or with other field names
	ReasonTodoTemplate    Reason = "todo_template"    // it was missing
	ReasonTodoMinimal     Reason = "todo_minimal"     // invalid JSON
	ReasonTodoPriority    Reason = "todo_priority"    // a task had none
	ReasonTodoStatus      Reason = "todo_status"      // wip or complete
	ReasonTodoStructural  Reason = "todo_structural"  // another shape, whose meaning is plain
	ReasonTodoOlder       Reason = "todo_older"       // other field names
	ReasonTodoDuplicate   Reason = "todo_duplicate"   // two tasks with one id
	ReasonTodoOrphan      Reason = "todo_orphan"      // a dependency on a task that is not there
	ReasonTodoCycle       Reason = "todo_cycle"       // tasks that depend on each other
	ReasonChangelogNew    Reason = "changelog_new"    // it was missing
	ReasonChangelogUnread Reason = "changelog_unread" // it could not be read

	ReasonPlanRequest      Reason = "plan_request"       // what the user asks for
	ReasonPlanIntent       Reason = "plan_intent"        // what the last session left to do
	ReasonPlanUnfinished   Reason = "plan_unfinished"    // what an earlier session has begun
	ReasonPlanPriority     Reason = "plan_priority"      // the highest priority
	ReasonPlanNothing      Reason = "plan_nothing"       // nothing to do: the user is asked
	ReasonConflictRequest  Reason = "conflict_request"   // the request names a task that is blocked or done
	ReasonConflictIntent   Reason = "conflict_intent"    // the next intent cannot be worked on, and a critical task can
	ReasonConflictProgress Reason = "conflict_progress"  // two tasks are in progress
	ReasonStopLine         Reason = "stop_line"          // a critical one
	ReasonStopLineWarning  Reason = "stop_line_warning"  //
	ReasonMergeInvalid     Reason = "boot_merge_invalid" // two states that do not fit together
)

// Reasons why somebody else is told about an agent's work.
const (
	ReasonEscalateRepeated Reason = "escalate_repeated"    // a step was blocked or failed too often
	ReasonEscalateCritical Reason = "escalate_critical"    // a critical step is blocked, or failed
	ReasonEscalateBlocked  Reason = "escalate_all_blocked" //
	ReasonEscalateCycles   Reason = "escalate_cycles"      // too many cycles in a row failed
	ReasonEscalateIdle     Reason = "escalate_idle"        // too many cycles in a row had nothing to do
	ReasonEscalateInbox    Reason = "escalate_inbox"       // too many entries wait
)

// Reasons of boards.
const (
	ReasonNotOnBoard  Reason = "not_on_board"  // the agent does not work on the task's board
	ReasonNotWaiting  Reason = "not_waiting"   // the task is in a column from which nobody takes one
	ReasonAssigned    Reason = "assigned"      // to another agent
	ReasonOrdered     Reason = "ordered"       // another agent was ordered to do it
	ReasonDormant     Reason = "dormant"       // the agent has no heartbeats
	ReasonQuestion    Reason = "question_open" // about the task, without an answer
	ReasonParent      Reason = "parent_open"   // a task that has to be done before is not
	ReasonAgentTask   Reason = "agent_task"    // the agent works on another task
	ReasonColumnFull  Reason = "column_full"   // as many tasks are in progress as may be
	ReasonNotReady    Reason = "not_ready"     // the task lacks what the agent needs to know
	ReasonNotAgent    Reason = "not_agent"     // a message from or to nobody else who is known
	ReasonOrderUp     Reason = "order_up"      // an order to somebody who is not below
	ReasonReportDown  Reason = "report_down"   // a report to somebody who is not above
	ReasonChainDepth  Reason = "chain_depth"   // answers to answers
	ReasonChainRate   Reason = "chain_rate"    // too much between two agents on one topic
	ReasonNothingNew  Reason = "nothing_new"   // an answer to an answer
	ReasonSameComment Reason = "same_comment"  // as its author's last one
)

// FetchMark precedes, in the detail beside ReasonUnfilled, the command line of Cause.Fetch.
const FetchMark = "; fetch them in the checkout: "

// GitChanged begins the detail beside ReasonGitConfig if the cause is a GitChange.
const GitChanged = "the repository's git configuration changed since it was registered"

// sentences explains each reason to people.
var sentences = map[Reason]string{
	ReasonChosen:           "chosen",
	ReasonOutranked:        "another one comes first",
	ReasonStepDone:         "it is done",
	ReasonStepWaiting:      "it waits for an answer",
	ReasonStepEscalated:    "it was handed to a person",
	ReasonStepBackoff:      "it failed or was blocked, and is tried again later",
	ReasonStepClaimed:      "another run works on it",
	ReasonDisabled:         "the loop is disabled",
	ReasonNotEligible:      "it cannot be worked on now",
	ReasonSensedNothing:    "there is nothing to do",
	ReasonUnchanged:        "it needed no change, and nothing has changed since",
	ReasonPullRequest:      "it waits for its pull request",
	ReasonLandingWaits:     "a person said yes to its proposal, and a later run tries once more to land it",
	ReasonLandingRests:     "a person said yes to its proposal, and it did not land; it rests until a person asks for it",
	ReasonRejected:         "its proposal was rejected, and nothing has changed since",
	ReasonMerged:           "its pull request was merged, and the base does not have it yet",
	ReasonTriedThisRun:     "this run has dealt with it",
	ReasonNoCandidates:     "there is nothing to work on",
	ReasonAllDropped:       "nothing can be worked on now",
	ReasonMaxItems:         "the limit of items is reached",
	ReasonMaxIterations:    "the limit of iterations is reached",
	ReasonWallClock:        "the time of the run is over",
	ReasonBudgetTokens:     "the tokens of the run are used up",
	ReasonBudget:           "the budget is used up",
	ReasonPriceUnknown:     "the budget has a cap in money, and the model has no price",
	ReasonEscalateRepeated: "a step was blocked or failed too often in a row",
	ReasonEscalateCritical: "a critical step is blocked or failed",
	ReasonEscalateBlocked:  "all steps are blocked",
	ReasonEscalateCycles:   "too many cycles in a row failed",
	ReasonEscalateIdle:     "too many cycles in a row had nothing to do",
	ReasonEscalateInbox:    "too many entries wait in the inbox",
	ReasonNotOnBoard:       "the agent does not work on this board",
	ReasonNotWaiting:       "it is in a column from which nobody takes a task",
	ReasonAssigned:         "it is assigned to another agent",
	ReasonOrdered:          "another agent was ordered to do it",
	ReasonDormant:          "the agent is dormant",
	ReasonQuestion:         "a question about it has no answer yet",
	ReasonParent:           "another task has to be done before",
	ReasonAgentTask:        "the agent works on another task",
	ReasonColumnFull:       "as many tasks are in progress as may be",
	ReasonNotReady:         "it lacks what an agent needs to know",
	ReasonNotAgent:         "nobody else who is known is meant",
	ReasonOrderUp:          "an order goes down only",
	ReasonReportDown:       "a report goes up only",
	ReasonChainDepth:       "the chain of answers is too deep",
	ReasonChainRate:        "too much was said between two agents on one topic",
	ReasonNothingNew:       "it says nothing new",
	ReasonSameComment:      "it says what its author's last comment says",
	ReasonCoolOff:          "the agent failed several times in a row",
	ReasonAgentBusy:        "the agent has as many runs at once as it may",
	ReasonAccountBusy:      "the account has as many runs at once as it may",
	ReasonLifeBudget:       "the budget of its whole life is used up",
	ReasonGiveUp:           "the same gate failed too often",
	ReasonSameTest:         "the same test failed too often",
	ReasonOscillates:       "it goes back and forth between trees that fail",
	ReasonNoFindings:       "nothing new was found for too long",
	ReasonGatesPass:        "all gates pass",
	ReasonNoGate:           "there is no gate",
	ReasonUndecided:        "the gates did not decide",
	ReasonGateFailed:       "a gate failed",
	ReasonGuardFailed:      "the guard failed",
	ReasonGateStart:        "a gate cannot start",
	ReasonNoChanges:        "nothing changed",
	ReasonReportedOnly:     "what it found is written down",
	ReasonReplied:          "answered",
	ReasonAgentQuiet:       "the agent found nothing to do",
	ReasonAgentBlocked:     "the agent is blocked",
	ReasonAgentFailed:      "the agent gave up",
	ReasonAgentEscalated:   "the agent asks for a person",
	ReasonContinues:        "the agent goes on with what its commands said",
	ReasonCommandFailed:    "a command did not end as the agent expected",
	ReasonCommandRefused:   "a command of the agent's is not allowed",
	ReasonAgentExit:        "the agent's program failed",
	ReasonAgentTimeout:     "the agent took too long",
	ReasonLimit:            "a program met a limit",
	ReasonDisk:             "the run takes up too much of the disk",
	ReasonAgentMissing:     "the agent is not installed",
	ReasonReportMalformed:  "the report cannot be read",
	ReasonSenseFailed:      "the sense command failed",
	ReasonSetupFailed:      "the set-up failed",
	ReasonUnfilled:         "files of the base are not in this clone",
	ReasonScope:            "it changed what the definition does not allow",
	ReasonApproval:         "a person is asked",
	ReasonKillSwitch:       "the kill switch is set",
	ReasonStopped:          "it was stopped",
	ReasonCanceled:         "pawl was asked to end",
	ReasonHolderDied:       "its process died",
	ReasonNodeLost:         "its node does not answer",
	ReasonTakenOver:        "another process took it over",
	ReasonStoodStill:       "pawl stood still for longer than its lease lasts",
	ReasonStoreAway:        "the store did not answer",
	ReasonMemory:           "the loop's memory cannot be used",
	ReasonInternal:         "an error of pawl or of the machine",
	ReasonEffectFailed:     "it could not be carried out",
	ReasonApproved:         "a person said yes",
	ReasonLanding:          "it cannot land now",
	ReasonConflict:         "it conflicts with newer commits",
	ReasonGitConfig:        "the git configuration changed",
	ReasonSecret:           "the change holds a secret",
	ReasonNoChange:         "nothing had to change",
	ReasonLockFree:         "nothing is in the way",
	ReasonLockNone:         "it may change nothing, so it takes no lock",
	ReasonLockHigher:       "a run of the same or a higher priority is at work",
	ReasonLockHeld:         "a run that may touch the same is at work",
	ReasonLockDue:          "a run of higher priority is due",
	ReasonLockGroup:        "as many agents of the organisation are at work as may be at once",
	ReasonLockOverdue:      "a run that has deferred or waited long enough goes first",
	ReasonLinkMissing:      "there is no AGENT_LINK.md",
	ReasonLinkMalformed:    "AGENT_LINK.md cannot be read",
	ReasonLinkNoBoot:       "AGENT_LINK.md names no boot repository or reference",
	ReasonLinkNoVersion:    "AGENT_LINK.md names no boot version",
	ReasonLinkOlder:        "AGENT_LINK.md has the older form",
	ReasonLinkContract:     "AGENT_LINK.md asks for a companion contract",
	ReasonBootAway:         "the boot repository cannot be reached",
	ReasonBootIncomplete:   "the boot repository is incomplete",
	ReasonBootMoved:        "the rules or stop lines of the boot repository have changed",
	ReasonBootMalformed:    "a file of the boot repository cannot be read",
	ReasonBootSchema:       "a schema of the boot repository is invalid",
	ReasonVersionEqual:     "the boot version is the expected one",
	ReasonVersionPatch:     "the boot version differs in its patch only",
	ReasonVersionBehind:    "the boot version is newer than expected, and compatible",
	ReasonVersionAhead:     "the workspace expects a newer boot version",
	ReasonVersionMajor:     "the boot version has another major number",
	ReasonVersionUnlisted:  "the boot repository does not list the expected version as compatible",
	ReasonStateFirstRun:    "the first run begins with a new state",
	ReasonStateLost:        "the state was lost",
	ReasonStateCommit:      "the state was restored from a commit",
	ReasonStateStash:       "the state was restored from a stash",
	ReasonStateChangelog:   "the state was rebuilt from the changelog",
	ReasonStateTemplate:    "a new state was begun, because the old one could not be restored",
	ReasonStateDefault:     "a field was missing in the state, and its default was added",
	ReasonStateManual:      "the state or the tasks have a value that a person has to mend",
	ReasonStateOlder:       "the state has the form of an older version",
	ReasonTodoTemplate:     "the tasks were begun anew",
	ReasonTodoMinimal:      "the tasks were not JSON, and those that can still be read were kept",
	ReasonTodoPriority:     "a task had no priority, and has the medium one now",
	ReasonTodoStatus:       "a task had a status of other programs, and has the one that is meant now",
	ReasonTodoStructural:   "the tasks had another shape, and were taken over",
	ReasonTodoOlder:        "the tasks have the form of an older version",
	ReasonTodoDuplicate:    "two tasks have the same id",
	ReasonTodoOrphan:       "a task depends on one that does not exist",
	ReasonTodoCycle:        "tasks depend on each other in a circle",
	ReasonChangelogNew:     "the changelog was missing, and was begun",
	ReasonChangelogUnread:  "the changelog could not be read, and was begun anew",
	ReasonPlanRequest:      "it was asked for",
	ReasonPlanIntent:       "the last session left it as the next",
	ReasonPlanUnfinished:   "an earlier session has begun it",
	ReasonPlanPriority:     "it has the highest priority",
	ReasonPlanNothing:      "there is nothing to do",
	ReasonConflictRequest:  "what is asked for is blocked or done",
	ReasonConflictIntent:   "what comes next cannot be worked on, and a critical task can",
	ReasonConflictProgress: "two tasks are in progress",
	ReasonStopLine:         "a stop line was crossed",
	ReasonStopLineWarning:  "a stop line is near",
	ReasonMergeInvalid:     "the states of two sessions do not fit together",
	FailureRateLimit:       "the account may not call the model now",
	FailureQuota:           "the account is used up",
	FailureAuth:            "the key or login is missing or refused",
	FailureOverflow:        "the conversation is too long for the model",
	FailureRefusal:         "the model declined",
	FailureMaxTokens:       "an answer of the model was cut short",
	FailureServer:          "the model's provider failed",
	FailureCrash:           "the agent's program crashed",
	FailureHang:            "the agent's program hung",
	FailureMalformed:       "the agent's output cannot be read",
	FailureKilled:          "something killed the agent's program",
	FailureTurns:           "the agent used up its steps",
	FailureHeld:            "another run has the login",
	FailureRequest:         "the provider refused the request",
	FailureDenied:          "a request asked for what the definition does not allow",
}

// Sentence returns the reason in words; empty for an unknown one.
func (r Reason) Sentence() string { return sentences[r] }

// OfAgent reports whether the detail beside the reason is in the agent's own words.
func (r Reason) OfAgent() bool {
	return r == ReasonAgentQuiet || r == ReasonAgentBlocked || r == ReasonAgentFailed || r == ReasonAgentEscalated
}

// Explain returns the reason in words. The detail says more and is returned instead,
// unless it is empty. If it is in the agent's words, the reason is put before it.
func (r Reason) Explain(detail string) string {
	switch {
	case detail == "":
		return r.Sentence()
	case r.OfAgent():
		return r.Sentence() + ": " + detail
	}
	return detail
}

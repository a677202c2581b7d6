package loop

import (
	"slices"
	"time"
)

// FailureClass says what kind of thing went wrong with an agent's turn. It is
// the reason code of a run that ends because of it.
type FailureClass = Reason

// The classes. A turn that changed nothing is not a failure: gates judge it.
const (
	FailureRateLimit FailureClass = "rate_limit"       // the account may not call now; Failure.Reset says until when, if known
	FailureQuota     FailureClass = "quota"            // the account is used up, and time does not help
	FailureAuth      FailureClass = "auth"             // no credential, or one that is refused
	FailureOverflow  FailureClass = "context_overflow" // the conversation no longer fits the model
	FailureRefusal   FailureClass = "refusal"          // the model declined
	FailureMaxTokens FailureClass = "max_tokens"       // an answer was cut at its own limit
	FailureServer    FailureClass = "server_error"     // the vendor's side failed, or the connection to it
	FailureCrash     FailureClass = "agent_crash"      // the program failed and gave no reason
	FailureHang      FailureClass = "agent_hang"       // it printed nothing for too long
	FailureMalformed FailureClass = "malformed_output" // it ended without the event that ends a turn, or its output cannot be read
	FailureKilled    FailureClass = "agent_killed"     // a signal that pawl did not send ended it
	FailureTurns     FailureClass = "turn_cap"         // it used up its steps for a turn
	FailureHeld      FailureClass = "login_held"       // another run has the login, which only one may have at a time
	FailureRequest   FailureClass = "bad_request"      // the vendor refused the request: an unknown model, a feature it does not have
	FailureDenied    FailureClass = "request_denied"   // pawl did not forward a request: it asks for what the definition does not allow
)

// FailureOfStatus classifies a call to a model by its HTTP status, for answers that
// say nothing more. A status that is not an error is FailureRequest.
func FailureOfStatus(status int) FailureClass {
	switch {
	case status == 401 || status == 403:
		return FailureAuth
	case status == 402:
		return FailureQuota
	case status == 413:
		return FailureOverflow
	case status == 429:
		return FailureRateLimit
	case status == 408 || status >= 500:
		return FailureServer
	}
	return FailureRequest
}

// Failure says why a turn failed. The zero Failure means that it did not.
type Failure struct {
	Class  FailureClass `json:"class"`
	Text   string       `json:"text,omitempty"`   // in the words of the program or the vendor, one line
	Status int          `json:"status,omitempty"` // HTTP status, 0 if unknown
	Reset  time.Time    `json:"reset,omitzero"`   // when a limit is lifted, zero if unknown
	Typed  bool         `json:"typed,omitempty"`  // read from a field that has this meaning, not from a text
}

// IsExternal reports whether r is about an account, a vendor or a budget, and not
// about the work. A step that ends for such a reason does not count as failed and is
// open again.
func (r Reason) IsExternal() bool {
	outside := []Reason{FailureRateLimit, FailureQuota, FailureAuth, FailureServer, FailureRequest, ReasonBudget, ReasonPriceUnknown}
	return slices.Contains(outside, r) || r.IsSeat()
}

// IsSeat reports whether r means that other runs have what the run wanted to act
// with: it may act as soon as one of them has ended.
func (r Reason) IsSeat() bool {
	return r == FailureHeld || r == ReasonAgentBusy || r == ReasonAccountBusy
}

package loop

import (
	"slices"
	"time"
)

// FailureClass says what kind of thing went wrong with an agent's turn. It is
// the reason code of a run that ends because of it.
type FailureClass = Reason

// The classes. A turn that changed nothing is none of them: that is for gates
// to judge.
const (
	FailureRateLimit FailureClass = "rate_limit"       // the account may not call now; Reset says until when, if it is known
	FailureQuota     FailureClass = "quota"            // the account is used up, and time does not help
	FailureAuth      FailureClass = "auth"             // no credential, or one that is refused
	FailureOverflow  FailureClass = "context_overflow" // the conversation no longer fits the model
	FailureRefusal   FailureClass = "refusal"          // the model declined
	FailureMaxTokens FailureClass = "max_tokens"       // an answer was cut at its own limit
	FailureServer    FailureClass = "server_error"     // the vendor's side failed, or the connection to it
	FailureCrash     FailureClass = "agent_crash"      // the program ended badly, for no reason that it named
	FailureHang      FailureClass = "agent_hang"       // nothing came from it for too long
	FailureMalformed FailureClass = "malformed_output" // it ended without the event that ends a turn, or said what cannot be read
	FailureKilled    FailureClass = "agent_killed"     // a signal that pawl did not send
	FailureTurns     FailureClass = "turn_cap"         // it used up the steps that it has for a turn
	FailureHeld      FailureClass = "login_held"       // another run has the login, which only one may have at a time
	FailureRequest   FailureClass = "bad_request"      // the vendor refused the request: an unknown model, a feature it does not have
	FailureDenied    FailureClass = "request_denied"   // pawl did not forward a request: it asks for what the definition does not allow
)

// FailureOfStatus is what a status of HTTP says of a call to a model, where the
// answer says nothing more. Of a status that is not an error it is FailureRequest.
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

// Failure is why a turn came to nothing. The zero Failure is none.
type Failure struct {
	Class  FailureClass `json:"class"`
	Text   string       `json:"text,omitempty"`   // in the words of the program or the vendor, one line
	Status int          `json:"status,omitempty"` // HTTP status, 0 if unknown
	Reset  time.Time    `json:"reset,omitzero"`   // when a limit is lifted, zero if unknown
	Typed  bool         `json:"typed,omitempty"`  // read from a field that has this meaning, not from a text
}

// IsExternal reports whether r says something about an account, a vendor or a
// budget, and nothing about the work: a step that ends so is not counted as
// failed, and is open again.
func (r Reason) IsExternal() bool {
	outside := []Reason{FailureRateLimit, FailureQuota, FailureAuth, FailureHeld, FailureServer, FailureRequest, ReasonBudget}
	return slices.Contains(outside, r)
}

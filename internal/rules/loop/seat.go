package loop

import (
	"fmt"
	"strings"
	"time"
)

// Seat is what a live run acts with, from before its first turn until its end. It is
// free again when the run has ended, or when its lease is over by the clock of the
// database.
type Seat struct {
	RunID   string    `json:"run_id"`
	Loop    string    `json:"loop"` // its name
	N       int64     `json:"n"`
	Agent   string    `json:"agent"`             // handle, without the @
	Account string    `json:"account,omitempty"` // empty: pawl knows of none
	Login   string    `json:"login,omitempty"`   // the file, as people write it, of a login that one run has at a time; empty: a key, a token, or nothing
	Node    string    `json:"node,omitempty"`    // its name
	Holder  Holder    `json:"holder"`
	Since   time.Time `json:"since"` // by the database's clock
}

// String names the run and where it is.
func (s Seat) String() string {
	text := fmt.Sprintf("%s#%d", s.Loop, s.N)
	if s.Node != "" {
		text += " on node " + s.Node
	}
	return text + " since " + s.Since.UTC().Format(time.RFC3339)
}

// SeatWish is what a run wants to act with, and how many runs may do so at once.
type SeatWish struct {
	Agent, Account, Login  string
	AgentRuns, AccountRuns int64 // the most runs at once, this one included; 0: any number
}

// Limited reports whether the run may have to do without a seat.
func (w SeatWish) Limited() bool {
	return w.AgentRuns > 0 || w.Account != "" && w.AccountRuns > 0
}

// Refusal returns why a run may not act beside the live runs with the other seats, or
// nil if it may.
func (w SeatWish) Refusal(others []Seat) *SeatError {
	var agent, account []Seat
	for _, s := range others {
		if s.Agent == w.Agent {
			agent = append(agent, s)
		}
		if s.Account == w.Account && w.Account != "" {
			account = append(account, s)
		}
	}
	switch {
	case w.AccountRuns > 0 && int64(len(account)) >= w.AccountRuns && w.Login != "":
		return &SeatError{FailureHeld, w, account}
	case w.AccountRuns > 0 && int64(len(account)) >= w.AccountRuns:
		return &SeatError{ReasonAccountBusy, w, account}
	case w.AgentRuns > 0 && int64(len(agent)) >= w.AgentRuns:
		return &SeatError{ReasonAgentBusy, w, agent}
	}
	return nil
}

// Lost returns the error of a run that had its seat and has it no longer, while
// nobody else is in the way any more.
func (w SeatWish) Lost() *SeatError {
	switch {
	case w.Login != "":
		return &SeatError{FailureHeld, w, nil}
	case w.Account != "" && w.AccountRuns > 0:
		return &SeatError{ReasonAccountBusy, w, nil}
	}
	return &SeatError{ReasonAgentBusy, w, nil}
}

// SeatError means that an agent, an account or a login has as many live runs as it
// may have at once.
type SeatError struct {
	Reason  Reason // FailureHeld for a login, ReasonAgentBusy or ReasonAccountBusy
	Wish    SeatWish
	Holders []Seat // the oldest first
}

func (e *SeatError) Error() string {
	who, most := "agent @"+e.Wish.Agent, e.Wish.AgentRuns
	switch {
	case len(e.Holders) == 0:
		return "the lease of this run was over, and its seat may have been given to another run"
	case e.Reason == FailureHeld:
		held := &HeldError{What: "the login " + e.Wish.Login, Holder: e.Holders[0].Holder}
		return held.Error() + " for " + e.Holders[0].String()
	case e.Reason == ReasonAccountBusy:
		who, most = "account "+e.Wish.Account, e.Wish.AccountRuns
	}
	names := make([]string, len(e.Holders))
	for i, s := range e.Holders {
		names[i] = s.String()
	}
	return fmt.Sprintf("%s may have %d at once: %s", who, most, strings.Join(names, ", "))
}

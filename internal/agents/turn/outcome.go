package turn

import (
	"slices"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// totals is what an account had counted at one moment.
type totals struct {
	usage  loop.Usage
	models []loop.ModelUsage
}

func accountTotals(a *spend.Account) totals {
	usage, models := a.Total()
	return totals{usage, models}
}

// since returns what was counted after before.
func (c totals) since(before totals) totals {
	all := totals{usage: c.usage.Since(before.usage)}
	for _, m := range c.models {
		i := slices.IndexFunc(before.models, func(old loop.ModelUsage) bool { return old.Model == m.Model })
		if i >= 0 {
			m.Usage = m.Since(before.models[i].Usage)
			m.MicroUSD -= before.models[i].MicroUSD
		}
		if !m.Zero() {
			all.models = append(all.models, m)
		}
	}
	return all
}

// MeteredUsage returns what the meter has counted in this turn so far. It may be
// called at any time.
func (s *Env) MeteredUsage() (loop.Usage, []loop.ModelUsage) {
	if s.models == nil {
		return loop.Usage{}, nil
	}
	now := accountTotals(s.need.Account).since(s.before)
	// The account of the run may have estimates of other turns, which no meter saw.
	if len(now.models) > 0 && !slices.ContainsFunc(now.models, func(m loop.ModelUsage) bool { return m.Source != loop.UsageMetered }) {
		now.usage.Source = loop.UsageMetered
	}
	return now.usage, now.models
}

// Metered reports whether the meter counts every call that the program can make.
func (s *Env) Metered() bool { return s.models != nil }

// MergeResult corrects a program's result with what the meter saw: metered usage
// replaces what the program reports, and the vendor's last answer replaces what
// the program made of it. Without a meter the program's own numbers are used. The
// program must have ended: the endpoint is closed, and calls under way are
// charged.
func (s *Env) MergeResult(r agent.Result) agent.Result {
	if s.models == nil {
		return r
	}
	s.stopUnboxed()
	switch usage, models := s.MeteredUsage(); {
	case !usage.Zero():
		r.Usage, r.Models = usage, models
	case s.models.Asked(), len(s.unboxed) == 0 && r.Usage.Source == loop.UsageEstimated:
		// Every call was refused or failed, which costs nothing, whatever the program
		// reports. Or no call was made: in a sandbox there is no other way to the
		// model, so that an estimate would charge a prompt that no model read.
		// Without a sandbox the program may have bypassed the endpoint.
		r.Usage, r.Models = loop.Usage{Source: loop.UsageMetered}, nil
	}
	vendor, recovered := s.models.LastFailure()
	switch {
	case r.Ended == proc.Canceled && isClosed(s.Rejected()):
		r.Failure = &vendor // The program had no time to report it.
	case r.Ended == proc.Exited && r.Failure == nil && s.models.Stuck():
		r.Failure = &vendor // The program took it for a normal end of its turn.
	case !recovered:
		r.Failure = chooseFailure(r, vendor)
	}
	return r
}

// Rejected returns a channel that is closed when the model's vendor will accept
// no more calls in this turn, as far as can be told. The turn should then be
// ended. It is nil without a meter.
func (s *Env) Rejected() <-chan struct{} {
	if s.models == nil {
		return nil
	}
	return s.models.Rejected()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// chooseFailure chooses between the failure that a program reports and what its
// vendor answered last.
func chooseFailure(r agent.Result, vendor loop.Failure) *loop.Failure {
	said := r.Failure
	switch {
	case vendor.Class == "" || said == nil && r.Ended != proc.TimedOut:
		return said // A failed call that the program recovered from does not count.
	case said == nil || !said.Typed || vendor.Class == loop.FailureDenied || vendor.Typed && (vendor.Class == loop.FailureRequest || vendor.Class == loop.ReasonPriceUnknown):
		if vendor.Text == "" && said != nil {
			vendor.Text = said.Text
		}
		return &vendor
	case said.Class == vendor.Class:
		both := *said
		if both.Reset.IsZero() {
			both.Reset = vendor.Reset
		}
		if both.Status == 0 {
			both.Status = vendor.Status
		}
		return &both
	}
	return said
}

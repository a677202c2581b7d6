package turn

import (
	"slices"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/spend"
)

// counted is what an account said at one moment.
type counted struct {
	usage  loop.Usage
	models []loop.ModelUsage
}

func count(a *spend.Account) counted {
	usage, models := a.Total()
	return counted{usage, models}
}

// since is what was counted after before.
func (c counted) since(before counted) counted {
	all := counted{usage: c.usage.Since(before.usage)}
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

// SoFar is what the meter has seen of the turn. It may be called at any time.
func (s *Env) SoFar() (loop.Usage, []loop.ModelUsage) {
	if s.models == nil {
		return loop.Usage{}, nil
	}
	now := count(s.need.Account).since(s.before)
	return now.usage, now.models
}

// Metered reports whether every call that the program can make is counted on its
// way.
func (s *Env) Metered() bool { return s.models != nil }

// Outcome is what counts of a turn: what the meter saw before what a program
// says of itself, and what its vendor answered before what the program made of
// that. Where nothing was metered, the program's own numbers stand. The program
// has to be gone: its model takes no more calls then, and those that were under
// way are charged.
func (s *Env) Outcome(r agent.Result) agent.Result {
	if s.models == nil {
		return r
	}
	if s.serve != nil {
		s.serve()
	}
	switch usage, models := s.SoFar(); {
	case !usage.Zero():
		r.Usage, r.Models = usage, models
	case s.models.Asked(), s.serve == nil && r.Usage.Source == loop.UsageEstimated:
		// Every call was refused or failed, which costs nothing, whatever the program
		// thinks that it has sent. Or none was made: a box has no other way to the
		// model, so an estimate by the prompt would charge what nobody read. Without a
		// box the program may have gone past the endpoint.
		r.Usage, r.Models = loop.Usage{Source: loop.UsageMetered}, nil
	}
	vendor, recovered := s.models.LastFailure()
	switch {
	case r.Ended == proc.Canceled && closed(s.Rejected()):
		r.Failure = &vendor // The program had no time to say it.
	case r.Ended == proc.Exited && r.Failure == nil && s.models.Stuck():
		r.Failure = &vendor // The program took it for an end of its turn like any other.
	case !recovered:
		r.Failure = failure(r, vendor)
	}
	return r
}

// Rejected is closed when the model's vendor takes no more calls of the turn, as
// far as can be told: then the turn is to be ended. Where nothing is metered it
// is nil.
func (s *Env) Rejected() <-chan struct{} {
	if s.models == nil {
		return nil
	}
	return s.models.Rejected()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// failure chooses between what a program says and what its vendor answered last.
func failure(r agent.Result, vendor loop.Failure) *loop.Failure {
	said := r.Failure
	switch {
	case vendor.Class == "" || said == nil && r.Ended != proc.TimedOut:
		return said // What went wrong in between did not keep it from ending well.
	case said == nil || !said.Typed || vendor.Class == loop.FailureDenied || vendor.Typed && (vendor.Class == loop.FailureRequest || vendor.Class == loop.ReasonBudget):
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

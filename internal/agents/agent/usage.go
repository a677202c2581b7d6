package agent

import (
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// bytesPerToken is a rule of thumb for estimates.
const bytesPerToken = 4

// EstimateTokens estimates the tokens of a text from its size in bytes. It is
// never zero, because a program that ran has used some.
func EstimateTokens(bytes int64) int64 { return 1 + bytes/bytesPerToken }

// AddUsage adds a model's usage to a list by model.
func AddUsage(all []loop.ModelUsage, model string, u loop.Usage) []loop.ModelUsage {
	i := slices.IndexFunc(all, func(m loop.ModelUsage) bool { return m.Model == model })
	if i < 0 {
		return append(all, loop.ModelUsage{Model: model, Usage: u})
	}
	all[i].Usage = all[i].Add(u)
	return all
}

// SessionUsage returns what a conversation has used, from its counters; zero if s
// is nil or they are not known.
func SessionUsage(s *loop.Session) loop.Usage {
	var sum loop.Usage
	if s != nil {
		for _, m := range s.Totals {
			sum = sum.Add(m.Usage)
		}
	}
	return sum
}

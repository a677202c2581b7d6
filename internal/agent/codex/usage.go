package codex

import (
	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// tokens are counts as the program names them. Input holds what was read from a
// cache or written to one, output what was reasoned.
type tokens struct {
	Input      loop.Count `json:"inputTokens"`
	Cached     loop.Count `json:"cachedInputTokens"`
	CacheWrite loop.Count `json:"cacheWriteInputTokens"`
	Output     loop.Count `json:"outputTokens"`
}

func (t tokens) isBad() bool { return t.Input.Bad || t.Cached.Bad || t.CacheWrite.Bad || t.Output.Bad }

// toUsage counts each token once.
func (t tokens) toUsage() loop.Usage {
	return loop.Usage{
		Input: max(0, t.Input.N-t.Cached.N-t.CacheWrite.N), CacheRead: t.Cached.N, CacheWrite: t.CacheWrite.N, Output: t.Output.N,
	}
}

// counts keeps the counters of conversations: that of the turn, and those that
// it starts.
type counts struct {
	last    map[string]loop.Usage
	call    loop.Usage // the last call of the model
	written int64      // bytes of the answer on its way
	bad     bool       // something was reported that is not a count
}

// takeUpdate takes counters. Those that were told before the turn began are where
// it begins.
func (c *counts) takeUpdate(p params, before bool, model string) []agent.Event {
	thread, total := string(p.Thread), p.Usage.Total
	if total.isBad() {
		c.bad = true
		return nil
	}
	used := total.toUsage().Since(c.last[thread])
	c.last[thread] = total.toUsage()
	if before || used.Zero() {
		return nil
	}
	c.call, c.written = p.Usage.Last.toUsage(), 0
	return []agent.Event{{Kind: agent.EventUsage, Model: model, Usage: used}}
}

// completeUsage says how exact what was told of is. A turn that was cut has used more:
// the call on its way, or that which asked for the tool at work, is told of only
// later. It is taken to be as long as the one before.
func (c *counts) completeUsage(r *agent.Result, exact, calling bool, model string) {
	source := loop.UsageReported
	if !exact {
		source = loop.UsageEstimated
		if calling && !r.Usage.Zero() {
			cut := loop.Usage{
				Input: c.call.Input, CacheRead: c.call.CacheRead, CacheWrite: c.call.CacheWrite, Output: agent.EstimateTokens(c.written),
			}
			r.Usage = r.Usage.Add(cut)
			r.Models = agent.AddUsage(r.Models, model, cut)
		}
	}
	if r.Usage.Zero() {
		return
	}
	r.Usage.Source = source
	for i := range r.Models {
		r.Models[i].Source = source
	}
}

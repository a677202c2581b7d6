package codex

import (
	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// tokens are counts with the program's names. Input includes cached tokens,
// output includes reasoning.
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

// counts keeps the counters of the turn's conversation and of those that it
// starts.
type counts struct {
	last    map[string]loop.Usage
	call    loop.Usage // of the model's last call
	written int64      // bytes of the answer in progress
	bad     bool       // an invalid count was reported
}

// takeUpdate takes new counters. Before means that they were reported before the
// turn began.
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

// completeUsage marks how exact the usage is. A turn that was cut has used more:
// the call in progress is not reported any more. It is estimated to be as long as
// the one before.
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

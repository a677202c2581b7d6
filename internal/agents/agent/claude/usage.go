package claude

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// bytesPerToken is a rule of thumb for an answer that was cut.
const bytesPerToken = 4

// counts keeps the tokens of one turn. Calls are reported as they end. The final
// numbers are the program's own counters, which continue over all turns of a
// conversation and include calls that were never shown.
type counts struct {
	before   []loop.ModelUsage    // counters when the turn began
	final    []loop.ModelUsage    // counters at the last result; nil if there was none
	bad      bool                 // the last result had invalid numbers
	live     map[string]*liveCall // calls in progress, by the sub-agent that makes them
	asked    bool                 // the model was called and has not begun to answer
	last     liveCall             // the last call that ended
	reported loop.Usage
	model    string     // that answered last
	whole    loop.Usage // of the turn, from a result without counters; zero if missing
}

// liveCall is a call of the model in progress.
type liveCall struct {
	loop.Usage
	model string
	bytes int64 // of the answer so far
}

// tokens are counts with the vendor's names.
type tokens struct {
	Input      loop.Count `json:"input_tokens"`
	Output     loop.Count `json:"output_tokens"`
	CacheRead  loop.Count `json:"cache_read_input_tokens"`
	CacheWrite loop.Count `json:"cache_creation_input_tokens"`
	Kept       struct {
		Hour loop.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// raise raises the counts of u to the reported ones. Invalid numbers are ignored.
func (t tokens) raise(u *loop.Usage) {
	u.Input, u.Output = max(u.Input, t.Input.N), max(u.Output, t.Output.N)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, t.CacheRead.N), max(u.CacheWrite, t.CacheWrite.N)
	u.CacheWrite1h = max(u.CacheWrite1h, t.Kept.Hour.N)
}

func (t tokens) isBad() bool {
	return t.Input.Bad || t.Output.Bad || t.CacheRead.Bad || t.CacheWrite.Bad || t.Kept.Hour.Bad
}

// takePartial follows a call in progress. Only its end says how many tokens were
// output.
func (c *counts) takePartial(line []byte) []agent.Event {
	var m struct {
		Parent text `json:"parent_tool_use_id"`
		Event  struct {
			Type    text `json:"type"`
			Message struct {
				Model text   `json:"model"`
				Usage tokens `json:"usage"`
			} `json:"message"`
			Usage tokens `json:"usage"`
			Delta struct {
				Text     text `json:"text"`
				Thinking text `json:"thinking"`
				JSON     text `json:"partial_json"`
			} `json:"delta"`
		} `json:"event"`
	}
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	from, e := string(m.Parent), m.Event
	if e.Type == "message_start" {
		now := &liveCall{model: string(e.Message.Model)}
		e.Message.Usage.raise(&now.Usage)
		c.live[from], c.asked = now, false
		return nil
	}
	now := c.live[from]
	if now == nil {
		return nil
	}
	now.bytes += int64(len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.JSON))
	e.Usage.raise(&now.Usage)
	if e.Type != "message_stop" {
		return nil
	}
	delete(c.live, from)
	c.last = *now
	c.reported = c.reported.Add(now.Usage)
	return []agent.Event{{Kind: agent.EventUsage, Model: now.model, Usage: now.Usage}}
}

// counters are those of one model over a conversation.
type counters struct {
	Input       loop.Count `json:"inputTokens"`
	Output      loop.Count `json:"outputTokens"`
	CacheRead   loop.Count `json:"cacheReadInputTokens"`
	CacheWrite  loop.Count `json:"cacheCreationInputTokens"`
	CacheWrite1 loop.Count `json:"cacheCreationEphemeral1hInputTokens"`
}

func (c counters) isBad() bool {
	return c.Input.Bad || c.Output.Bad || c.CacheRead.Bad || c.CacheWrite.Bad || c.CacheWrite1.Bad
}

// takeResult takes the counters of a result, and reports what no call had
// reported. A result without counters has at least the usage of its turn.
func (c *counts) takeResult(all map[string]counters, usage tokens) []agent.Event {
	c.whole = loop.Usage{}
	if usage.raise(&c.whole); len(all) == 0 && !c.whole.Zero() && !usage.isBad() {
		c.final, c.bad = nil, false
		return nil
	}
	c.whole = loop.Usage{}
	c.final, c.bad = []loop.ModelUsage{}, false
	for _, model := range slices.Sorted(maps.Keys(all)) {
		n := all[model]
		c.bad = c.bad || n.isBad()
		c.final = append(c.final, loop.ModelUsage{Model: model, Usage: loop.Usage{
			Input: n.Input.N, Output: n.Output.N, CacheRead: n.CacheRead.N, CacheWrite: n.CacheWrite.N, CacheWrite1h: n.CacheWrite1.N,
		}})
	}
	if c.bad {
		return nil
	}
	models, sum := c.turnUsage()
	rest := loop.Usage{
		Input: max(0, sum.Input-c.reported.Input), Output: max(0, sum.Output-c.reported.Output), CacheRead: max(0, sum.CacheRead-c.reported.CacheRead),
		CacheWrite: max(0, sum.CacheWrite-c.reported.CacheWrite), CacheWrite1h: max(0, sum.CacheWrite1h-c.reported.CacheWrite1h),
	}
	if rest.Zero() {
		return nil
	}
	c.reported = c.reported.Add(rest)
	e := agent.Event{Kind: agent.EventUsage, Usage: rest}
	if len(models) == 1 {
		e.Model = models[0].Model
	}
	return []agent.Event{e}
}

// turnUsage returns by how much the counters grew in this turn.
func (c *counts) turnUsage() (models []loop.ModelUsage, sum loop.Usage) {
	for _, m := range c.final {
		i := slices.IndexFunc(c.before, func(b loop.ModelUsage) bool { return b.Model == m.Model })
		if i >= 0 {
			m.Usage = m.Since(c.before[i].Usage)
		}
		if m.Zero() {
			continue
		}
		m.Source = loop.UsageReported
		models, sum = append(models, m), sum.Add(m.Usage)
	}
	return models, sum
}

// sessionTotals returns the counters from which the next turn's usage is
// computed.
func (c *counts) sessionTotals() []loop.ModelUsage {
	if c.final == nil || c.bad {
		return c.before
	}
	all := slices.Clone(c.final)
	for _, b := range c.before {
		if !slices.ContainsFunc(all, func(m loop.ModelUsage) bool { return m.Model == b.Model }) {
			all = append(all, b)
		}
	}
	return all
}

// completeUsage sets what the turn used. Without a result, that is what calls
// reported and an estimate of the calls that were cut: a call without any answer
// is estimated to be as long as the one before.
func (c *counts) completeUsage(r *agent.Result) {
	if c.final != nil && !c.bad {
		r.Models, r.Usage = c.turnUsage()
		return
	}
	if !c.whole.Zero() {
		r.Usage = c.whole
		r.Usage.Source = loop.UsageReported
		r.Models = []loop.ModelUsage{{Model: c.model, Usage: r.Usage}}
		return
	}
	if c.asked && c.last.model != "" {
		cut := c.last
		cut.Output, cut.bytes = 0, 0
		c.live["?"] = &cut
	}
	for _, from := range slices.Sorted(maps.Keys(c.live)) {
		now := c.live[from]
		now.Output = max(now.Output, 1+now.bytes/bytesPerToken)
		r.Usage = r.Usage.Add(now.Usage)
		i := slices.IndexFunc(r.Models, func(m loop.ModelUsage) bool { return m.Model == now.model })
		if i < 0 {
			r.Models = append(r.Models, loop.ModelUsage{Model: now.model, Usage: now.Usage})
		} else {
			r.Models[i].Usage = r.Models[i].Add(now.Usage)
		}
	}
	if r.Usage.Zero() {
		return
	}
	r.Usage.Source = loop.UsageEstimated
	for i := range r.Models {
		r.Models[i].Source = loop.UsageEstimated
	}
}

package claude

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// bytesPerToken is the rule of thumb for an answer that was cut.
const bytesPerToken = 4

// counts keeps the tokens of one turn. Calls that came to their end are told as
// they do; what counts in the end are the program's own counters, which go on
// over all turns of a conversation and hold calls that were never shown.
type counts struct {
	before []loop.ModelUsage // counters when the turn began
	now    []loop.ModelUsage // and at the last result; nil: there was none
	bad    bool              // the last result had numbers that are no counts
	live   map[string]*call  // on their way, by the sub-agent that makes them
	asked  bool              // the model was asked, and has not begun to answer
	last   call              // the last that came to its end
	told   loop.Usage
	model  string     // that answered last
	whole  loop.Usage // of the turn, by a result that has no counters; zero: there is none
}

// call is a call of the model that goes on.
type call struct {
	loop.Usage
	model string
	bytes int64 // of the answer so far
}

// tokens are counts as the vendor names them.
type tokens struct {
	Input      loop.Count `json:"input_tokens"`
	Output     loop.Count `json:"output_tokens"`
	CacheRead  loop.Count `json:"cache_read_input_tokens"`
	CacheWrite loop.Count `json:"cache_creation_input_tokens"`
	Kept       struct {
		Hour loop.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// over sets what is reported over what was known. A number that is not a count
// says nothing.
func (t tokens) over(u *loop.Usage) {
	u.Input, u.Output = max(u.Input, t.Input.N), max(u.Output, t.Output.N)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, t.CacheRead.N), max(u.CacheWrite, t.CacheWrite.N)
	u.CacheWrite1h = max(u.CacheWrite1h, t.Kept.Hour.N)
}

func (t tokens) bad() bool {
	return t.Input.Bad || t.Output.Bad || t.CacheRead.Bad || t.CacheWrite.Bad || t.Kept.Hour.Bad
}

// partial follows a call on its way. Only its end says how much was put out.
func (c *counts) partial(line []byte) []agent.Event {
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
		now := &call{model: string(e.Message.Model)}
		e.Message.Usage.over(&now.Usage)
		c.live[from], c.asked = now, false
		return nil
	}
	now := c.live[from]
	if now == nil {
		return nil
	}
	now.bytes += int64(len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.JSON))
	e.Usage.over(&now.Usage)
	if e.Type != "message_stop" {
		return nil
	}
	delete(c.live, from)
	c.last = *now
	c.told = c.told.Add(now.Usage)
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

func (c counters) bad() bool {
	return c.Input.Bad || c.Output.Bad || c.CacheRead.Bad || c.CacheWrite.Bad || c.CacheWrite1.Bad
}

// result takes the counters of a result, and tells of what was not seen live. A
// result without counters has at least the usage of its turn.
func (c *counts) result(all map[string]counters, usage tokens) []agent.Event {
	c.whole = loop.Usage{}
	if usage.over(&c.whole); len(all) == 0 && !c.whole.Zero() && !usage.bad() {
		c.now, c.bad = nil, false
		return nil
	}
	c.whole = loop.Usage{}
	c.now, c.bad = []loop.ModelUsage{}, false
	for _, model := range slices.Sorted(maps.Keys(all)) {
		n := all[model]
		c.bad = c.bad || n.bad()
		c.now = append(c.now, loop.ModelUsage{Model: model, Usage: loop.Usage{
			Input: n.Input.N, Output: n.Output.N, CacheRead: n.CacheRead.N, CacheWrite: n.CacheWrite.N, CacheWrite1h: n.CacheWrite1.N,
		}})
	}
	if c.bad {
		return nil
	}
	models, sum := c.turn()
	rest := loop.Usage{
		Input: max(0, sum.Input-c.told.Input), Output: max(0, sum.Output-c.told.Output), CacheRead: max(0, sum.CacheRead-c.told.CacheRead),
		CacheWrite: max(0, sum.CacheWrite-c.told.CacheWrite), CacheWrite1h: max(0, sum.CacheWrite1h-c.told.CacheWrite1h),
	}
	if rest.Zero() {
		return nil
	}
	c.told = c.told.Add(rest)
	e := agent.Event{Kind: agent.EventUsage, Usage: rest}
	if len(models) == 1 {
		e.Model = models[0].Model
	}
	return []agent.Event{e}
}

// turn is what the counters grew by in this turn.
func (c *counts) turn() (models []loop.ModelUsage, sum loop.Usage) {
	for _, m := range c.now {
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

// totals are the counters to take the next difference from.
func (c *counts) totals() []loop.ModelUsage {
	if c.now == nil || c.bad {
		return c.before
	}
	all := slices.Clone(c.now)
	for _, b := range c.before {
		if !slices.ContainsFunc(all, func(m loop.ModelUsage) bool { return m.Model == b.Model }) {
			all = append(all, b)
		}
	}
	return all
}

// finish sets what the turn used. Without a result that is what was seen and an
// estimate of the calls that were cut: one that was not answered at all is taken
// to be as long as the one before.
func (c *counts) finish(r *agent.Result) {
	if c.now != nil && !c.bad {
		r.Models, r.Usage = c.turn()
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

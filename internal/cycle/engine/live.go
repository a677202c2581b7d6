package engine

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// liveTurn is a turn under way, for whoever finds the run dead: what it used is
// never nothing.
type liveTurn struct {
	row   loop.Turn
	count *counter
	cost  func([]loop.ModelUsage) ([]loop.ModelUsage, loop.Cost)
	last  loop.Usage // that was saved
}

// beginTurn shows the watcher a turn that begins.
func (j *journal) beginTurn(ctx context.Context, turn *liveTurn) (end func()) {
	j.turns.mu.Lock()
	j.turns.live = turn
	j.noteTurns(ctx)
	j.turns.mu.Unlock()
	return func() {
		j.turns.mu.Lock()
		j.turns.live = nil
		j.turns.mu.Unlock()
	}
}

// leastUsage is charged for a turn if only its prompt is known: it has read that and
// said one word.
func leastUsage(prompt int) loop.Usage {
	return loop.Usage{Input: 1 + int64(prompt)/bytesPerToken, Output: 1, Source: loop.UsageEstimated}
}

// bytesPerToken is the rule of thumb behind an estimate.
const bytesPerToken = 4

// unsavedState is the row of the turn so far, if it says more than what was saved.
func (l *liveTurn) unsavedState() *liveTurn {
	if l == nil {
		return nil
	}
	now := l.now()
	if now.row.Usage == l.last {
		return nil
	}
	return now
}

// now is the turn with what is known of it at this moment.
func (l *liveTurn) now() *liveTurn {
	now := *l
	if usage, models := l.count.soFar(); !usage.Zero() {
		now.row.Usage = usage
		now.row.Models, now.row.Cost = l.cost(models)
	}
	return &now
}

func (l *liveTurn) save(ctx context.Context, rt *store.RunTx) error {
	if l == nil {
		return nil
	}
	return rt.SaveTurn(ctx, l.row)
}

// saved notes in the turn that is under way what was saved of it.
func (l *liveTurn) saved(live *liveTurn) {
	if l != nil && live != nil {
		live.last = l.row.Usage
	}
}

// countDead adds up what the turns of a dead run used, as far as it was seen, in
// the store or in the notes of its process. What a turn used whose end nobody saw is
// an estimate, however exactly its calls were counted: one more may have been under
// way.
func (c *cycle) countDead(saved []loop.Turn) {
	c.run.Usage, c.run.Cost = loop.Usage{}, loop.Cost{} // The row may know less than its turns.
	for _, t := range c.withNoted(slices.Clone(saved)) {
		if t.Ended == "" {
			t.Usage.Source = loop.UsageEstimated
		}
		c.money.unseen = c.money.unseen || t.Usage.Source == loop.UsageEstimated
		if t.Ended == "" || !slices.ContainsFunc(saved, func(s loop.Turn) bool { return s.N == t.N && s.Ended != "" }) {
			c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveTurn(ctx, t) })
		}
		c.money.book(t)
		c.money.counted = max(c.money.counted, t.Iteration)
		c.run.Agent = cmp.Or(c.run.Agent, t.Agent)
	}
}

// countUnseen charges the turn in which a process died, or after which, before
// anything of it was saved or noted: its model may have read the prompt.
func (c *cycle) countUnseen() {
	n := len(c.its)
	prompt, err := os.Stat(c.host().PromptFile(c.run.ID, n))
	if n == 0 || c.money.counted >= n || err != nil {
		return
	}
	c.chargeUnseen(int(prompt.Size()))
}

// chargeUnseen charges the last iteration for a turn of which only the size of its
// prompt is known, in bytes.
func (c *cycle) chargeUnseen(prompt int) {
	c.money.unseen = true
	row := c.agent.turnRow(purposeOf(c.stepOf(c.current())), c.current().Started)
	row.Agent, row.Auth, row.Usage = cmp.Or(row.Agent, c.run.Agent), c.run.Auth, leastUsage(prompt)
	c.money.book(row)
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveTurn(ctx, row) })
}

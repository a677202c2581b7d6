package engine

import (
	"context"

	lessons "github.com/pawl-run/pawl/internal/record/memory"
	"github.com/pawl-run/pawl/internal/record/store"
)

// rememberLessons stages what the run learned, so that it becomes durable with the run's
// outcome. A run that learned nothing writes nothing.
func (c *cycle) rememberLessons() {
	l := c.target.Loop
	learned := lessons.OfRun(l, c.run, c.def, c.its, c.said.Hide)
	if len(learned) == 0 {
		return
	}
	c.stage(func(ctx context.Context, rt *store.RunTx) error {
		return lessons.Save(ctx, rt.Tx, l.WorkspaceID, learned, rt.Now())
	})
}

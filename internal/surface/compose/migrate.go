package compose

import (
	"context"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
)

// PlanMigration says what Migrate would do to the tables of the store.
func PlanMigration(ctx context.Context, o Options) (store.Migration, error) {
	return store.PlanMigration(ctx, o.tables())
}

// Migrate brings the tables of the store up to date, however many nodes share them.
func Migrate(ctx context.Context, o Options) (store.Migration, error) {
	return store.Migrate(ctx, o.tables())
}

// tables are the options of whoever looks at nothing but the version of the tables.
func (o Options) tables() store.Options {
	now := o.Now
	if now == nil {
		now = clock.System{}.Now
	}
	return store.Options{Database: o.Settings.Database, Now: now}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverVersion is the version of River's tables that goes with SchemaVersion. Whoever
// raises it raises that too, with a migration that may be empty: nobody asks River's own
// table which version it has.
const riverVersion = 8

// onlyOneMigrates is held while tables are made: of two that make River's at the same
// time, one would fail.
const onlyOneMigrates = `SELECT pg_advisory_lock(hashtextextended('pawl.migrate', 10))`

// migrateRiver brings the tables of River up to date, in which hints for queued runs lie.
// Nothing of pawl's is kept there.
func (s *Store) migrateRiver(ctx context.Context) (err error) {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }() // It ends the lock too.
	if _, err := conn.Exec(ctx, onlyOneMigrates); err != nil {
		return fmt.Errorf("wait for others that migrate: %w", err)
	}
	m, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverVersion})
	}
	if err != nil {
		return fmt.Errorf("make the tables of River: %w", err)
	}
	return nil
}

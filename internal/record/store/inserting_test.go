package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// meanwhile does something between the first INSERT of a run and the next statement, as
// another transaction may on PostgreSQL.
type meanwhile struct {
	querier
	do   func()
	once bool
}

func (m *meanwhile) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	row := m.querier.QueryRowContext(ctx, query, args...)
	if !m.once && strings.Contains(query, "INSERT INTO runs") {
		m.once = true
		m.do()
	}
	return row
}

func TestARunIsFiredIfTheLiveOneEndsMeanwhile(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	filled(t, s)
	err = s.Update(ctx, func(tx *Tx) error {
		tx.q = &meanwhile{querier: tx.q, do: func() {
			if _, err := tx.exec(ctx, `UPDATE runs SET state = 'ended', outcome = 'quiet', holder = ''`); err != nil {
				t.Error(err)
			}
		}}
		_, err := tx.FireClaimed(ctx, loop.Run{ID: "second", LoopID: "lp", N: 2, Key: "ci-2", Trigger: "manual"}, loop.Holder{PID: 2})
		return err
	})
	if err != nil {
		t.Errorf("the second run = %v, want it fired", err)
	}
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// stopScope is which switch of the store is set for a run, of the widest scope.
const stopScope = `
  CASE WHEN EXISTS (SELECT 1 FROM switches s WHERE s.id = '') THEN 'store'
       WHEN EXISTS (SELECT 1 FROM switches s WHERE s.id = r.workspace_id) THEN 'workspace'
       WHEN l.paused = 1 THEN 'loop' ELSE '' END`

const asked = `
SELECT r.cancel, r.fence,` + stopScope + `, r.lease_until_ms, {now}
FROM   runs r JOIN loops l ON l.id = r.loop_id WHERE r.id = $1`

// Asked is what the holder of a run watches.
type Asked struct {
	Cancel string           // why the run is to stop; empty: it is not
	Fence  int64            // of whoever holds the run now
	Switch loop.SwitchScope // a switch in the store that is set for the run; empty: none
	Lease  time.Duration    // what is left of the lease, by the database's clock
}

// Asked reads what the holder of a run watches. A run that is not there any more
// is loop.ErrStoreGone: rows of live runs are never removed.
func (r *Reader) Asked(ctx context.Context, id string) (a Asked, err error) {
	var lease, now int64
	began := r.clock.startSample()
	err = r.queryRow(ctx, asked, id).Scan(&a.Cancel, &a.Fence, &a.Switch, &lease, &now)
	began.learn(now)
	if errors.Is(err, sql.ErrNoRows) {
		err = goneRun(r.sql)
	}
	a.Lease = time.Duration(lease-now) * time.Millisecond
	return a, err
}

func goneRun(d dialect) error {
	return goneFault(d, "the run that is under way is not in it any more")
}

// Watched is what a process sees of the runs that it holds, at one moment.
type Watched struct {
	runs map[string]Asked
	sql  dialect
}

// Of is what the holder of a run is to know. A run that another holder has is
// loop.ErrLeaseLost, and one that is not there any more loop.ErrStoreGone.
func (w Watched) Of(run loop.Run) (Asked, error) {
	a, ok := w.runs[run.ID]
	switch {
	case !ok:
		return a, goneRun(w.sql)
	case a.Fence != run.Fence:
		return a, loop.ErrLeaseLost
	}
	return a, nil
}

const watchRuns = `
SELECT r.id, r.cancel, r.fence,` + stopScope + `, r.lease_until_ms, {now}
FROM   {each}($1{json}) w JOIN runs r ON r.id = w.value ->> 0 JOIN loops l ON l.id = r.loop_id`

// Watch reads what the holders of runs watch, in one statement that is a transaction of
// its own, and learns the time of the database from it. It tries once, like
// Holding.TryView.
func (s *Store) Watch(ctx context.Context, runs []loop.Run) (Watched, error) {
	defer s.announceWait(ctx)()
	w := Watched{runs: make(map[string]Asked, len(runs)), sql: s.sql}
	err := s.checkFile()
	if err == nil {
		var now int64
		began := s.clock.startSample()
		_, err = collect(ctx, &Reader{s.r, s.sql, s.clock}, watchRuns, func(row interface{ Scan(...any) error }) (none struct{}, err error) {
			var id string
			var a Asked
			var lease int64
			err = row.Scan(&id, &a.Cancel, &a.Fence, &a.Switch, &lease, &now)
			a.Lease = time.Duration(lease-now) * time.Millisecond
			w.runs[id] = a
			return none, err
		}, encode(fences(runs)))
		began.learn(now)
	}
	return w, s.explainGone(s.explain("", s.frozen.checkUnchanged(err)))
}

// fences are runs as a JSON list for a statement: of each its id and its fence.
func fences(runs []loop.Run) [][2]any {
	list := make([][2]any, 0, len(runs))
	for _, r := range runs {
		list = append(list, [2]any{r.ID, r.Fence})
	}
	return list
}

const extendRuns = `
UPDATE runs SET lease_until_ms = {now} + $1
WHERE  state IN ('running', 'settling')
AND    (id, fence) IN (SELECT w.value ->> 0, CAST(w.value ->> 1 AS BIGINT) FROM {each}($2{json}) w)
RETURNING id, cancel, lease_until_ms`

const stoppedRuns = `
UPDATE runs SET stopped_ms = {now}
WHERE  stopped_ms = 0 AND (id, fence) IN (SELECT w.value ->> 0, CAST(w.value ->> 1 AS BIGINT) FROM {each}($1{json}) w)`

// Extended is what became of one lease that Extend tried to extend.
type Extended struct {
	Cancel string // why the run is to stop; empty: it is not
	Err    error  // the run has another holder, or the store did not answer
}

// Extend extends the leases of holders, and notes those runs of which no program is left,
// in one transaction, which it tries once. Then it calls fn, which may be nil. Left out are
// holders that have an Update under way: it extends the lease itself. The result has
// those that were tried.
func (s *Store) Extend(ctx context.Context, holders []*Holding, stopped []loop.Run, fn func(*Tx) error) (map[*Holding]Extended, error) {
	tried := map[*Holding]Extended{}
	byID := map[string]*Holding{}
	var runs []loop.Run
	for _, h := range holders {
		if !h.updating.TryLock() {
			continue
		}
		defer h.updating.Unlock()
		tried[h], byID[h.run.ID] = Extended{Err: fmt.Errorf("extend run %s: %w", h.run.ID, loop.ErrLeaseLost)}, h
		runs = append(runs, h.run)
	}
	leases := map[*Holding]int64{}
	began, attempt := s.clock.elapsing(), newAttempts()
	err := s.tryUpdate(ctx, attempt, func(tx *Tx) error {
		err := tx.extendRuns(ctx, runs, func(id, cancel string, lease int64) {
			tried[byID[id]], leases[byID[id]] = Extended{Cancel: cancel}, lease
		})
		if err == nil && len(stopped) > 0 {
			_, err = tx.exec(ctx, stoppedRuns, encode(fences(stopped)))
		}
		if err == nil && fn != nil {
			err = fn(tx)
		}
		if err != nil {
			return fmt.Errorf("extend leases: %w", err)
		}
		return nil
	})
	if err == nil {
		err = s.checkFile()
	}
	err = s.explainGone(err)
	for h, e := range tried {
		switch lease, extended := leases[h]; {
		case attempt.commit.unknown:
			h.lease = 0
		case err == nil && extended:
			h.lease = lease
			h.confirm(began)
		}
		if err != nil {
			tried[h] = Extended{Err: err}
		} else {
			tried[h] = e
		}
	}
	return tried, err
}

func (t *Tx) extendRuns(ctx context.Context, runs []loop.Run, each func(id, cancel string, lease int64)) error {
	if len(runs) == 0 {
		return nil
	}
	_, err := collect(ctx, &t.Reader, extendRuns, func(row interface{ Scan(...any) error }) (none struct{}, err error) {
		var id, cancel string
		var lease int64
		if err = row.Scan(&id, &cancel, &lease); err == nil {
			each(id, cancel, lease)
		}
		return none, err
	}, t.lease.Milliseconds(), encode(fences(runs)))
	return err
}

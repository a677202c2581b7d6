package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reservation is what a run holds, or what it was charged once it is settled.
type reservation struct {
	amount, used loop.Amount
	in           []spendingKey
	settled      bool
}

const readReservation = `SELECT amount, used, scopes, settled FROM reservations WHERE run_id = $1`

// reservation returns that of a run, and false if there is none.
func (r *Reader) reservation(ctx context.Context, runID string) (v reservation, ok bool, err error) {
	var amount, used, in string
	err = r.queryRow(ctx, readReservation, runID).Scan(&amount, &used, &in, &v.settled)
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, nil
	}
	err = errors.Join(err, decode("amount", amount, &v.amount), decode("used", used, &v.used), decode("scopes", in, &v.in))
	if err != nil {
		return v, false, fmt.Errorf("read the reservation of run %s: %w", runID, err)
	}
	return v, true, nil
}

const saveReservation = `
INSERT INTO reservations (run_id, amount, used, scopes, settled, created_ms) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id) DO UPDATE SET amount = excluded.amount, used = excluded.used, scopes = excluded.scopes, settled = excluded.settled
WHERE  reservations.settled = 0`

func (t *RunTx) saveReservation(ctx context.Context, v reservation) error {
	settled := 0
	if v.settled {
		settled = 1
	}
	n, err := t.exec(ctx, saveReservation, t.run.ID, encode(v.amount), encode(v.used), encode(v.in), settled, millis(t.now))
	return t.checkGuard("save the reservation of", n, err)
}

// Reserve makes want the whole reservation of the run, new or grown: in every
// day and month of the scopes, and for the budgets of its definition, own. It
// returns nil if every budget that applies has room for it beside what was used and
// what other runs hold. Otherwise it changes nothing and returns the budget that has
// not, which is not an error.
//
// What a run holds stays in the windows in which it began. An invalid amount is a
// *loop.AmountError. The rows stay locked until the transaction ends: to avoid
// deadlocks, call it, and SettleBudget, after what extends an audit chain.
func (t *RunTx) Reserve(ctx context.Context, scopes []loop.BudgetScope, own []loop.Budget, want loop.Amount) (*loop.Shortage, error) {
	short, err := t.reserve(ctx, scopes, own, want)
	if err != nil {
		return nil, fmt.Errorf("reserve for run %s: %w", t.run.ID, err)
	}
	return short, nil
}

func (t *RunTx) reserve(ctx context.Context, scopes []loop.BudgetScope, own []loop.Budget, want loop.Amount) (*loop.Shortage, error) {
	if err := want.Validate(); err != nil {
		return nil, err
	}
	v, _, err := t.reservation(ctx, t.run.ID)
	if err != nil {
		return nil, err
	}
	if v.settled {
		return nil, errors.New("it is settled")
	}
	for _, b := range own {
		scopes = append(scopes[:len(scopes):len(scopes)], b.Scope)
	}
	budgets, err := t.budgetsFor(ctx, scopes, own)
	if err != nil {
		return nil, err
	}
	in := spendingKeys(v.in, scopes, t.now)
	rows, err := t.lockSpending(ctx, in)
	if err != nil {
		return nil, err
	}
	if rows, err = v.addHeldTo(rows); err != nil {
		return nil, err
	}
	standing := joinStandings(budgets, in, rows)
	for i, s := range standing {
		if s.Budget.Window == loop.WindowRun {
			standing[i].Reserved = v.amount
		}
	}
	if short, ok := loop.CheckFunds(standing, v.amount, want); !ok {
		return &short, nil
	}
	for i := range rows {
		rest := rows[i].held.Sub(v.amount)
		if err := rest.Add(rows[i].used).CheckRoom(want); err != nil {
			return nil, err
		}
		rows[i].held = rest.Add(want)
	}
	v.amount, v.in = want, in
	return nil, errors.Join(t.saveSpending(ctx, rows), t.saveReservation(ctx, v))
}

// addHeldTo adds what the run holds already to the rows that did not count it.
func (v reservation) addHeldTo(rows []spending) ([]spending, error) {
	had := map[spendingKey]bool{}
	for _, p := range v.in {
		had[p] = true
	}
	for i, s := range rows {
		if had[s.spendingKey] {
			continue
		}
		if err := s.held.CheckRoom(v.amount); err != nil {
			return nil, err
		}
		rows[i].held = s.held.Add(v.amount)
	}
	return rows, nil
}

const useReservation = `UPDATE reservations SET used = $1 WHERE run_id = $2 AND settled = 0`

// Use records what the run has used so far, for recovery. A run that has reserved
// nothing, or is settled, is loop.ErrNotFound.
func (t *RunTx) Use(ctx context.Context, used loop.Amount) error {
	err := used.Validate()
	if err == nil {
		var n int64
		if n, err = t.exec(ctx, useReservation, encode(used), t.run.ID); err == nil && n == 0 {
			err = loop.ErrNotFound
		}
	}
	if err != nil {
		return fmt.Errorf("note what run %s has used: %w", t.run.ID, err)
	}
	return nil
}

// Reserved returns what the run holds and what was last known to be used of it.
// It is false for a run that has reserved nothing, or is settled.
func (t *RunTx) Reserved(ctx context.Context) (amount, used loop.Amount, ok bool, err error) {
	v, ok, err := t.reservation(ctx, t.run.ID)
	return v.amount, v.used, ok && !v.settled, err
}

// SettleBudget charges what the run has used, and frees what it held. Charge says how much
// that is: it gets what the run holds and what was last known to be used of it, and false
// if it has reserved nothing. The second time nothing is done. A run that has reserved nothing is charged in
// the windows of the scopes that hold now; otherwise the scopes that it was
// reserved in count, and the others are added. What was used is charged even
// where it is more than a cap.
func (t *RunTx) SettleBudget(ctx context.Context, scopes []loop.BudgetScope, charge func(held, seen loop.Amount, there bool) loop.Amount) error {
	if err := t.settle(ctx, scopes, charge); err != nil {
		return fmt.Errorf("settle the budget of run %s: %w", t.run.ID, err)
	}
	return nil
}

func (t *RunTx) settle(ctx context.Context, scopes []loop.BudgetScope, charge func(held, seen loop.Amount, there bool) loop.Amount) error {
	v, ok, err := t.reservation(ctx, t.run.ID)
	if err != nil || v.settled {
		return err
	}
	used := charge(v.amount, v.used, ok)
	if err := used.Validate(); err != nil || !ok && used.Zero() {
		return err
	}
	had := v.in
	v.used, v.in, v.settled = used, spendingKeys(v.in, scopes, t.now), true
	err = t.addSpending(ctx, v.in, used)
	if err == nil && !v.amount.Zero() {
		err = t.freeSpending(ctx, had, v.amount)
	}
	return errors.Join(err, t.saveReservation(ctx, v))
}

const chargedRuns = `
SELECT coalesce(v.used, ''), r.usage, r.agent_us
FROM   runs r LEFT JOIN reservations v ON v.run_id = r.id AND v.settled = 1
WHERE  r.loop_id = $1 AND r.state = 'ended' AND (r.agent_us > 0 OR v.run_id IS NOT NULL)
ORDER  BY r.n DESC LIMIT $2`

// History is what the newest ended runs of a loop were charged in which an
// agent acted, newest first, at most n. What no budget was charged for is made
// from the run: its tokens and the time of its agent.
func (r *Reader) History(ctx context.Context, loopID string, n int) ([]loop.Amount, error) {
	list, err := collect(ctx, r, chargedRuns, scanCharged, loopID, n)
	if err != nil {
		return nil, fmt.Errorf("read what runs of loop %s have used: %w", loopID, err)
	}
	return list, nil
}

func scanCharged(row interface{ Scan(...any) error }) (a loop.Amount, err error) {
	var charged, usage string
	var agent int64
	if err := row.Scan(&charged, &usage, &agent); err != nil {
		return a, err
	}
	if charged != "" {
		return a, decode("used", charged, &a)
	}
	var u loop.Usage
	err = decode("usage", usage, &u)
	return loop.Amount{Tokens: u.ChargedTokens(), Output: u.Output, Wall: fromMicros(agent)}, err
}

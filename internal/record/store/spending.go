package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// spendingKey identifies a row of spending: a scope and a window that began at
// Start.
type spendingKey struct {
	Scope  loop.BudgetScope  `json:"scope"`
	Window loop.BudgetWindow `json:"window"`
	Start  int64             `json:"start_ms"`
}

func compareSpendingKeys(a, b spendingKey) int {
	return cmp.Or(compareScopes(a.Scope, b.Scope), cmp.Compare(a.Window, b.Window), cmp.Compare(a.Start, b.Start))
}

// spendingKeys lists the rows in which a run of the scopes is counted, in the order
// in which rows are locked: those that it has already, and for the other scopes the
// rows of the current windows.
func spendingKeys(have []spendingKey, scopes []loop.BudgetScope, now time.Time) []spendingKey {
	list := slices.Clone(have)
	for _, s := range uniqueScopes(scopes) {
		if slices.ContainsFunc(have, func(p spendingKey) bool { return p.Scope == s }) {
			continue
		}
		for _, w := range []loop.BudgetWindow{loop.WindowDay, loop.WindowMonth} {
			list = append(list, spendingKey{s, w, millis(w.Start(now))})
		}
	}
	slices.SortFunc(list, compareSpendingKeys)
	return list
}

// spending is a row: what was used and what is held.
type spending struct {
	spendingKey
	used, held loop.Amount
}

const spendingColumns = `scope_kind, scope_id, window_name, start_ms, used_tokens, used_output, used_micro_usd, used_wall_ns, used_iterations,
used_items, held_tokens, held_output, held_micro_usd, held_wall_ns, held_iterations, held_items`

func scanSpending(row interface{ Scan(...any) error }) (s spending, err error) {
	var u, h loop.AmountParts
	err = row.Scan(&s.Scope.Kind, &s.Scope.ID, &s.Window, &s.Start, &u[0], &u[1], &u[2], &u[3], &u[4], &u[5], &h[0], &h[1], &h[2], &h[3], &h[4], &h[5])
	s.used, s.held = u.Amount(), h.Amount()
	return s, err
}

// lockSpending inserts the rows that are missing and locks all of them, in the order
// of the list, so that two transactions never wait for each other. The update
// changes nothing.
const lockSpending = `
INSERT INTO spending (scope_kind, scope_id, window_name, start_ms) VALUES {rows}
ON CONFLICT (scope_kind, scope_id, window_name, start_ms) DO UPDATE SET used_tokens = spending.used_tokens
RETURNING ` + spendingColumns

func (t *Tx) lockSpending(ctx context.Context, in []spendingKey) ([]spending, error) {
	if len(in) == 0 {
		return nil, nil
	}
	var args []any
	for _, p := range in {
		args = append(args, p.Scope.Kind, p.Scope.ID, string(p.Window), p.Start)
	}
	rows, err := collect(ctx, &t.Reader, fillRows(lockSpending, len(in), 4), scanSpending, args...)
	if err != nil {
		return nil, fmt.Errorf("lock what was spent: %w", err)
	}
	slices.SortFunc(rows, func(a, b spending) int { return compareSpendingKeys(a.spendingKey, b.spendingKey) })
	return rows, nil
}

// saveSpending writes whole rows, which lockSpending has read in this transaction.
const saveSpending = `
INSERT INTO spending (` + spendingColumns + `) VALUES {rows}
ON CONFLICT (scope_kind, scope_id, window_name, start_ms) DO UPDATE
SET    used_tokens = excluded.used_tokens, used_output = excluded.used_output, used_micro_usd = excluded.used_micro_usd,
       used_wall_ns = excluded.used_wall_ns, used_iterations = excluded.used_iterations, used_items = excluded.used_items,
       held_tokens = excluded.held_tokens, held_output = excluded.held_output, held_micro_usd = excluded.held_micro_usd,
       held_wall_ns = excluded.held_wall_ns, held_iterations = excluded.held_iterations, held_items = excluded.held_items`

func (t *Tx) saveSpending(ctx context.Context, rows []spending) error {
	if len(rows) == 0 {
		return nil
	}
	var args []any
	for _, s := range rows {
		args = append(args, s.Scope.Kind, s.Scope.ID, string(s.Window), s.Start)
		for _, part := range []loop.AmountParts{s.used.Parts(), s.held.Parts()} {
			for _, n := range part {
				args = append(args, n)
			}
		}
	}
	if _, err := t.exec(ctx, fillRows(saveSpending, len(rows), 16), args...); err != nil {
		return fmt.Errorf("save what was spent: %w", err)
	}
	return nil
}

// The numbers of an amount as the columns name them, in the order of loop.AmountParts.
var amountColumns = []string{"tokens", "output", "micro_usd", "wall_ns", "iterations", "items"}

// eachAmount writes a form once for each number, with its name in place of {n}.
func eachAmount(form string) string {
	var all []string
	for _, name := range amountColumns {
		all = append(all, strings.ReplaceAll(form, "{n}", name))
	}
	return strings.Join(all, ", ")
}

// addSpending inserts the rows that are missing. A sum that does not fit is the largest
// number, as with Amount.Add.
var addSpending = `
INSERT INTO spending (scope_kind, scope_id, window_name, start_ms, ` + eachAmount("used_{n}") + `) VALUES {rows}
ON CONFLICT (scope_kind, scope_id, window_name, start_ms) DO UPDATE SET ` +
	eachAmount("used_{n} = CASE WHEN spending.used_{n} > 9223372036854775807 - excluded.used_{n} THEN 9223372036854775807 ELSE spending.used_{n} + excluded.used_{n} END")

// addSpending counts what was used in rows, which it locks in the order of the list.
func (t *Tx) addSpending(ctx context.Context, in []spendingKey, used loop.Amount) error {
	if len(in) == 0 {
		return nil
	}
	var args []any
	var rows []string
	for i, p := range in {
		first := len(args) + 1
		args = append(args, p.Scope.Kind, p.Scope.ID, string(p.Window), p.Start)
		rows = append(rows, fmt.Sprintf("($%d, $%d, $%d, $%d, $5, $6, $7, $8, $9, $10)", first, first+1, first+2, first+3))
		if i == 0 { // All rows share the numbers.
			for _, n := range used.Parts() {
				args = append(args, n)
			}
		}
	}
	if _, err := t.exec(ctx, strings.ReplaceAll(addSpending, "{rows}", strings.Join(rows, ", ")), args...); err != nil {
		return fmt.Errorf("count what was spent: %w", err)
	}
	return nil
}

// freeSpending never goes below zero, as Amount.Sub.
const freeSpending = `UPDATE spending SET {numbers} WHERE {rows}`

// freeSpending gives back what a run holds in rows, which this transaction has locked.
func (t *Tx) freeSpending(ctx context.Context, in []spendingKey, held loop.Amount) error {
	var args []any
	var numbers, rows []string
	for i, n := range held.Parts() {
		args = append(args, n)
		numbers = append(numbers, fmt.Sprintf("held_%[1]s = CASE WHEN held_%[1]s > $%[2]d THEN held_%[1]s - $%[2]d ELSE 0 END", amountColumns[i], len(args)))
	}
	for _, p := range in {
		args = append(args, p.Scope.Kind, p.Scope.ID, string(p.Window), p.Start)
		n := len(args)
		rows = append(rows, fmt.Sprintf("(scope_kind = $%d AND scope_id = $%d AND window_name = $%d AND start_ms = $%d)", n-3, n-2, n-1, n))
	}
	query := strings.NewReplacer("{numbers}", strings.Join(numbers, ", "), "{rows}", strings.Join(rows, " OR ")).Replace(freeSpending)
	if _, err := t.exec(ctx, query, args...); err != nil {
		return fmt.Errorf("give back what was held: %w", err)
	}
	return nil
}

// fillRows fills in {rows}: n lists of parameters, each of so many columns.
func fillRows(query string, n, columns int) string {
	var b strings.Builder
	for i := range n {
		for j := range columns {
			b.WriteString(map[bool]string{true: "(", false: ", "}[j == 0])
			fmt.Fprintf(&b, "$%d", i*columns+j+1)
		}
		b.WriteString(map[bool]string{true: ")", false: "), "}[i == n-1])
	}
	return strings.ReplaceAll(query, "{rows}", b.String())
}

// rowsAtOnce is how many rows one statement inserts: a few parameters each stay far
// below the limits of both databases.
const rowsAtOnce = 100

// insertLast is insertRows right before the commit.
func (t *Tx) insertLast(doing, query string, rows [][]any) {
	for part := range slices.Chunk(rows, rowsAtOnce) {
		t.execLast(doing, fillRows(query, len(part), len(part[0])), slices.Concat(part...)...)
	}
}

// insertRows runs an INSERT in which {rows} stands for the rows.
func (t *Tx) insertRows(ctx context.Context, query string, rows [][]any) error {
	for part := range slices.Chunk(rows, rowsAtOnce) {
		if _, err := t.exec(ctx, fillRows(query, len(part), len(part[0])), slices.Concat(part...)...); err != nil {
			return err
		}
	}
	return nil
}

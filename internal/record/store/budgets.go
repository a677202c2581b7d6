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

const (
	saveBudget = `
INSERT INTO budgets (scope_kind, scope_id, window_name, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (scope_kind, scope_id, window_name) DO UPDATE SET body = excluded.body`
	// lockBudget inserts the row if it is missing, and locks it.
	lockBudget = `
INSERT INTO budgets (scope_kind, scope_id, window_name, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (scope_kind, scope_id, window_name) DO UPDATE SET body = budgets.body
RETURNING body`
	dropBudget = `DELETE FROM budgets WHERE scope_kind = $1 AND scope_id = $2 AND window_name = $3`
)

// SetBudget makes b the budget of its scope and window. A zero cap removes it. An
// invalid amount is a *loop.AmountError. Runs that hold more than a lower cap keep
// what they hold, and no other run is funded beside them.
func (t *Tx) SetBudget(ctx context.Context, b loop.Budget) error {
	if err := validBudget(b); err != nil {
		return fmt.Errorf("set the %s budget of %s: %w", b.Window, scopeName(b.Scope), err)
	}
	if b.Set.IsZero() {
		b.Set = fromMillis(millis(t.now))
	}
	var err error
	if b.Cap.Zero() {
		_, err = t.exec(ctx, dropBudget, b.Scope.Kind, b.Scope.ID, string(b.Window))
	} else {
		_, err = t.exec(ctx, saveBudget, b.Scope.Kind, b.Scope.ID, string(b.Window), encode(b))
	}
	if err != nil {
		return fmt.Errorf("set the %s budget of %s: %w", b.Window, scopeName(b.Scope), err)
	}
	of := "" // the loop
	if b.Scope.Kind == loop.BudgetLoop {
		of = b.Scope.ID
	}
	t.announce(loop.FeedBudget, b.Scope.Kind+"/"+b.Scope.ID, of, "")
	return nil
}

// ChangeBudget is SetBudget with a cap that change computes from the present one,
// zero at first; nobody else changes it in between. It returns both. If the cap stays
// the same, so does the budget.
func (t *Tx) ChangeBudget(ctx context.Context, b loop.Budget, change func(before loop.Amount) loop.Amount) (before, after loop.Amount, err error) {
	none := loop.Budget{Scope: b.Scope, Window: b.Window}
	if err := validBudget(none); err != nil {
		return before, after, fmt.Errorf("change the %s budget of %s: %w", b.Window, scopeName(b.Scope), err)
	}
	present, err := scanBody[loop.Budget](t.queryRow(ctx, lockBudget, b.Scope.Kind, storableText(b.Scope.ID), string(b.Window), encode(none)))
	if err != nil {
		return before, after, fmt.Errorf("read the %s budget of %s: %w", b.Window, scopeName(b.Scope), err)
	}
	if b.Cap = change(present.Cap); b.Cap == present.Cap {
		b = present
	}
	return present.Cap, b.Cap, t.SetBudget(ctx, b)
}

// scopeOrder and windowOrder are the kinds and the windows, and the order in
// which rows are locked. The row that all runs share is locked last.
var (
	scopeOrder  = []string{loop.BudgetLoop, loop.BudgetAgent, loop.BudgetWorkspace, loop.BudgetAll}
	windowOrder = []loop.BudgetWindow{loop.WindowRun, loop.WindowDay, loop.WindowMonth}
)

func validBudget(b loop.Budget) error {
	switch {
	case !slices.Contains(scopeOrder, b.Scope.Kind):
		return fmt.Errorf("%q is not a kind of scope", b.Scope.Kind)
	case !slices.Contains(windowOrder, b.Window):
		return fmt.Errorf("%q is not a window", b.Window)
	}
	return b.Cap.Validate()
}

func scopeName(s loop.BudgetScope) string { return strings.TrimSpace(s.Kind + " " + s.ID) }

func compareScopes(a, b loop.BudgetScope) int {
	return cmp.Or(cmp.Compare(slices.Index(scopeOrder, a.Kind), slices.Index(scopeOrder, b.Kind)), cmp.Compare(a.ID, b.ID))
}

func compareBudgets(a, b loop.Budget) int {
	return cmp.Or(compareScopes(a.Scope, b.Scope), cmp.Compare(slices.Index(windowOrder, a.Window), slices.Index(windowOrder, b.Window)))
}

const allBudgets = `SELECT body FROM budgets`

// Budgets lists every budget that was set, the narrowest scopes first.
func (r *Reader) Budgets(ctx context.Context) ([]loop.Budget, error) {
	list, err := collect(ctx, r, allBudgets, scanBody[loop.Budget])
	if err != nil {
		return nil, fmt.Errorf("read the budgets: %w", err)
	}
	slices.SortFunc(list, compareBudgets)
	return list, nil
}

const budgetsOf = `SELECT body FROM budgets WHERE {scopes}`

// budgetsFor lists own and the budgets that are set for any of the scopes.
func (r *Reader) budgetsFor(ctx context.Context, scopes []loop.BudgetScope, own []loop.Budget) ([]loop.Budget, error) {
	for _, b := range own {
		if err := validBudget(b); err != nil {
			return nil, fmt.Errorf("the %s budget of %s: %w", b.Window, scopeName(b.Scope), err)
		}
	}
	list := slices.Clone(own)
	for part := range slices.Chunk(scopes, scopesAtOnce) {
		query, args := fillScopes(budgetsOf, part, nil)
		set, err := collect(ctx, r, query, scanBody[loop.Budget], args...)
		if err != nil {
			return nil, fmt.Errorf("read the budgets of %s: %w", scopeName(part[0]), err)
		}
		list = append(list, set...)
	}
	slices.SortStableFunc(list, compareBudgets)
	return list, nil
}

// scopesAtOnce is how many scopes one statement compares with. Each makes its
// expression deeper, and SQLite takes at most 1,000 levels.
const scopesAtOnce = 200

// fillScopes fills in {scopes}: the row is of one of them.
func fillScopes(query string, scopes []loop.BudgetScope, args []any) (string, []any) {
	var any []string
	for _, s := range scopes {
		args = append(args, s.Kind, s.ID)
		any = append(any, fmt.Sprintf("(scope_kind = $%d AND scope_id = $%d)", len(args)-1, len(args)))
	}
	return strings.ReplaceAll(query, "{scopes}", "("+strings.Join(any, " OR ")+")"), args
}

const spendingOf = `SELECT ` + spendingColumns + ` FROM spending WHERE start_ms IN ($1, $2) AND {scopes}`

// Standings returns what is used and held of every budget that applies to any of the
// scopes, and of own, in the current windows. A window of a run is empty before the
// run.
func (r *Reader) Standings(ctx context.Context, scopes []loop.BudgetScope, own []loop.Budget, now time.Time) ([]loop.Standing, error) {
	budgets, err := r.budgetsFor(ctx, scopes, own)
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	var among []loop.BudgetScope
	for _, b := range budgets {
		among = append(among, b.Scope)
	}
	among = uniqueScopes(among)
	var rows []spending
	for part := range slices.Chunk(among, scopesAtOnce) {
		query, args := fillScopes(spendingOf, part, []any{millis(loop.WindowDay.Start(now)), millis(loop.WindowMonth.Start(now))})
		spent, err := collect(ctx, r, query, scanSpending, args...)
		if err != nil {
			return nil, fmt.Errorf("read what was spent: %w", err)
		}
		rows = append(rows, spent...)
	}
	return joinStandings(budgets, spendingKeys(nil, among, now), rows), nil
}

func uniqueScopes(scopes []loop.BudgetScope) []loop.BudgetScope {
	scopes = slices.Clone(scopes)
	slices.SortFunc(scopes, compareScopes)
	return slices.Compact(scopes)
}

// joinStandings joins budgets with what was spent.
func joinStandings(budgets []loop.Budget, in []spendingKey, rows []spending) []loop.Standing {
	found := map[spendingKey]spending{}
	for _, s := range rows {
		found[s.spendingKey] = s
	}
	start := map[spendingKey]int64{} // by scope and window
	for _, p := range in {
		start[spendingKey{Scope: p.Scope, Window: p.Window}] = p.Start
	}
	var list []loop.Standing
	for _, b := range budgets {
		s := loop.Standing{Budget: b}
		p := spendingKey{Scope: b.Scope, Window: b.Window}
		if at, ok := start[p]; ok {
			p.Start = at
			s.Used, s.Reserved, s.Opens = found[p].used, found[p].held, b.Window.End(fromMillis(at))
		}
		list = append(list, s)
	}
	return list
}

package budgets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Target is whose budget a verb is about. Exactly one field is set; the
// zero Target is every budget.
type Target struct {
	Loop      string `json:"loop,omitempty"`
	Agent     string `json:"agent,omitempty"`           // name in the roster, with or without the @
	Workspace bool   `json:"whole_workspace,omitempty"` // all loops of this one
	All       bool   `json:"all,omitempty"`             // everything that the store knows of
}

// Row is how one cap of a budget stands, schema pawl.budget/v1. The
// numbers are in the unit of What: wall in nanoseconds, micro_usd in millionths
// of a US dollar.
type Row struct {
	Scope    string            `json:"scope"`          // loop agent workspace all
	Name     string            `json:"name,omitempty"` // of the loop or the agent, or the place of the workspace
	Window   loop.BudgetWindow `json:"window"`
	What     string            `json:"what"` // one of loop.Dimensions
	Cap      int64             `json:"cap"`
	Used     int64             `json:"used"`
	Reserved int64             `json:"reserved"` // by runs that are not settled
	Left     int64             `json:"left"`
	Opens    *time.Time        `json:"opens"` // when the next window does; null for the window of a run
	By       string            `json:"by"`    // who set it; "definition": the loop's own
}

// Whose is the scope for people.
func (r Row) Whose() string {
	if r.Scope == loop.BudgetAll {
		return "all"
	}
	return strings.TrimSpace(r.Scope + " " + r.Name)
}

// Show says how the budgets stand that bound the target: for a loop those of
// its agent, of the workspace and of everything too.
func (s *Service) Show(ctx context.Context, t Target) ([]Row, error) {
	loops, err := s.budgetedLoops(ctx, t)
	if err != nil {
		return nil, err
	}
	if t.Loop != "" {
		return s.OfLoop(ctx, loops[0])
	}
	var own []loop.Budget
	for _, l := range loops {
		own = append(own, plan.DefinitionBudgets(l.Usable(), l.LoopID())...)
	}
	scopes, err := s.scopesWith(ctx, t)
	if err != nil {
		return nil, err
	}
	standing, err := s.standings(ctx, scopes, own)
	return s.budgetRows(standing, loops), err
}

// budgetedLoops are the loops whose definitions count: one, all, or none.
func (s *Service) budgetedLoops(ctx context.Context, t Target) ([]lookup.Loop, error) {
	switch t {
	case Target{Loop: t.Loop}:
		if t.Loop == "" {
			return s.ws.AllLoops(ctx)
		}
		l, err := s.ws.Loop(ctx, t.Loop)
		return []lookup.Loop{l}, err
	}
	return nil, nil
}

// scopesWith are the scopes that a target names: with none, all that have a
// budget.
func (s *Service) scopesWith(ctx context.Context, t Target) (scopes []loop.BudgetScope, err error) {
	switch {
	case t.Agent != "":
		return []loop.BudgetScope{agentScope(t.Agent)}, nil
	case t.Workspace:
		return []loop.BudgetScope{{Kind: loop.BudgetWorkspace, ID: s.ws.ID}}, nil
	case t.All:
		return []loop.BudgetScope{{Kind: loop.BudgetAll}}, nil
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		set, err := r.Budgets(ctx)
		for _, b := range set {
			if !slices.Contains(scopes, b.Scope) {
				scopes = append(scopes, b.Scope)
			}
		}
		return err
	})
	if lookup.Absent(err) {
		err = nil
	}
	return scopes, err
}

func agentScope(name string) loop.BudgetScope {
	return loop.BudgetScope{Kind: loop.BudgetAgent, ID: strings.TrimPrefix(name, "@")}
}

// OfLoop says how the budgets stand that bound a loop.
func (s *Service) OfLoop(ctx context.Context, l lookup.Loop) ([]Row, error) {
	id := l.LoopID()
	scopes := []loop.BudgetScope{{Kind: loop.BudgetLoop, ID: id}, {Kind: loop.BudgetWorkspace, ID: s.ws.ID}, {Kind: loop.BudgetAll}}
	if name := actsIn(l); name != "" {
		scopes = append(scopes, agentScope(name))
	}
	standing, err := s.standings(ctx, scopes, plan.DefinitionBudgets(l.Usable(), id))
	return s.budgetRows(standing, []lookup.Loop{l}), err
}

// actsIn is the name in the roster of who acts in a loop: a program that only the
// definition knows has that of its driver. Where nobody is named it is who last
// did, and empty if nobody has.
func actsIn(l lookup.Loop) string {
	switch d := l.Usable(); {
	case d.Agent != "":
		return d.Agent
	case d.AgentCommand != "":
		return turn.Command
	case l.Last != nil:
		return l.Last.Agent
	}
	return ""
}

// standings is that of the store. Without one nothing has been spent.
func (s *Service) standings(ctx context.Context, scopes []loop.BudgetScope, own []loop.Budget) (standing []loop.Standing, err error) {
	now := s.ws.Now()
	err = s.ws.View(ctx, func(r *store.Reader) error {
		standing, err = r.Standings(ctx, scopes, own, now)
		return err
	})
	if !lookup.Absent(err) {
		return standing, err
	}
	for _, b := range own {
		standing = append(standing, loop.Standing{Budget: b, Opens: b.Window.End(now)})
	}
	return standing, nil
}

// The scopes and windows of budgets, the narrowest first.
var (
	budgetScopes  = []string{loop.BudgetLoop, loop.BudgetAgent, loop.BudgetWorkspace, loop.BudgetAll}
	budgetWindows = []loop.BudgetWindow{loop.WindowRun, loop.WindowDay, loop.WindowMonth}
)

func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(slices.Index(budgetScopes, a.Scope), slices.Index(budgetScopes, b.Scope)), cmp.Compare(a.Name, b.Name),
		cmp.Compare(slices.Index(budgetWindows, a.Window), slices.Index(budgetWindows, b.Window)),
	)
}

// budgetRows takes the caps of the budgets apart, and puts the narrowest first.
func (s *Service) budgetRows(standing []loop.Standing, loops []lookup.Loop) []Row {
	rows := []Row{}
	names := map[string]string{} // of loops, by id
	for _, l := range loops {
		names[l.LoopID()] = l.Name
	}
	for _, st := range standing {
		for i, most := range st.Budget.Cap.Parts() {
			if most == 0 {
				continue
			}
			used, reserved := st.Used.Parts()[i], st.Reserved.Parts()[i]
			rows = append(rows, Row{
				Scope: st.Budget.Scope.Kind, Name: s.scopeName(st.Budget.Scope, names), Window: st.Budget.Window, What: loop.Dimensions[i],
				Cap: most, Used: used, Reserved: reserved, Left: max(0, most-min(used, most)-min(reserved, most)),
				Opens: shape.Time(st.Opens), By: st.Budget.By,
			})
		}
	}
	slices.SortStableFunc(rows, compareRows)
	return rows
}

// scopeName is what people call a scope; the id of what is not known here.
func (s *Service) scopeName(b loop.BudgetScope, loops map[string]string) string {
	switch b.Kind {
	case loop.BudgetLoop:
		if name, ok := loops[b.ID]; ok {
			return name
		}
	case loop.BudgetAgent:
		return "@" + b.ID
	case loop.BudgetWorkspace:
		if b.ID == s.ws.ID {
			return s.ws.Root
		}
	}
	return b.ID
}

// Change sets caps of one budget. Caps maps names of flags (usd tokens
// output wall iterations items) to what was written: a number, or none to
// remove the cap. What it does not name stays.
type Change struct {
	Target Target            `json:"target"`
	Window string            `json:"window"`
	Caps   map[string]string `json:"caps"`
	By     loop.Actor        `json:"-"`
}

// Set changes caps, as a link in the audit chain of the loop, or of the
// workspace in which a wider one was set, and says how the budget stands. What
// is no cap is a *loop.Fault that names it, and nothing changes.
func (s *Service) Set(ctx context.Context, c Change) ([]Row, error) {
	window := loop.BudgetWindow(c.Window)
	if !slices.Contains(budgetWindows, window) {
		return nil, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --window %q", c.Window), Why: "there is no such window", Fix: "write run, day or month"}
	}
	caps, err := parseCaps(c.Caps)
	if err != nil {
		return nil, err
	}
	loops, err := s.budgetedLoops(ctx, c.Target)
	if err != nil {
		return nil, err
	}
	b := loop.Budget{Window: window, By: c.By.Who}
	if c.Target.Loop != "" {
		b.Scope = loop.BudgetScope{Kind: loop.BudgetLoop, ID: loops[0].LoopID()}
	} else {
		scopes, err := s.scopesWith(ctx, c.Target)
		if err != nil {
			return nil, err
		}
		b.Scope = scopes[0]
	}
	if err := s.ws.Store.Update(ctx, func(tx *store.Tx) error { return s.setCaps(ctx, tx, c.By, b, caps) }); err != nil {
		return nil, err
	}
	standing, err := s.standings(ctx, []loop.BudgetScope{b.Scope}, nil)
	standing = slices.DeleteFunc(standing, func(st loop.Standing) bool { return st.Budget.Window != window })
	return s.budgetRows(standing, loops), err
}

// setCaps puts the caps over those that stand. A loop that has never run has no chain
// of its own.
func (s *Service) setCaps(ctx context.Context, tx *store.Tx, by loop.Actor, b loop.Budget, caps map[int]int64) error {
	chain := s.ws.ID
	if b.Scope.Kind == loop.BudgetLoop {
		switch _, err := tx.LockLoop(ctx, b.Scope.ID); {
		case err == nil:
			chain = b.Scope.ID
		case !lookup.Absent(err):
			return err
		}
	}
	before, after, err := tx.ChangeBudget(ctx, b, func(stands loop.Amount) loop.Amount {
		p := stands.Parts()
		for i, n := range caps {
			p[i] = n
		}
		return p.Amount()
	})
	if err != nil || after == before {
		return err
	}
	return tx.LinkBy(ctx, by, chain, loop.LinkBudget, "", map[string]any{
		"scope": b.Scope, "window": b.Window, "by": b.By, "before": before, "after": after,
	})
}

package specs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var (
	beforeChild = fault.New("specs.child.commit.before")
	afterChild  = fault.New("specs.child.commit.after")
)

// insertChild stores a spec that an agent makes inside of a run, below the loop of that run, and
// returns its id. One of the same key and goal is there already. Stored is as for insert.
//
// Its budget comes out of that of the loops above it. The life of a spec is divided here. A
// day or a month is not: each run of the child reserves in those of all loops above it.
func (s *Service) insertChild(ctx context.Context, by loop.Actor, spec loopspec.Spec, r CreateRequest, stored func(tx *store.Tx, id string) error) (string, error) {
	tools, err := s.inheritTools(ctx, by.Grant.Inside, spec)
	if err != nil {
		return "", err
	}
	for try := 0; ; try++ {
		random, err := randomBytes()
		if err != nil {
			return "", err
		}
		if spec.ID = loopspec.NewID(random); r.Key != "" {
			spec.ID = idOfKey(r.Key, try)
			if _, before, err := s.find(ctx, spec.ID); err == nil && before.Goal == spec.Goal && try == 0 {
				return spec.ID, nil // The caller of before did not hear of it.
			}
		}
		if err := beforeChild.Hit(ctx); err != nil {
			return "", err
		}
		added, undo := false, func() {}
		err = s.ws.Store.Update(ctx, func(tx *store.Tx) (err error) {
			undo() // The database has refused the try before.
			undo = func() {}
			child := spec
			child.CreatedAt, child.UpdatedAt = tx.Now().UnixMilli(), tx.Now().UnixMilli()
			l, err := s.below(ctx, tx, by, &child)
			if err != nil {
				return err
			}
			l.PawlTools = tools
			if undo, err = s.takeLife(by.Grant.Inside, l.Lent); err != nil {
				undo = func() {}
				return err
			}
			if added, err = s.add(ctx, tx, by, child, l); err != nil || !added {
				return err
			}
			return stored(tx, child.ID)
		})
		if err != nil || !added {
			undo()
		}
		if err != nil || added {
			return spec.ID, errors.Join(err, afterChild.Hit(ctx))
		}
	}
}

// pathsAbove are what the loop of a run may change, as a template takes paths: what its agent makes
// changes nothing else. Everything is true if all may be changed that is not protected.
func (s *Service) pathsAbove(ctx context.Context, in *loop.Inside) (paths []string, everything bool, err error) {
	var d loop.Definition
	err = s.ws.View(ctx, func(r *store.Reader) error {
		l, err := r.Loop(ctx, in.LoopID)
		if err == nil && l.Definition != "" {
			d, err = r.Definition(ctx, l.Definition)
		}
		return err
	})
	if err != nil || d.Tier == loop.TierReport {
		return nil, false, err
	}
	for _, glob := range d.Scope {
		if glob == "**" || glob == "**/*" {
			return nil, true, nil
		}
		if p := "/" + strings.TrimSuffix(glob, "/**"); !strings.ContainsAny(p, "*?[]{}!") {
			paths = append(paths, p)
		}
	}
	return paths, false, nil
}

// checkChangesNothing refuses a spec that may change files, below a loop that changes none.
func checkChangesNothing(in *loop.Inside, spec loopspec.Spec) error {
	if d, _ := spec.Definition(spec.ID); d.Tier == loop.TierReport {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: "make a loop below " + in.Loop, Why: "the template changes files, and " + in.Loop + " may change none that a template can name", Err: loop.ErrGrant,
		Fix: "use a template that only reports, or leave it out",
	}
}

// inheritTools are those of pawl's tools that a child has: what its parent has, if its agent's
// program can use them.
func (s *Service) inheritTools(ctx context.Context, in *loop.Inside, spec loopspec.Spec) (loop.PawlTools, error) {
	d, _ := spec.Definition(spec.ID)
	d.PawlTools = in.Tools
	_, err := s.ws.Actor(ctx, d)
	if _, unable := errors.AsType[*loop.Fault](err); unable {
		return "", nil
	}
	return in.Tools, err
}

// below decides whether the run may make one more loop below its own, and with which budget,
// which it writes into the child. The parent stays locked until the transaction ends: children
// that are made at once are counted one after another.
func (s *Service) below(ctx context.Context, tx *store.Tx, by loop.Actor, child *loopspec.Spec) (loop.Loop, error) {
	in := by.Grant.Inside
	parent, err := tx.LockLoop(ctx, in.LoopID)
	if err != nil {
		return loop.Loop{}, err
	}
	refuse := func(code error, exit int, why, fix string) error {
		return &loop.Fault{Exit: exit, What: "make a loop below " + in.Loop, Why: why, Fix: fix, Err: code}
	}
	if parent.Depth >= loop.MaxDepth {
		return loop.Loop{}, refuse(loop.ErrDepth, loop.ExitRefused, fmt.Sprintf("%s has depth %d, and loops go no deeper than %d", in.Loop, parent.Depth, loop.MaxDepth), "do the work in this run")
	}
	made, err := tx.ChildrenToday(ctx, parent.ID)
	if err != nil {
		return loop.Loop{}, err
	}
	if made >= loop.MaxChildrenDay {
		return loop.Loop{}, refuse(loop.ErrChildren, loop.ExitRefused, fmt.Sprintf("runs of %s have made %d loops since midnight UTC, and may make %d a day", in.Loop, made, loop.MaxChildrenDay), "use one of them, or go on tomorrow")
	}
	l := loop.Loop{Parent: parent.ID, Depth: parent.Depth + 1, MadeBy: in.RunID}
	left, what, err := s.leftAbove(ctx, tx, parent)
	if err != nil {
		return l, err
	}
	if left < 1 {
		return l, refuse(nil, loop.ExitBudget, "nothing is left of "+what, "wait until the budget opens again")
	}
	child.Budget.MaxTokens = min(child.Budget.MaxTokens, left)
	if parent.Protocol != loop.ProtocolSpec {
		return l, nil
	}
	row, spec, err := s.lock(ctx, tx, parent.Name)
	if errors.Is(err, loop.ErrNotFound) { // A loop without a document, whose runs have their own limits alone.
		return l, nil
	}
	if err != nil {
		return l, err
	}
	given, err := tx.LentToChildren(ctx, parent.ID)
	if err != nil {
		return l, err
	}
	// What the run that is under way has used, and what it needs, is not in its row yet.
	alive, capped, err := s.Lives.LifeLeft(by.Grant.Inside)
	if err != nil {
		return l, err
	}
	if capped {
		child.Budget.MaxTokens = min(child.Budget.MaxTokens, alive)
	}
	has := spec.Budget
	has.MaxIterations, has.MaxTokens = has.MaxIterations-given.Iterations, has.MaxTokens-given.Tokens
	used := loopspec.Used(row.Step.Attempts+1, row.Step.Tokens)
	want := child.Budget
	want.MaxIterations, want.MaxTokens = min(want.MaxIterations, has.MaxIterations-used.MaxIterations-1), min(want.MaxTokens, has.MaxTokens-used.MaxTokens-1)
	if want.MaxIterations < 1 || want.MaxTokens < 1 {
		return l, refuse(nil, loop.ExitBudget, fmt.Sprintf("of the budget of %s, %d iterations and %d tokens are left to give", in.Loop, max(0, want.MaxIterations), max(0, want.MaxTokens)), "do the work in this run")
	}
	carved, _, refused := loopspec.Carve(has, used, want)
	if refused != "" {
		return l, refuse(nil, loop.ExitBudget, in.Loop+": "+refused, "do the work in this run")
	}
	child.Budget = carved
	l.Lent = loop.Amount{Iterations: carved.MaxIterations, Tokens: carved.MaxTokens}
	return l, nil
}

// leftAbove is how many tokens are left in the days and months of a loop and of those above it,
// and what has least left. Nothing is left if one of them has no money left.
func (s *Service) leftAbove(ctx context.Context, tx *store.Tx, parent loop.Loop) (left int64, what string, err error) {
	above, err := tx.Ancestors(ctx, parent.ID)
	if err != nil {
		return 0, "", err
	}
	var scopes []loop.BudgetScope
	var own []loop.Budget
	names := map[string]string{}
	for _, l := range append(above, parent) {
		names[l.ID] = l.Name
		scopes = append(scopes, loop.BudgetScope{Kind: loop.BudgetLoop, ID: l.ID})
		if l.Definition == "" {
			continue
		}
		d, err := tx.Definition(ctx, l.Definition)
		if err != nil {
			return 0, "", err
		}
		own = append(own, plan.DefinitionBudgets(d, l.ID)...)
	}
	standings, err := tx.Standings(ctx, scopes, own, tx.Now())
	left = math.MaxInt64
	for _, st := range standings {
		if st.Budget.Window == loop.WindowRun {
			continue
		}
		rest := st.Budget.Cap.Sub(st.Used).Sub(st.Reserved)
		words := fmt.Sprintf("the %s budget of %s", st.Budget.Window, names[st.Budget.Scope.ID])
		if st.Budget.Cap.Tokens > 0 && rest.Tokens < left {
			left, what = rest.Tokens, fmt.Sprintf("%s: %d of %d tokens are used, and %d are reserved", words, st.Used.Tokens, st.Budget.Cap.Tokens, st.Reserved.Tokens)
		}
		if st.Budget.Cap.MicroUSD > 0 && rest.MicroUSD == 0 {
			left, what = 0, fmt.Sprintf("%s: $%.4f of $%.4f are used, and $%.4f are reserved", words, dollars(st.Used.MicroUSD), dollars(st.Budget.Cap.MicroUSD), dollars(st.Reserved.MicroUSD))
		}
	}
	return left, what, err
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

// takeLife takes what a child gets of its parent's life from the run that makes it.
func (s *Service) takeLife(in *loop.Inside, lent loop.Amount) (undo func(), err error) {
	if lent.Zero() {
		return func() {}, nil
	}
	return s.Lives.GiveToChild(in, lent)
}

// returnLife gives back to its parent what a spec that is removed has not used of what was taken
// out of that one's life.
func returnLife(ctx context.Context, tx *store.Tx, l loop.Loop, row store.Spec) error {
	if l.Lent.Zero() {
		return nil
	}
	used := loop.Amount{Iterations: int64(row.Step.Attempts), Tokens: row.Step.Tokens}
	return tx.SetLent(ctx, l.ID, l.Lent.Sub(l.Lent.Sub(used)))
}

// family says where a spec comes from that an agent made: the loop above it, by name, how deep it
// is, and the run that made it.
func (s *Service) family(ctx context.Context, r *store.Reader, row store.Spec) (f Family, err error) {
	l, err := r.Loop(ctx, row.LoopID)
	if err != nil || l.Parent == "" {
		return f, err
	}
	f.Depth, f.MadeBy, f.PawlTools = l.Depth, l.MadeBy, l.PawlTools
	parent, err := r.Loop(ctx, l.Parent)
	f.Parent = parent.Name
	return f, err
}

// Family is where a loop comes from that an agent made inside of a run. The zero Family is of one
// that people made.
type Family struct {
	Parent    string         `json:"parent,omitempty"` // name of the loop of that run
	Depth     int            `json:"depth,omitempty"`
	MadeBy    string         `json:"madeByRun,omitempty"` // id of that run
	PawlTools loop.PawlTools `json:"pawlTools,omitempty"` // that its agent has inherited
}

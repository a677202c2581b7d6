package specs_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

// hosts are the runs in whose turns agents act, by id, as the engine knows them.
type hosts struct {
	mu  sync.Mutex
	all map[string]*budget.Ledger
}

func (h *hosts) find(in *loop.Inside) (*budget.Ledger, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.all[in.RunID]
	if !ok {
		return nil, loop.ErrLeaseLost
	}
	return l, nil
}

func (h *hosts) LifeLeft(in *loop.Inside) (int64, bool, error) {
	l, err := h.find(in)
	if err != nil {
		return 0, false, err
	}
	tokens, capped := l.LifeLeft()
	return tokens, capped, nil
}

func (h *hosts) GiveToChild(in *loop.Inside, lent loop.Amount) (func(), error) {
	l, err := h.find(in)
	if err != nil {
		return nil, err
	}
	return l.Give(lent.Tokens)
}

// tree is a rig on which runs are fired, spend and settle without an agent.
type tree struct {
	rig
	hosts *hosts
	n     int
}

func newTree(r *verbtest.Rig) *tree {
	h := &hosts{all: map[string]*budget.Ledger{}}
	t := &tree{rig: rig{r, specs.New(r.Workspace, specs.Deps{Environ: os.Environ(), Engine: r.Engine, Lives: h})}, hosts: h}
	t.saveAgent("doer", "true")
	return t
}

func (t *tree) ok(err error) {
	t.T.Helper()
	if err != nil {
		t.T.Fatal(err)
	}
}

// live is a run under way.
type live struct {
	run    loop.Run
	ledger *budget.Ledger
	life   int64 // of its loop, in tokens; 0: it has none
	by     loop.Actor
}

// loopRow is the row of a loop.
func (t *tree) loopRow(name, protocol string) loop.Loop {
	t.T.Helper()
	return t.LoopRow(protocol, name)
}

// begin fires a run of a loop, and reserves what it needs. It is nil if no budget pays for it.
func (t *tree) begin(name, protocol string) *live {
	t.T.Helper()
	ctx := t.T.Context()
	t.n++
	l := &live{}
	row := t.loopRow(name, protocol)
	most := int64(0)
	t.ok(t.Store.View(ctx, func(r *store.Reader) error {
		spec, err := r.Spec(ctx, name)
		if errors.Is(err, loop.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		read, _ := loopspec.Decode([]byte(spec.Body))
		lent, err := r.LentToChildren(ctx, row.ID)
		l.life = read.Spec.Budget.MaxTokens
		most = l.life - lent.Tokens - spec.Step.Tokens
		return err
	}))
	if l.life > 0 && most < 1 {
		return nil // The engine works no step of a spec whose life is used up.
	}
	t.ok(t.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if row, err = tx.Number(ctx, t.Workspace.ID, protocol, name); err != nil {
			return err
		}
		l.run, err = tx.FireClaimed(ctx, loop.Run{ID: fmt.Sprintf("run_%s_%d", name, t.n), LoopID: row.ID, N: row.LastN, Key: fmt.Sprint(name, t.n), Trigger: "manual", Definition: row.Definition}, t.Self)
		return err
	}))
	o := budget.Owner{Store: t.Store, Now: t.Store.Now, Run: l.run, Loop: name, Workspace: t.Workspace.ID, Agent: "doer", MostTokens: most}
	l.ledger = budget.New(o)
	t.ok(l.ledger.Open(ctx))
	err := t.Store.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Enter(ctx, l.run, loop.PhaseDecide)
		if err != nil {
			return err
		}
		return l.ledger.Reserve(ctx, rt)
	})
	if budget.IsShort(err) {
		t.end(l, false)
		return nil
	}
	t.ok(err)
	in := &loop.Inside{RunID: l.run.ID, Fence: l.run.Fence, LoopID: row.ID, Loop: name, Workspace: t.Workspace.ID, Depth: row.Depth, Handle: "doer", Tools: loop.PawlToolsPost}
	l.by = loop.Actor{Who: "@doer of " + name, Role: loop.RoleAgent, From: "run", Run: l.run.ID, Grant: &loop.Grant{Inside: in}}
	t.hosts.mu.Lock()
	t.hosts.all[l.run.ID] = l.ledger
	t.hosts.mu.Unlock()
	return l
}

// spend lets the agent of a run use tokens, if it may.
func (t *tree) spend(l *live, tokens int64) {
	u := loop.Usage{Input: tokens / 2, Output: tokens - tokens/2}
	charge, err := l.ledger.Account().Open(t.T.Context(), spend.Call{Model: "m", Input: u.Input, Output: u.Output})
	if err == nil {
		u.Output = min(u.Output, charge.Output) // The vendor keeps to it.
		charge.Settle("m", u)
	}
}

// end settles a run, as recovery does if its process died.
func (t *tree) end(l *live, died bool) {
	t.T.Helper()
	ctx := t.T.Context()
	used := l.ledger.Account().Used()
	t.hosts.mu.Lock()
	delete(t.hosts.all, l.run.ID)
	t.hosts.mu.Unlock()
	t.ok(t.Store.Update(ctx, func(tx *store.Tx) error {
		ended := l.run
		ended.Outcome, ended.Reason = loop.OutcomeFailed, loop.ReasonAgentFailed
		rt, err := tx.Settle(ctx, ended, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		if l.life > 0 {
			step := loop.Step{ID: "st_" + l.run.LoopID, LoopID: l.run.LoopID, Key: "goal", Kind: loop.StepWork, Title: "goal", State: loop.StepOpen}
			steps, err := tx.Steps(ctx, l.run.LoopID)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(steps, func(s loop.Step) bool { return s.Key == "goal" }); i >= 0 {
				step = steps[i]
			}
			step.Attempts, step.Tokens = step.Attempts+1, step.Tokens+used.Tokens
			if err := rt.SaveStep(ctx, step); err != nil {
				return err
			}
		}
		return l.ledger.Settle(ctx, rt, budget.Spent{Used: used, Died: died})
	}))
}

// makes has the agent of a run make a loop.
func (t *tree) makes(l *live, goal string) (specs.View, error) {
	return t.Create(t.T.Context(), l.by, specs.CreateRequest{Fill: specs.Fill{Goal: goal, Agent: "doer"}})
}

// capDay caps the tokens of a loop in a day.
func (t *tree) capDay(row loop.Loop, tokens int64) {
	t.T.Helper()
	t.ok(t.Store.Update(t.T.Context(), func(tx *store.Tx) error {
		return tx.SetBudget(t.T.Context(), loop.Budget{Scope: loop.BudgetScope{Kind: loop.BudgetLoop, ID: row.ID}, Window: loop.WindowDay, Cap: loop.Amount{Tokens: tokens}})
	}))
}

// spentOf is what a scope has used and holds of this day.
func (t *tree) spentOf(s loop.BudgetScope) (used, held int64) {
	t.T.Helper()
	t.ok(t.Store.View(t.T.Context(), func(r *store.Reader) error {
		// A cap that nobody reaches makes the scope's row be read.
		own := []loop.Budget{{Scope: s, Window: loop.WindowDay, Cap: loop.Amount{Tokens: 1 << 60}}}
		st, err := r.Standings(t.T.Context(), nil, own, t.Store.Now())
		for _, one := range st {
			used, held = one.Used.Tokens, one.Reserved.Tokens
		}
		return err
	}))
	return used, held
}

// TestNoTreeOfLoopsSpendsMoreThanItsRootMay draws sequences of loops that are made, run, spend, settle
// and die in trees below a loop with a budget for a day, and below a spec with a life.
func TestNoTreeOfLoopsSpendsMoreThanItsRootMay(t *testing.T) {
	tr := newTree(verbtest.New(t))
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		root := fmt.Sprintf("root%d", round)
		most := rapid.Int64Range(60_000, 400_000).Draw(rt, "budget")
		type node struct{ name, protocol string }
		nodes := []node{{root, loop.ProtocolSpine}}
		if lives := rapid.Bool().Draw(rt, "the root has a life"); lives {
			v := tr.create(func(s *loopspec.Spec) { s.Budget.MaxTokens, s.Budget.MaxIterations = most, 30 })
			nodes[0] = node{v.Spec.ID, loop.ProtocolSpec}
		} else {
			tr.ok(tr.Store.Update(t.Context(), func(tx *store.Tx) error {
				return tx.AddLoop(t.Context(), tr.Workspace.Workspace, loop.Loop{ID: "lp_" + root, WorkspaceID: tr.Workspace.ID, Name: root, Protocol: loop.ProtocolSpine})
			}))
			tr.capDay(tr.loopRow(root, loop.ProtocolSpine), most)
		}
		first := tr.loopRow(nodes[0].name, nodes[0].protocol)
		everything := loop.BudgetScope{Kind: loop.BudgetWorkspace, ID: tr.Workspace.ID}
		before, _ := tr.spentOf(everything)
		at := map[string]*live{}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			n := rapid.SampledFrom(nodes).Draw(rt, "loop")
			l := at[n.name]
			switch what := rapid.SampledFrom([]string{"make", "spend", "spend", "end", "die"}).Draw(rt, "what"); {
			case l == nil:
				if l = tr.begin(n.name, n.protocol); l != nil {
					at[n.name] = l
				}
			case what == "make":
				v, err := tr.makes(l, "more")
				if err == nil {
					nodes = append(nodes, node{v.Spec.ID, loop.ProtocolSpec})
				} else if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitBudget && f.Exit != loop.ExitRefused {
					rt.Fatal(err)
				}
			case what == "spend":
				tr.spend(l, rapid.Int64Range(1, 60_000).Draw(rt, "tokens"))
			default:
				tr.end(l, what == "die")
				delete(at, n.name)
			}
			used, held := tr.spentOf(loop.BudgetScope{Kind: loop.BudgetLoop, ID: first.ID})
			if nodes[0].protocol == loop.ProtocolSpine && used+held > most {
				rt.Fatalf("of %d tokens a day, %d are used and %d are held", most, used, held)
			}
			if nodes[0].protocol == loop.ProtocolSpec {
				if sum := used + liveTokens(at); sum > most {
					rt.Fatalf("of a life of %d tokens, the tree has used %d", most, sum)
				}
			}
		}
		for name, l := range at {
			tr.end(l, false)
			delete(at, name)
		}
		charged, held := tr.spentOf(loop.BudgetScope{Kind: loop.BudgetLoop, ID: first.ID})
		after, _ := tr.spentOf(everything)
		if held != 0 || after-before != charged {
			rt.Fatalf("at the end %d are held, the tree is charged %d and the workspace %d", held, charged, after-before)
		}
	})
}

// liveTokens is what runs under way have used.
func liveTokens(at map[string]*live) (sum int64) {
	for _, l := range at {
		sum += l.ledger.Account().Used().Tokens
	}
	return sum
}

// TestLoopsThatAreMadeAtOnceAreCountedOneAfterAnother makes more at once than a loop may make in a day.
func TestLoopsThatAreMadeAtOnceAreCountedOneAfterAnother(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		tr := newTree(r)
		parent := tr.create(func(s *loopspec.Spec) { s.Budget.MaxTokens, s.Budget.MaxIterations = 2_000_000, 400 })
		l := tr.begin(parent.Spec.ID, loop.ProtocolSpec)
		const at = loop.MaxChildrenDay + 4
		views, errs := make([]specs.View, at), make([]error, at)
		var making sync.WaitGroup
		for i := range at {
			making.Go(func() { views[i], errs[i] = tr.makes(l, fmt.Sprint("goal ", i)) })
		}
		making.Wait()
		made, tokens := 0, int64(0)
		for i, err := range errs {
			switch {
			case err == nil:
				made, tokens = made+1, tokens+views[i].Spec.Budget.MaxTokens
			case !errors.Is(err, loop.ErrChildren) && !strings.Contains(err.Error(), "left to give"):
				t.Error(err)
			}
		}
		if made > loop.MaxChildrenDay || made == 0 {
			t.Errorf("%d loops were made at once, want at most %d", made, loop.MaxChildrenDay)
		}
		if most := int64(2_000_000); tokens >= most {
			t.Errorf("together they may use %d tokens, and the loop above may use %d", tokens, most)
		}
		var lent loop.Amount
		tr.ok(tr.Store.View(t.Context(), func(rd *store.Reader) (err error) {
			lent, err = rd.LentToChildren(t.Context(), tr.loopRow(parent.Spec.ID, loop.ProtocolSpec).ID)
			return err
		}))
		if lent.Tokens != tokens {
			t.Errorf("%d tokens are on record as given, and the loops have %d", lent.Tokens, tokens)
		}
	})
}

func TestALoopThatIsDeletedGivesBackWhatItHasNotUsed(t *testing.T) {
	tr := newTree(verbtest.New(t))
	parent := tr.create(func(s *loopspec.Spec) { s.Budget.MaxTokens, s.Budget.MaxIterations = 500_000, 20 })
	l := tr.begin(parent.Spec.ID, loop.ProtocolSpec)
	child, err := tr.makes(l, "more")
	if err != nil {
		t.Fatal(err)
	}
	of := func() (lent loop.Amount) {
		tr.ok(tr.Store.View(t.Context(), func(rd *store.Reader) (err error) {
			lent, err = rd.LentToChildren(t.Context(), l.run.LoopID)
			return err
		}))
		return lent
	}
	if got := of(); got.Tokens != child.Spec.Budget.MaxTokens || got.Iterations != child.Spec.Budget.MaxIterations {
		t.Errorf("given are %+v, and the child has %+v", got, child.Spec.Budget)
	}
	below := tr.begin(child.Spec.ID, loop.ProtocolSpec)
	tr.spend(below, 1_000)
	tr.end(below, false)
	if _, err := tr.Delete(t.Context(), verbtest.Ann, child.Spec.ID); err != nil {
		t.Fatal(err)
	}
	if got := of(); got.Tokens != 1_000 || got.Iterations != 1 {
		t.Errorf("after it was deleted %+v are given, want what it has used", got)
	}
}

func TestALoopAboveWithNothingLeftMakesNoneAndSaysHowMuchThereIs(t *testing.T) {
	tr := newTree(verbtest.New(t))
	poor := tr.create(func(s *loopspec.Spec) { s.Budget.MaxTokens = 30_000 })
	_, err := tr.makes(tr.begin(poor.Spec.ID, loop.ProtocolSpec), "more")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitBudget || !strings.Contains(f.Why, "0 tokens are left to give") {
		t.Errorf("a loop whose run needs all that it has: %v", err)
	}
	row := loop.Loop{ID: "lp_day", WorkspaceID: tr.Workspace.ID, Name: "day", Protocol: loop.ProtocolSpine}
	tr.ok(tr.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddLoop(t.Context(), tr.Workspace.Workspace, row) }))
	tr.capDay(row, 38_000)
	_, err = tr.makes(tr.begin("day", loop.ProtocolSpine), "more")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitBudget || !strings.Contains(f.Why, "of 38000 tokens are used, and 38000 are reserved") {
		t.Errorf("a loop whose run has reserved the day: %v", err)
	}
}

// TestALoopThatAnAgentMakesChangesNoMoreThanTheOneAboveIt fills a template that changes files below loops
// with several scopes.
func TestALoopThatAnAgentMakesChangesNoMoreThanTheOneAboveIt(t *testing.T) {
	tr := newTree(verbtest.New(t))
	for name, c := range map[string]struct {
		d    loop.Definition
		want string // guardrail; empty: it is refused
	}{
		"a folder":       {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"src/api/**"}}, "edits limited to /src/api"},
		"a file":         {loop.Definition{Tier: loop.TierUnattended, Scope: []string{"src/a.txt", "docs/**"}}, "edits limited to /src/a.txt and /docs"},
		"everything":     {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"**/*"}}, "edits limited to /src"},
		"only reports":   {loop.Definition{Tier: loop.TierReport, Scope: []string{"src/**"}}, ""},
		"a pattern":      {loop.Definition{Tier: loop.TierAssisted, Scope: []string{"src/*.go"}}, ""},
		"nothing at all": {loop.Definition{Tier: loop.TierAssisted}, ""},
	} {
		id := "lp_" + strings.ReplaceAll(name, " ", "")
		c.d.Name, c.d.Protocol = id, loop.ProtocolSpine
		c.d = c.d.WithDefaults()
		tr.ok(tr.Store.Update(t.Context(), func(tx *store.Tx) error {
			if err := tx.AddLoop(t.Context(), tr.Workspace.Workspace, loop.Loop{ID: id, WorkspaceID: tr.Workspace.ID, Name: id, Protocol: loop.ProtocolSpine}); err != nil {
				return err
			}
			return errors.Join(tx.SaveDefinition(t.Context(), id, c.d), tx.AddDefinition(t.Context(), id, c.d))
		}))
		l := tr.begin(id, loop.ProtocolSpine)
		v, err := tr.Create(t.Context(), l.by, specs.CreateRequest{Template: "keep-tests-green", Fill: specs.Fill{Goal: "more", Agent: "doer", Test: "true"}})
		switch {
		case c.want == "" && !errors.Is(err, loop.ErrGrant):
			t.Errorf("%s: %v, %q, want it refused", name, err, v.Spec.Guardrails)
		case c.want != "" && (err != nil || !slices.Contains(v.Spec.Guardrails, c.want)):
			t.Errorf("%s: %v, %q, want %q", name, err, v.Spec.Guardrails, c.want)
		}
	}
}

package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

// Numbers are given when runs are fired, and runs end in another order: an answer is
// carried out while runs wait in the queue, and a node that was lost writes its lines when
// it is back. None of it is a change by somebody, and the chain makes the log again.
func TestNoOrderInWhichRunsEndIsTakenForAChange(t *testing.T) {
	sample.Checks(t, 2)
	for name, url := range map[string]string{"sqlite": storetest.SQLite(t), "postgres": storetest.PostgreSQL(t)} {
		t.Run(name, func(t *testing.T) {
			r, rounds := verbtest.NewOn(t, url), 0
			there := otherNode(t, r)
			rapid.Check(t, func(rt *rapid.T) {
				rounds++
				h := newHistory(t, r, there, fmt.Sprintf("tidy-%d", rounds))
				rt.Repeat(map[string]func(*rapid.T){
					"queue": h.queue, "take one up": h.takeUp, "run": h.run, "approve": h.approve, "lose": h.lose, "lose a queued one": h.loseQueued,
					"return": h.comeBack, "work elsewhere": h.workElsewhere, "write anew": h.writeAnew, "forget": h.forget, "": h.check,
				})
				h.swapLines(rt)
			})
		})
	}
}

// The shortest histories of that kind.
func TestALineThatComesLateOrOvertakesIsInItsPlace(t *testing.T) {
	t.Parallel()
	r := verbtest.NewOn(t, storetest.SQLite(t))
	there := otherNode(t, r)
	for name, c := range map[string]struct {
		do   func(h *history)
		want string // numbers in the log
	}{
		"an answer overtakes a queued run": {func(h *history) { h.run(nil); h.queue(nil); h.approveOpen(); h.execute(h.queued[0]) }, "#1 #3 #2"},
		"a lost node is back late":         {func(h *history) { h.lose(nil); h.run(nil); h.comeBack(nil) }, "#2 #1"},
		"both":                             {func(h *history) { h.run(nil); h.queue(nil); h.lose(nil); h.execute(h.queued[0]); h.comeBack(nil) }, "#1 #2 #3"},
	} {
		h := newHistory(t, r, there, "tidy-"+strings.ReplaceAll(name, " ", "-"))
		c.do(h)
		var got []string
		for _, m := range regexp.MustCompile(`run(#\d+) `).FindAllStringSubmatch(h.text(), -1) {
			got = append(got, m[1])
		}
		if a := auditOf(r, h.name); strings.Join(got, " ") != c.want || !a.Intact {
			t.Errorf("%s: the log has %v, want %s; breaks: %s", name, got, c.want, breaks(a))
		}
	}
}

// otherNode returns the engine of another machine with the same store, for which whoever
// holds a run is gone.
func otherNode(t *testing.T, r *verbtest.Rig) *engine.Engine {
	t.Helper()
	d := r.Engine.Deps
	d.Self.Node, d.HolderState = "node_there", func(loop.Holder) loop.HolderState { return loop.HolderDead }
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.SaveNode(t.Context(), loop.Node{ID: d.Self.Node, Name: "cellar"}),
			tx.Place(t.Context(), loop.Placement{WorkspaceID: r.Workspace.ID, NodeID: d.Self.Node, Path: t.TempDir()}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return engine.New(d)
}

// history is what happens to one loop, which has to stay in order.
type history struct {
	t      *testing.T
	r      *verbtest.Rig
	there  *engine.Engine
	name   string
	queued []loop.Run
}

func newHistory(t *testing.T, r *verbtest.Rig, there *engine.Engine, name string) *history {
	t.Helper()
	agent := fmt.Sprintf(`mkdir -p src/%[1]s; echo x >>src/%[1]s/a.txt; printf '{"outcome":"done","summary":"one more"}' >"$PAWL_REPORT"`, name)
	r.DefineLoop(name, agent, "scope", `["src/`+name+`/**"]`)
	h := &history{t: t, r: r, there: there, name: name}
	h.try(nil, r.Store.Update(t.Context(), func(tx *store.Tx) error {
		target := h.target()
		return errors.Join(tx.AddLoop(t.Context(), target.Workspace, target.Loop), tx.SaveDefinition(t.Context(), target.Loop.ID, target.Definition))
	}))
	return h
}

// try fails the round for an error other than that of a verb that refuses.
func (h *history) try(_ any, err error) {
	h.t.Helper()
	if _, refused := errors.AsType[*loop.Fault](err); err != nil && !refused && !isHeld(err) {
		h.t.Fatal(err)
	}
}

func (h *history) target() engine.Target {
	h.t.Helper()
	return h.r.Workspace.Target(h.r.Definition(h.name).WithDefaults())
}

func (h *history) update(fn func(ctx context.Context, tx *store.Tx) error) {
	h.t.Helper()
	if err := h.r.Store.Update(h.t.Context(), func(tx *store.Tx) error { return fn(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

// queue fires a run that nobody takes up yet.
func (h *history) queue(*rapid.T) {
	h.update(func(ctx context.Context, tx *store.Tx) error {
		run, err := h.r.Engine.Fire(ctx, tx, h.target(), engine.Firing{Trigger: "manual", By: verbtest.Ann})
		h.queued = append(h.queued[:len(h.queued):len(h.queued)], run)
		return err
	})
}

// takeQueued draws a run of the queue.
func (h *history) takeQueued(rt *rapid.T) loop.Run {
	if len(h.queued) == 0 {
		rt.Skip("nothing is queued")
	}
	i := rapid.IntRange(0, len(h.queued)-1).Draw(rt, "of the queue")
	run := h.queued[i]
	h.queued = slices.Delete(h.queued, i, i+1)
	return run
}

func (h *history) takeUp(rt *rapid.T) {
	h.execute(h.takeQueued(rt))
}

func (h *history) execute(run loop.Run) {
	h.t.Helper()
	h.try(h.r.Engine.Execute(h.t.Context(), h.target(), run.ID))
}

func (h *history) run(*rapid.T) {
	h.try(h.r.Engine.Run(h.t.Context(), h.target(), engine.Firing{Trigger: "manual", By: verbtest.Ann}))
}

// approve answers the newest question; its run does not wait for those of the queue.
func (h *history) approve(rt *rapid.T) {
	if !h.approveOpen() {
		rt.Skip("nothing is asked")
	}
}

func (h *history) approveOpen() bool {
	h.t.Helper()
	v, err := h.r.Approvals.Find(h.t.Context(), h.name)
	if err != nil || v.State != loop.ApprovalOpen {
		return false
	}
	h.try(h.r.Approvals.Approve(h.t.Context(), v.ID, loop.Answer{By: "ann", Yes: true}))
	return true
}

// lose lets this node die with a run, which the other one ends.
func (h *history) lose(*rapid.T) { h.endLost(h.r.InsertRun(h.name, h.r.DeadHolder())) }

func (h *history) loseQueued(rt *rapid.T) {
	run := h.takeQueued(rt)
	h.update(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := tx.Claim(ctx, run.ID, 0, h.r.DeadHolder(), loop.Holder{})
		return err
	})
	h.endLost(run)
}

func (h *history) endLost(run loop.Run) {
	h.t.Helper()
	rec, err := h.there.Recover(h.t.Context(), h.loop())
	if err != nil || rec == nil || rec.Run.ID != run.ID || !rec.Run.Owed {
		h.t.Fatalf("the other node ends %+v, %v, want run #%d", rec, err, run.N)
	}
}

// loop is the target with the row of the loop.
func (h *history) loop() engine.Target {
	h.t.Helper()
	target := h.target()
	target.Loop = h.r.LoopRow(loop.ProtocolSpine, h.name)
	return target
}

// comeBack lets this node write what it owes.
func (h *history) comeBack(*rapid.T) { h.try(h.r.Engine.FinishOwed(h.t.Context(), h.loop())) }

// workElsewhere ends a run of the other node, whose line is in the log of its own clone.
func (h *history) workElsewhere(*rapid.T) {
	live := h.r.InsertRun(h.name, loop.Holder{Node: h.there.Self.Node, Host: "cellar", PID: 1})
	h.update(func(ctx context.Context, tx *store.Tx) error {
		live.Outcome = loop.OutcomeQuiet
		rt, err := tx.Settle(ctx, live, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		return rt.Link(ctx, live.LoopID, loop.LinkRun, live.ID, map[string]any{"n": live.N, "outcome": live.Outcome, "node": h.there.Self.Node})
	})
}

func (h *history) writeAnew(*rapid.T) {
	h.try(h.r.Audit.RewriteLog(h.t.Context(), verbtest.Ann, h.name))
}

func (h *history) forget(*rapid.T) {
	h.try(h.r.Loops.Forget(h.t.Context(), verbtest.Ann, h.name))
	h.queued = nil
}

// check holds that nothing is taken for a change, and that the chain makes the log that
// is there.
func (h *history) check(rt *rapid.T) {
	if a := auditOf(h.r, h.name); !a.Intact {
		rt.Fatalf("%s\n%s", breaks(a), h.text())
	}
	l, err := h.r.Audit.RunLog(h.t.Context(), h.name)
	if f, refused := errors.AsType[*loop.Fault](err); refused && f.Exit == loop.ExitNotFound {
		return // Nothing has happened yet.
	}
	if err != nil || l.Lines > 0 && l.Changed {
		rt.Fatalf("made from the chain: %v\n%s\nthere:\n%s", err, l.Text, l.Was)
	}
}

func (h *history) path() string { return filepath.Join(h.r.Root, ".loops", h.name, "run-log.md") }

func (h *history) text() string {
	text, err := os.ReadFile(h.path())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(text)
}

// swapLines holds that two lines in the other order are found, and that the log which the
// advice makes is in order.
func (h *history) swapLines(rt *rapid.T) {
	text := h.text()
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	a := auditOf(h.r, h.name)
	if len(a.Chains) == 0 || a.Chains[0].Lines < 2 {
		return
	}
	last := len(lines) - 1
	lines[last], lines[last-1] = strings.TrimSuffix(lines[last-1], "\n"), lines[last]+"\n"
	verbtest.Write(h.t, h.r.Root, filepath.Join(".loops", h.name, "run-log.md"), strings.Join(lines, "")+"\n")
	if a := auditOf(h.r, h.name); a.Intact {
		rt.Fatalf("two lines stand in another order, and nothing is found:\n%s", h.text())
	}
	h.writeAnew(rt)
	if h.text() != text {
		rt.Fatalf("the log that is made anew is\n%s\nand was\n%s", h.text(), text)
	}
	h.check(rt)
}

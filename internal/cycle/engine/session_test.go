package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// talk is an agent whose program counts tokens since its conversation began.
type talk struct {
	p     *meteredRig
	given []loop.Session // per turn; the zero Session is a fresh one
	begun int
	fails loop.FailureClass // of the next turn
	each  int64             // tokens of each turn
}

func (k *talk) turn(_ context.Context, r agent.Request) (agent.Result, error) {
	k.p.turns.Add(1)
	s := loop.Session{Totals: []loop.ModelUsage{{Model: cheap}}}
	if r.Session != nil {
		s = *r.Session
	} else {
		k.begun++
		s.ID = fmt.Sprint("talk", k.begun)
	}
	var given loop.Session
	if r.Session != nil {
		given = *r.Session
	}
	k.given = append(k.given, given)
	gittest.WriteFile(k.p.t, r.Dir+"/src/a.txt", fmt.Sprint("turn ", len(k.given), "\n"))
	gittest.WriteFile(k.p.t, r.Home.Path()+"/.chats/"+s.ID, "what was said")
	totals := []loop.ModelUsage{{Model: cheap, Usage: s.Totals[0].Add(loop.Usage{Input: k.each, Source: loop.UsageReported})}}
	res := agent.Result{
		Ended: proc.Exited, Claims: true, Took: time.Millisecond, Usage: loop.Usage{Input: k.each, Source: loop.UsageReported},
		Models: []loop.ModelUsage{{Model: cheap, Usage: loop.Usage{Input: k.each, Source: loop.UsageReported}}}, Session: &loop.Session{ID: s.ID, Totals: totals},
	}
	if k.fails != "" {
		res.Failure, res.Exit, k.fails = &loop.Failure{Class: k.fails}, 1, ""
	}
	return res, nil
}

// talks is a loop that goes on with its conversation, and has a lot to do.
func (p *meteredRig) talks(more func(*loop.Definition)) engine.Target {
	t := p.calls("t", func(d *loop.Definition) {
		d.Agent, d.Resume, d.Tier, d.Scope = "lasting", true, loop.TierAssisted, []string{"src/**"}
		if more != nil {
			more(d)
		}
	})
	var tasks []string
	for i := range 60 {
		tasks = append(tasks, fmt.Sprint("task ", i))
	}
	t.Protocol = boardLike{nil, tasks}
	return t
}

// savedTalk is the conversation that the next run goes on with.
func (p *meteredRig) savedTalk() (s loop.Session, there bool) {
	p.t.Helper()
	p.view(func(r *store.Reader) (err error) {
		s, err = r.Session(p.t.Context(), "lp_t", "lasting")
		if there = err == nil; errors.Is(err, loop.ErrNotFound) {
			return nil
		}
		return err
	})
	return s, there
}

func TestAConversationGoesFromRunToRunWithItsTotals(t *testing.T) {
	onBothMetered(t, says200(1, 1), func(t *testing.T, p *meteredRig) {
		k := &talk{p: p, each: 1000}
		p.agent = k.turn
		for range 3 {
			run := p.run(p.talks(nil), engine.Firing{})
			if run.Outcome != loop.OutcomeProposed || run.Usage.Input != 1000 {
				t.Fatalf("run = %s %q, %+v, want 1000 tokens of its own", run.Outcome, run.Detail, run.Usage)
			}
			if rows := p.turnRows(run.ID); len(rows) != 1 || rows[0].Session != "talk1" {
				t.Errorf("turns = %+v, want one of talk1", rows)
			}
		}
		total := func(n int64) []loop.ModelUsage {
			return []loop.ModelUsage{{Model: cheap, Usage: loop.Usage{Input: n, Source: loop.UsageReported}}}
		}
		want := []loop.Session{{}, {ID: "talk1", Turns: 1, Totals: total(1000)}, {ID: "talk1", Turns: 2, Totals: total(2000)}}
		if d := cmp.Diff(want, k.given); d != "" {
			t.Errorf("conversations given (-want +got):\n%s", d)
		}
		if s, _ := p.savedTalk(); s.Turns != 3 || s.Totals[0].Input != 3000 {
			t.Errorf("saved = %+v", s)
		}
	})
}

func TestALongConversationIsNotGoneOnWith(t *testing.T) {
	for name, c := range map[string]struct {
		each  int64
		turns int
	}{"of many turns": {10, 20}, "of many tokens": {160_000, 2}} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), says200(1, 1))
			k := &talk{p: p, each: c.each}
			p.agent = k.turn
			// Within one run it is no shorter: half of the turns are taken by runs of several iterations.
			target := p.talks(func(d *loop.Definition) { d.MaxItems, d.MaxIterations = 2, 2 })
			var run loop.Run
			for len(k.given) <= c.turns {
				run = p.run(target, engine.Firing{})
			}
			for i, s := range k.given {
				if fresh := i%c.turns == 0; fresh != (s.ID == "") {
					t.Errorf("turn %d was given %+v", i+1, s)
				}
			}
			if !strings.Contains(p.told(run.ID), "the conversation is long") {
				t.Errorf("nobody is told: %s", p.told(run.ID))
			}
		})
	}
}

func TestAConversationThatIsTooLongIsLeftBehind(t *testing.T) {
	onBothMetered(t, says200(1, 1), func(t *testing.T, p *meteredRig) {
		k := &talk{p: p, each: 100}
		p.agent = k.turn
		p.run(p.talks(nil), engine.Firing{})
		k.fails = loop.FailureOverflow
		run := p.run(p.talks(nil), engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || len(k.given) != 3 || k.given[1].ID != "talk1" || k.given[2].ID != "" {
			t.Errorf("run = %s %s, given %+v, want a fresh one after the overflow", run.Outcome, run.Reason, k.given)
		}
		if s, there := p.savedTalk(); !there || s.ID != "talk2" || s.Turns != 1 {
			t.Errorf("saved = %+v", s)
		}
	})
}

func TestATurnThatCouldNotBeTakenLeavesTheConversation(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(1, 1))
	k := &talk{p: p, each: 100}
	p.agent = k.turn
	p.run(p.talks(nil), engine.Firing{})
	p.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return agent.Result{}, &loop.Fault{What: "start it", Why: "its settings are wrong"}
	}
	if run := p.run(p.talks(nil), engine.Firing{}); run.Outcome != loop.OutcomeBlocked {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	if s, there := p.savedTalk(); !there || s.ID != "talk1" {
		t.Errorf("saved = %+v, %v, want talk1", s, there)
	}
}

func TestADriverWithoutConversationsSaysSo(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
	p.agent = p.once
	run := p.run(p.calls("a", func(d *loop.Definition) { d.Resume = true }), engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || !strings.Contains(p.told(run.ID), "resume: caller cannot go on with a conversation; each turn begins anew") {
		t.Errorf("run = %s %q, told %s", run.Outcome, run.Detail, p.told(run.ID))
	}
}

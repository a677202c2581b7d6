package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// dieEnv makes this test binary a process that runs a loop and is killed in
// mid-act.
const dieEnv = "PAWL_TEST_DIE"

// dying says what such a process does before.
type dying struct {
	Database, Root, Home string
	Environ              []string
	Definition           loop.Definition
	Calls                int    // of the model
	Leaves               string // written in the place of its login, if it is not empty
	Ahead                time.Duration
	Seen                 bool // it lives until its calls are known in the store
	Lease                time.Duration
	Node                 string // its id
	Crash                string // a fault point at which it dies, after its turn; empty: it dies in it
	Reviewed             bool   // it lives until its work is reviewed, and dies in that
}

func dieInMidAct(text string) int {
	var d dying
	err := json.Unmarshal([]byte(text), &d)
	if err == nil {
		err = d.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

func (d dying) run(ctx context.Context) error {
	now := func() time.Time { return time.Now().Add(d.Ahead) }
	s, err := store.Open(ctx, store.Options{Database: d.Database, Now: time.Now, Virtual: now, Lease: d.Lease})
	if err != nil {
		return err
	}
	repo, err := git.Open(ctx, d.Root)
	if err != nil {
		return err
	}
	e := engine.New(engine.Deps{
		Store: s, Now: s.Now, NewID: func(prefix string) string { return fmt.Sprintf("%s_child%d", prefix, os.Getpid()) }, Exec: proc.Plain{},
		Drivers: map[string]turn.Driver{"caller": mortal{d, s, caller{}.Profile()}, "signed": mortal{d, s, signed{}.Profile()}},
		Effects: func(*git.Repo) map[string]engine.Effect { return nil },
		Self:    node.Self(d.Node), HolderState: stateOf, Survive: proc.KillTagged,
		Home: d.Home, Environ: d.Environ, Log: slog.New(slog.DiscardHandler),
	})
	_, err = e.Run(ctx, targetOf(d.Root, repo, d.Definition, boardLike{nil, []string{"the task"}}), engine.Firing{Trigger: "manual"})
	return err
}

// mortal is a driver that takes its process with it.
type mortal struct {
	dying
	store   *store.Store
	profile agent.Profile
}

func (m mortal) Profile() agent.Profile { return m.profile }

func (m mortal) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	for range m.Calls {
		resp, err := http.Post(r.Models.URL+"/v1/messages", "application/json", strings.NewReader(
			`{"model":"`+cheap+`","max_tokens":1000,"messages":[{"role":"user","content":"go on"}]}`))
		if err != nil {
			return agent.Result{}, err
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			return agent.Result{}, fmt.Errorf("status %d: %w", resp.StatusCode, err)
		}
	}
	if m.Reviewed && r.Purpose != loop.PurposeReview {
		if err := os.WriteFile(r.Dir+"/src/a.txt", []byte("two\n"), 0o644); err != nil {
			return agent.Result{}, err
		}
		return ended(nil)
	}
	if m.Leaves != "" {
		if err := r.Home.Write(loginName, []byte(m.Leaves)); err != nil {
			return agent.Result{}, err
		}
	}
	for m.Seen && !m.seen(ctx) {
		time.Sleep(10 * time.Millisecond)
	}
	if m.Crash != "" {
		return ended(nil)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return agent.Result{}, err
	}
	return agent.Result{}, errors.Join(self.Kill(), errors.New("not killed"))
}

// seen reports whether the store knows all calls.
func (m mortal) seen(ctx context.Context) (all bool) {
	err := m.store.View(ctx, func(r *store.Reader) error {
		run, err := r.Live(ctx, "lp_"+m.Definition.Name)
		if err != nil {
			return err
		}
		turns, err := r.Turns(ctx, run.ID)
		last, want := len(turns)-1, 0
		if m.Reviewed {
			want = 1
		}
		all = last == want && turns[last].Usage.Output == int64(m.Calls)*1000
		return err
	})
	return err == nil && all
}

// dies lets a process run a loop that kills it, and waits for that.
func (p *meteredRig) dies(database string, target engine.Target, d dying) {
	p.t.Helper()
	d.Database, d.Root, d.Home, d.Environ, d.Definition = database, p.root, p.home, p.deps.Environ, target.Definition
	d.Ahead = time.Duration(p.ahead.Load())
	text, err := json.Marshal(d)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), dieEnv+"="+string(text))
	if d.Crash != "" {
		cmd.Env = append(cmd.Env, "PAWL_FAULTS=1", "PAWL_CRASH_AT="+d.Crash)
	}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
		p.t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

func TestARunWhoseProcessIsKilledIsChargedWhatWasSeenOrWhatItHad(t *testing.T) {
	for name, database := range databases {
		for what, d := range map[string]dying{
			"nothing is known": {}, "less is known than was reserved": {Calls: 5, Seen: true}, "more was needed": {Calls: 45, Seen: true},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				place := database(t)
				p := newMeteredRig(t, place, fakemodel.Script{})
				p.writes.Store(1000)
				p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1_000_000})
				target := p.calls("w", nil)
				p.dies(place, target, d)
				seen := int64(d.Calls) * 1010
				before := p.standing(all)
				if before.Used.Tokens != 0 || before.Reserved.Tokens < max(usualTokens, seen) {
					t.Fatalf("standing of a dead run = %+v", before)
				}
				rec, err := p.engine.Recover(t.Context(), target)
				if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
					t.Fatalf("recover = %+v, %v", rec, err)
				}
				if got := rec.Run.Usage; d.Seen && got.ChargedTokens() != seen || got.ChargedTokens() > p.model.Total().Input+p.model.Total().Output && d.Seen {
					t.Errorf("usage = %+v, want %d tokens", got, seen)
				}
				if rows := p.turnRows(rec.Run.ID); rec.Run.Usage.Source != loop.UsageEstimated || len(rows) != 1 || rows[0].Usage != rec.Run.Usage {
					t.Errorf("usage = %+v, turns %+v, want an estimate: a call may have been under way", rec.Run.Usage, rows)
				}
				if d.Seen && rec.Run.Cost.MicroUSD != int64(d.Calls)*(10+5*1000) {
					t.Errorf("cost = %+v", rec.Run.Cost)
				}
				after := p.standing(all)
				if after.Used.Tokens != before.Reserved.Tokens || !after.Reserved.Zero() {
					t.Errorf("standing = %+v, want the reservation of %d charged", after, before.Reserved.Tokens)
				}
				if again, err := p.engine.Recover(t.Context(), target); again != nil || err != nil {
					t.Errorf("a second recovery = %+v, %v", again, err)
				}
				if twice := p.standing(all); twice.Used != after.Used {
					t.Errorf("settled twice: %+v", twice)
				}
			})
		}
	}
}

func TestARunWhoseProcessIsKilledInAReviewKeepsItsWorkAndIsChargedForBoth(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			p := newMeteredRig(t, place, fakemodel.Script{})
			p.writes.Store(1000)
			target := p.calls("w", func(d *loop.Definition) {
				d.Verify, d.Gates = "true", []loop.Gate{{Name: "good", Kind: loop.GateReviewer, Check: "It is good.", Reviewer: loop.Reviewer{Model: dear}}}
			})
			p.dies(place, target, dying{Calls: 2, Seen: true, Reviewed: true})
			rec, err := p.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted || rec.Died != loop.PhaseVerify || rec.Run.Snapshot == "" || rec.Run.Agent != "caller" {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			rows := p.turnRows(rec.Run.ID)
			if len(rows) != 2 || rows[1].Purpose != loop.PurposeReview || rows[1].Model != dear || rows[0].Usage.ChargedTokens() != 2020 || rows[1].Usage.ChargedTokens() != 2020 || rec.Run.Usage.ChargedTokens() != 4040 {
				t.Errorf("usage = %+v, turns %+v, want 2020 tokens for each", rec.Run.Usage, rows)
			}
			if left, _ := filepath.Glob(filepath.Join(p.home, "trees", "*review*")); len(left) != 0 {
				t.Errorf("trees of the review stay: %v", left)
			}
		})
	}
}

func TestATurnWhoseProcessDiesBeforeItsEndIsSavedIsChargedWhatWasCounted(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := database(t)
			p := newMeteredRig(t, place, fakemodel.Script{})
			p.writes.Store(1000)
			target := p.calls("w", nil)
			p.dies(place, target, dying{Calls: 1, Crash: "engine.gather.before"})
			rec, err := p.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Died != loop.PhaseGather {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			rows := p.turnRows(rec.Run.ID)
			if got := rec.Run.Usage; got.ChargedTokens() != 1010 || got.Source != loop.UsageMetered || len(rows) != 1 || rows[0].Usage != got {
				t.Errorf("usage = %+v, turns %+v, want one turn of 1010 tokens: its end was seen", got, rows)
			}
		})
	}
}

func TestARunThatDiesAfterItsEndIsChargedWhatItUsed(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.writes.Store(1000)
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1_000_000})
		p.agent = p.spends(3, 1000)
		plan, err := fault.Parse("engine.effect.apply.before=EIO")
		if err != nil {
			t.Fatal(err)
		}
		target := p.calls("w", nil)
		if _, err := p.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"}); err == nil {
			t.Fatal("the effect did not fail")
		}
		rec, err := p.engine.Recover(t.Context(), target)
		if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeProposed {
			t.Fatalf("recover = %+v, %v", rec, err)
		}
		if st := p.standing(all); st.Used.Tokens != 3*1010 || rec.Run.Usage.ChargedTokens() != 3*1010 || !st.Reserved.Zero() {
			t.Errorf("standing = %+v, usage %+v, want 3030 tokens", st, rec.Run.Usage)
		}
	})
}

func TestALoginThatARunChangedBeforeItDiedIsKeptBesideTheUsers(t *testing.T) {
	for name, resume := range map[string]bool{"from its own home": false, "from a home that is kept": true} {
		t.Run(name, func(t *testing.T) {
			place := databases["sqlite"](t)
			p, file := lenderOn(t, place)
			renewed := login("renewed", time.Now().Add(2*time.Hour))
			target := p.signs("w", resume)
			p.dies(place, target, dying{Leaves: renewed})
			rec, err := p.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			if got := read(t, file); strings.Contains(got, "renewed") {
				t.Errorf("the user's login = %s, and nobody knows whether the run would have been refused", got)
			}
			if got := p.keptLogin(p.told(rec.Run.ID)); got != renewed {
				t.Errorf("kept is %q", got)
			}
			if left, _ := filepath.Glob(filepath.Join(p.home, "logins", "*.lent")); len(left) != 0 {
				t.Errorf("loans of a dead run: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(p.home, "runs", "*", "turnenv-*")); len(left) != 0 {
				t.Errorf("homes of a dead run: %v", left)
			}
		})
	}
}

// The home in which its program renewed it is there all the time.
func TestALoginThatADeadRunChangedIsKeptWhicheverReadingOfTheStoreFails(t *testing.T) {
	for nth, last := 1, false; !last; nth++ {
		place := databases["sqlite"](t)
		p, _ := lenderOn(t, place)
		renewed := login("renewed", time.Now().Add(2*time.Hour))
		target := p.signs("w", true)
		p.dies(place, target, dying{Leaves: renewed})
		last = true
		plan := new(fault.Plan).Do("store.view.before", nth, func(context.Context) error { last = false; return syscall.EIO })
		rec, err := p.engine.Recover(fault.With(t.Context(), plan), target)
		if err != nil {
			rec, err = p.engine.Recover(t.Context(), target)
		}
		if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
			t.Fatalf("without reading %d: recover = %+v, %v", nth, rec, err)
		}
		if kept, err := filepath.Glob(filepath.Join(p.home, "logins", "*.kept")); err != nil || len(kept) != 1 {
			t.Errorf("without reading %d the logins that are kept are %q, %v, want that of the run", nth, kept, err)
		}
	}
}

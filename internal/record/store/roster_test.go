package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAHoldStandsUntilItIsCleared(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		first := loop.Hold{Subject: "account:a", Until: noon.Add(time.Hour), Reason: loop.FailureRateLimit, Detail: "said so", Errors: 1}
		second := loop.Hold{Subject: "loop:l", Reason: loop.FailureAuth, Errors: 2}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.SetHold(ctx, loop.Hold{Subject: "account:a", Errors: 9}), tx.SetHold(ctx, first), tx.SetHold(ctx, second))
		})
		first.Updated, second.Updated = noon, noon
		holds := func(subjects ...string) []loop.Hold {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Hold, error) { return r.Holds(ctx, subjects...) })
		}
		for name, c := range map[string]struct{ got, want []loop.Hold }{
			"all":      {holds(), []loop.Hold{first, second}},
			"one":      {holds("loop:l", "loop:m"), []loop.Hold{second}},
			"no other": {holds("loop:m"), nil},
		} {
			if d := cmp.Diff(c.want, c.got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		for _, was := range []bool{true, false} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				got, err := tx.ClearHold(ctx, "account:a")
				if got != was {
					t.Errorf("cleared = %v, want %v", got, was)
				}
				return err
			})
		}
		if d := cmp.Diff([]loop.Hold{second}, holds()); d != "" {
			t.Error(d)
		}
	})
}

func TestOfTwoHoldsOfOneSubjectTheLongerStands(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		until := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
		for name, c := range map[string]struct{ had, set, want loop.Hold }{
			"a longer one":             {loop.Hold{Until: until(1), Reason: "a"}, loop.Hold{Until: until(2), Reason: "b"}, loop.Hold{Until: until(2), Reason: "b"}},
			"a shorter one":            {loop.Hold{Until: until(2), Reason: "a"}, loop.Hold{Until: until(1), Reason: "b"}, loop.Hold{Until: until(2), Reason: "a"}},
			"one over one for good":    {loop.Hold{Reason: "a"}, loop.Hold{Until: until(1), Reason: "b"}, loop.Hold{Reason: "a"}},
			"one for good":             {loop.Hold{Until: until(1), Reason: "a"}, loop.Hold{Reason: "b"}, loop.Hold{Reason: "b"}},
			"one over a count":         {loop.Hold{Errors: 7}, loop.Hold{Until: until(1), Reason: "b"}, loop.Hold{Until: until(1), Reason: "b"}},
			"a count over one, as set": {loop.Hold{Until: until(1), Reason: "a"}, loop.Hold{Errors: 7}, loop.Hold{Errors: 7}},
		} {
			for _, h := range []*loop.Hold{&c.had, &c.set, &c.want} {
				h.Subject = name
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return errors.Join(tx.SetHold(ctx, c.had), tx.SetHold(ctx, c.set))
			})
			c.want.Updated = noon
			got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Hold, error) { return r.Holds(ctx, name) })
			if d := cmp.Diff([]loop.Hold{c.want}, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	})
}

func TestTheRosterHasEachHandleOnce(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		ada := loop.Agent{ID: "ag_1", Handle: "ada", Driver: "claude", Skills: []string{"go"}, Auth: loop.AuthInject}
		bo := loop.Agent{ID: "ag_2", Handle: "bo", Driver: "command", Command: "x"}
		save := func(a loop.Agent) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAgent(t.Context(), a) })
		}
		if err := errors.Join(save(bo), save(ada)); err != nil {
			t.Fatal(err)
		}
		clock.add(time.Minute)
		ada.Model = "m"
		start := feedHead(t, s)
		if err := save(ada); err != nil {
			t.Fatal(err)
		}
		want := []loop.FeedEntry{{Kind: loop.FeedAgent, ID: "ag_1", At: clock.now()}}
		if d := cmp.Diff(want, feed(t, s, start), cmpopts.IgnoreFields(loop.FeedEntry{}, "Cursor")); d != "" {
			t.Errorf("the feed says of a change of an agent, which belongs to no loop (-want +got):\n%s", d)
		}
		err := save(loop.Agent{ID: "ag_3", Handle: "ada", Driver: "codex"})
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Fix == "" {
			t.Errorf("a handle that is taken: %v, want a fault with a fix", err)
		}
		moved := bo
		moved.Handle = "ada"
		if err := save(moved); err == nil {
			t.Error("an agent took another one's handle")
		}
		ada.Created, ada.Updated, bo.Created, bo.Updated = noon, clock.now(), noon, noon
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Agent, error) { return r.Agents(ctx) })
		if d := cmp.Diff([]loop.Agent{ada, bo}, got); d != "" {
			t.Error(d)
		}
		one := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Agent, error) { return r.Agent(ctx, "ada") })
		if d := cmp.Diff(ada, one); d != "" {
			t.Error(d)
		}
		err = s.View(t.Context(), func(r *store.Reader) error { _, err := r.Agent(t.Context(), "eve"); return err })
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("an agent that is none = %v, want ErrNotFound", err)
		}
	})
}

func TestASessionBelongsToALoopAndAnAgent(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		read := func(loopID, agent string) (v loop.Session, err error) {
			err = s.View(t.Context(), func(r *store.Reader) (err error) {
				v, err = r.Session(t.Context(), loopID, agent)
				return err
			})
			return v, err
		}
		want := loop.Session{ID: "s2", Turns: 3, Totals: []loop.ModelUsage{{Model: "m", Usage: loop.Usage{Input: 4}}}}
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			return errors.Join(rt.SaveSession(t.Context(), "claude", loop.Session{ID: "s1"}), rt.SaveSession(t.Context(), "claude", want))
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(l.ID, "claude")
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Error(d, err)
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.DropSession(t.Context(), "claude") }); err != nil {
			t.Fatal(err)
		}
		for _, of := range [][2]string{{l.ID, "claude"}, {l.ID, "codex"}, {"lp_other", "claude"}} {
			if _, err := read(of[0], of[1]); !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("session of %v = %v, want ErrNotFound", of, err)
			}
		}
	})
}

package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func (r *rig) ask(run loop.Run, id string) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return tx.AskApproval(ctx, loop.Approval{ID: id, LoopID: run.LoopID, RunID: run.ID, State: loop.ApprovalOpen, Expires: noon.Add(time.Hour), Action: loop.Action{Kind: loop.ActionCommand, Argv: []string{"true"}}})
	})
}

func (r *rig) answer(id string) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return tx.AnswerApproval(ctx, id, loop.Answer{Yes: true, By: "ann", From: "cli"})
	})
}

func (r *rig) want(titles ...string) {
	r.t.Helper()
	if got := r.titles(); !slices.Equal(got, titles) {
		r.t.Errorf("told are\n%q, want\n%q", got, titles)
	}
}

// start lets a watcher begin, so that it tells what happens from now on.
func (r *rig) start(w *Watcher) {
	r.t.Helper()
	r.settled()
	if err := w.begin(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// settled waits until the feed has all that was committed. On PostgreSQL it ends before the
// oldest transaction that is under way, of other tests too.
func (r *rig) settled() {
	r.t.Helper()
	r.n++
	mark := fmt.Sprint("mark ", r.n)
	r.update(func(ctx context.Context, tx *store.Tx) error { return tx.SetHold(ctx, loop.Hold{Subject: mark}) })
	for last := (loop.FeedEntry{}); last.ID != mark; {
		entries, _, err := event.Feed{Store: r.store}.Next(r.t.Context(), last.Cursor, time.Millisecond, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(entries) > 0 {
			last = entries[len(entries)-1]
		}
	}
}

func TestAWatcherTellsWhatHappensFromItsFirstLookOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		r.end(loop.OutcomeLanded, loop.ReasonGatesPass, "a")
		asked := r.fire()
		r.ask(asked, "ap_1")
		w := r.watcher(r.store)
		r.start(w)
		r.want("ci#2 asks: may a command be run?")
		asked.Outcome, asked.Reason, asked.Approval = loop.OutcomeWaiting, loop.ReasonApproval, "ap_1"
		r.settle(asked)
		r.answer("ap_1")
		r.watch(2, w)
		r.end(loop.OutcomeFailed, loop.ReasonGateFailed, "a")
		r.watch(3, w)
		r.end(loop.OutcomeFailed, loop.ReasonGateFailed, "a") // It is told already.
		r.end(loop.OutcomeEscalated, loop.ReasonAgentEscalated, "a")
		r.watch(4, w)
		r.end(loop.OutcomeLanded, loop.ReasonGatesPass, "a")
		r.watch(6, w)
		r.want("ci#2 asks: may a command be run?", "ci#2 needs no answer any more", "ci#3 failed", "ci#5 hands its step over to you", "ci works again", "ci#6 landed")
	})
}

// The process may die anywhere: what was not committed is told by the next, and what was
// is not told again.
func TestNothingIsToldTwiceOrLostWhenAWatcherDies(t *testing.T) {
	t.Parallel()
	died := errors.New("killed")
	for point, want := range map[string][]string{
		// When the second watcher comes the loop works again: nobody was told that it had failed.
		"notify.tell.commit.before": {"ci#1 hands its step over to you", "ci#3 landed"},
		"notify.tell.commit.after":  {"ci works again", "ci#1 hands its step over to you", "ci#2 failed", "ci#3 landed"},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(r *rig) {
				r.start(r.watcher(r.store))
				r.end(loop.OutcomeEscalated, loop.ReasonAgentEscalated, "a")
				r.end(loop.OutcomeFailed, loop.ReasonGateFailed, "a")
				r.settled()
				plan := new(fault.Plan).Do(point, 1, func(context.Context) error { return died })
				if err := r.watcher(r.open()).step(fault.With(r.t.Context(), plan), new(bool)); !errors.Is(err, died) {
					r.t.Fatalf("the first watcher ended with %v", err)
				}
				r.end(loop.OutcomeLanded, loop.ReasonGatesPass, "a")
				second := r.watcher(r.open())
				r.watch(len(want), second)
				r.end(loop.OutcomeProposed, loop.ReasonGatesPass, "a")
				r.watch(len(want)+1, second)
				got := r.titles()
				slices.Sort(got)
				if want := append(slices.Clone(want), "ci#4 proposes"); !slices.Equal(got, want) {
					r.t.Errorf("told are %q, want %q", got, want)
				}
			})
		})
	}
}

func TestTwoWatchersTellEachEventOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		a, b := r.watcher(r.open()), r.watcher(r.open())
		r.start(a)
		const runs = 30
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range runs {
				r.end(loop.OutcomeEscalated, loop.ReasonAgentEscalated, "a")
			}
		}()
		r.watch(runs, a, b)
		<-done
		r.end(loop.OutcomeLanded, loop.ReasonGatesPass, "a")
		r.watch(runs+1, a, b)
		seen := map[string]int{}
		for _, title := range r.titles() {
			seen[title]++
		}
		for title, n := range seen {
			if n != 1 {
				t.Errorf("%q was told %d times", title, n)
			}
		}
		if len(seen) != runs+1 {
			t.Errorf("%d were told, want %d", len(seen), runs+1)
		}
	})
}

// A watcher that was away for longer than the feed reaches back asks for what still
// matters.
func TestAWatcherWhoseFeedWasPrunedTellsWhatStillMatters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		w := r.watcher(r.store)
		r.start(w)
		asked := r.fire()
		r.ask(asked, "ap_1")
		asked.Outcome, asked.Reason = loop.OutcomeFailed, loop.ReasonGateFailed
		r.settle(asked)
		r.watch(2, w)
		r.answer("ap_1")
		next := r.end(loop.OutcomeLanded, loop.ReasonGatesPass, "a")
		r.ask(next, "ap_2")
		r.clock.add(time.Minute)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.PruneFeed(ctx, r.clock.now(), 1000)
			return err
		})
		r.watch(6, r.watcher(r.open()))
		got := r.titles()
		slices.Sort(got)
		want := []string{"ci works again", "ci#1 asks: may a command be run?", "ci#1 failed", "ci#1 needs no answer any more", "ci#2 asks: may a command be run?", "ci#2 landed"}
		if !slices.Equal(got, want) {
			t.Errorf("told are %q, want %q", got, want)
		}
	})
}

func TestALateLoopIsToldOnceAndOnceWhenItIsBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		for range 2 {
			r.update(func(ctx context.Context, tx *store.Tx) error {
				_, err := RaiseLate(ctx, tx, r.loop, "its newest run is 3 hours old, and it comes each hour")
				return err
			})
		}
		for range 2 {
			r.update(func(ctx context.Context, tx *store.Tx) error {
				_, err := Over(ctx, tx, KeyOfLate(r.loop.ID), "")
				return err
			})
		}
		r.want("ci is late", "ci is back")
	})
}

func TestALoopThatIsRemovedEndsItsMatters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		w := r.watcher(r.store)
		r.start(w)
		r.end(loop.OutcomeFailed, loop.ReasonGateFailed, "a")
		r.watch(1, w)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.Forget(ctx, loop.Actor{Who: "ann"}, r.loop.ID)
		})
		r.watch(2, w)
		r.want("ci#1 failed", "ci works again")
	})
}

func TestAWatcherWithoutCauseForANoticeCommitsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		mine := r.open()
		w := r.watcher(mine)
		r.start(w)
		before := mine.Commits()
		for range 5 {
			r.end(loop.OutcomeReported, loop.ReasonReportedOnly, "a")
			if err := w.step(r.t.Context(), new(true)); err != nil {
				t.Fatal(err)
			}
		}
		if n := mine.Commits() - before; n != 0 {
			t.Errorf("%d commits for five runs that nobody is told of", n)
		}
	})
}

package store_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// deliver sends a message in a transaction of a run, and reports whether it was new.
func deliver(t *testing.T, s *store.Store, r loop.Run, d loop.Delivery) (added bool) {
	t.Helper()
	err := held(t.Context(), s, r, func(rt *store.RunTx) (err error) {
		added, err = rt.Deliver(t.Context(), d)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// messages are those that a query finds, as "KEY to RECIPIENT", sorted.
func messages(t *testing.T, s *store.Store, query func(context.Context, *store.Reader) ([]loop.Delivery, error)) (found []string) {
	t.Helper()
	for _, d := range look(t, s, query) {
		found = append(found, d.Key+" to "+d.To)
	}
	slices.Sort(found)
	return found
}

// waitingFor are the messages that no run of a loop has taken.
func waitingFor(t *testing.T, s *store.Store, workspace, to string) []string {
	t.Helper()
	return messages(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Delivery, error) {
		return r.Undelivered(ctx, workspace, to, 100)
	})
}

func TestAMessageIsDeliveredOnceAndWaitsUntilARunOfItsRecipientHasTakenIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		from, to := fire(t, s, seed(t, s, "dev"), "1", alice), fire(t, s, seed(t, s, "chief"), "1", bob)
		d := loop.Delivery{To: "chief", From: "dev", Key: "case/1", Kind: "escalation", Topic: "step-3", Text: "step 3 is blocked"}
		if !deliver(t, s, from, d) || deliver(t, s, from, d) {
			t.Fatal("the same key was delivered twice, or never")
		}
		lead := d
		lead.To = "lead"
		if !deliver(t, s, from, lead) {
			t.Error("the same key was not delivered to another recipient")
		}
		if diff := cmp.Diff([]string{"case/1 to chief"}, waitingFor(t, s, "ws", "chief")); diff != "" {
			t.Errorf("messages that wait (-want +got):\n%s", diff)
		}
		if got := waitingFor(t, s, "far", "chief"); got != nil {
			t.Errorf("another workspace has %v", got)
		}
		if err := held(t.Context(), s, to, func(rt *store.RunTx) error { return rt.Receive(t.Context(), d) }); err != nil {
			t.Fatal(err)
		}
		if got := waitingFor(t, s, "ws", "chief"); got != nil {
			t.Errorf("%v waits after it was taken", got)
		}
		if deliver(t, s, from, d) {
			t.Error("a message that was taken was delivered again")
		}
		got := messages(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Delivery, error) {
			return r.MessagesOnTopics(ctx, "ws", "dev", 10)
		})
		if diff := cmp.Diff([]string{"case/1 to chief", "case/1 to lead"}, got); diff != "" {
			t.Errorf("what dev has sent (-want +got):\n%s", diff)
		}
	})
}

func TestAnAnswerIsKeptWithTheMessageThatItIsFor(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		from, to := fire(t, s, seed(t, s, "dev"), "1", alice), fire(t, s, seed(t, s, "lead"), "1", bob)
		d := loop.Delivery{To: "lead", From: "dev", Key: "q1", Kind: "question", Topic: "tk_1", Text: "which port?"}
		deliver(t, s, from, d)
		d.Response = "8080"
		for range 2 { // A crash repeats it.
			if err := held(t.Context(), s, to, func(rt *store.RunTx) error { return rt.Receive(t.Context(), d) }); err != nil {
				t.Fatal(err)
			}
		}
		list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Delivery, error) {
			return r.MessagesAbout(ctx, "ws", []string{"tk_0", "tk_1"})
		})
		if len(list) != 1 || list[0].Response != "8080" || list[0].Text != "which port?" {
			t.Errorf("about the task there is %+v", list)
		}
		if got := waitingFor(t, s, "ws", "lead"); got != nil {
			t.Errorf("%v waits after it was answered", got)
		}
	})
}

func TestAPersonSendsWithoutARunAndEveryMessageIsFoundWithItsState(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		seed(t, s, "dev")
		then := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
		send := func(d loop.Delivery, taken bool) (added bool) {
			err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
				added, err = tx.Send(t.Context(), "ws", d, taken)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return added
		}
		order := loop.Delivery{To: "@dev", From: "human", Key: "m1", Kind: "order", Topic: "tk_1", Text: "do it"}
		if !send(order, false) || send(order, false) {
			t.Error("a message is not sent exactly once")
		}
		send(loop.Delivery{To: "@dev", From: "@lead", Key: "m0", Text: "old", Sent: then}, true)
		send(loop.Delivery{To: "dev", From: "lead", Key: "m3", Text: "of task files", Sent: then.Add(2 * time.Hour)}, false)
		send(loop.Delivery{To: "human", Person: true, From: "@dev", Key: "m2", Text: "done", Sent: then.Add(time.Hour)}, false)
		list := func(q store.MessageQuery) (found []string) {
			for _, m := range look(t, s, func(ctx context.Context, r *store.Reader) ([]store.Message, error) { return r.Messages(ctx, "ws", q) }) {
				found = append(found, fmt.Sprintf("%s %v", m.Key, m.Taken))
			}
			return found
		}
		for name, c := range map[string]struct {
			query store.MessageQuery
			want  []string
		}{
			"all":            {store.MessageQuery{}, []string{"m1 false", "m3 false", "m2 true", "m0 true"}},
			"to an agent":    {store.MessageQuery{Recipient: "@dev"}, []string{"m1 false", "m0 true"}},
			"of boards":      {store.MessageQuery{OfBoards: true, Limit: 2}, []string{"m1 false", "m2 true"}},
			"from an agent":  {store.MessageQuery{Sender: "@dev"}, []string{"m2 true"}},
			"one":            {store.MessageQuery{Key: "m0"}, []string{"m0 true"}},
			"the newest one": {store.MessageQuery{Limit: 1}, []string{"m1 false"}},
		} {
			if diff := cmp.Diff(c.want, list(c.query)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if got := waitingFor(t, s, "ws", "@dev"); len(got) != 1 {
			t.Errorf("%v waits for @dev", got)
		}
	})
}

func TestWhatAPersonIsToldWaitsForNoLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		from := fire(t, s, seed(t, s, "dev"), "1", alice)
		deliver(t, s, from, loop.Delivery{To: "owner", Person: true, From: "dev", Key: "k", Text: "all is blocked"})
		if got := waitingFor(t, s, "ws", "owner"); got != nil {
			t.Errorf("%v waits for a loop", got)
		}
		list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Delivery, error) {
			return r.MessagesTold(ctx, "ws", 10)
		})
		if len(list) != 1 || list[0].Text != "all is blocked" || list[0].Sent.IsZero() {
			t.Errorf("told: %+v", list)
		}
	})
}

func TestRunsThatASwitchKeptFromBeginningAreCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "dev")
		for n, outcome := range []loop.Outcome{loop.OutcomePaused, loop.OutcomeBlocked, loop.OutcomePaused, loop.OutcomeQuiet, loop.OutcomePaused, loop.OutcomePaused} {
			settle(t, s, fire(t, s, l, strconv.Itoa(n+1), alice), outcome)
		}
		if n := look(t, s, func(ctx context.Context, r *store.Reader) (int64, error) { return r.NoCyclesBetween(ctx, l.ID, 2, 6) }); n != 2 {
			t.Errorf("%d paused runs between #2 and #6, want 2", n)
		}
	})
}

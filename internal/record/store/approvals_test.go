package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ask opens an approval of a run.
func ask(t *testing.T, s *store.Store, run loop.Run, id, kind string, left time.Duration) {
	t.Helper()
	askFor(t, s, run, "st", id, kind, left)
}

func askFor(t *testing.T, s *store.Store, run loop.Run, step, id, kind string, left time.Duration) {
	t.Helper()
	a := loop.Approval{
		ID: id, LoopID: run.LoopID, RunID: run.ID, StepID: step, Action: loop.Action{Kind: kind}, State: loop.ApprovalOpen, Expires: time.Now().Add(left),
	}
	a.Hash = a.BindingHash()
	if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.AskApproval(t.Context(), a) }); err != nil {
		t.Fatal(err)
	}
}

func answer(ctx context.Context, s *store.Store, id string, a loop.Answer) error {
	return s.Update(ctx, func(tx *store.Tx) error { return tx.AnswerApproval(ctx, id, a) })
}

func TestOfAThousandAnswersAtOnceOneWinsAndTheOthersSayWho(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const people = 1000
		ask(t, s, fire(t, s, seed(t, s, "ci"), "-1", alice), "ap", loop.ActionLand, time.Hour)
		errs := make([]error, people)
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range people {
			all.Go(func() {
				<-start
				errs[i] = answer(t.Context(), s, "ap", loop.Answer{Yes: i%2 == 0, By: fmt.Sprintf("person %d", i), From: "cli", Note: "so be it"})
			})
		}
		close(start)
		all.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					t.Fatalf("%d and %d both won", winner, i)
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody won: %v", errs[0])
		}
		state := loop.ApprovalRejected
		if winner%2 == 0 {
			state = loop.ApprovalLanding
		}
		for i, err := range errs {
			if i == winner {
				continue
			}
			f, fault := errors.AsType[*loop.Fault](err)
			e, ok := errors.AsType[*loop.AnsweredError](err)
			if !fault || !ok || f.Exit != loop.ExitHeld || !errors.Is(err, loop.ErrAnswered) {
				t.Fatalf("answer %d = %v, want a fault that exits with 16 and an AnsweredError", i, err)
			}
			a := e.Approval
			if a.By != fmt.Sprintf("person %d", winner) || a.State != state || a.From != "cli" || a.Answered.IsZero() || !strings.Contains(f.Why, a.By+" said") {
				t.Fatalf("answer %d says %q of %+v, want person %d", i, f.Why, a, winner)
			}
		}
	})
}

func TestARefusedAnswerSaysWhyTheApprovalIsNotOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		ask(t, s, run, "void", loop.ActionLand, time.Hour)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.VoidProposals(ctx, run.LoopID, []string{"st"}, "", "run #2 proposes anew")
			return err
		})
		ask(t, s, run, "late", loop.ActionLand, -time.Second)
		ask(t, s, run, "no", loop.ActionLand, time.Hour)
		if err := answer(t.Context(), s, "no", loop.Answer{By: "ann", From: "api"}); err != nil {
			t.Fatal(err)
		}
		for id, says := range map[string]string{"void": "void", "late": "its time ran out at", "no": "ann said no from api at"} {
			err := answer(t.Context(), s, id, loop.Answer{Yes: true, By: "ben"})
			if e, ok := errors.AsType[*loop.AnsweredError](err); !ok || !strings.Contains(e.Error(), says) {
				t.Errorf("%s: %v, want %q", id, err, says)
			}
		}
		if err := answer(t.Context(), s, "none", loop.Answer{}); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("an approval that does not exist: %v, want ErrNotFound", err)
		}
	})
}

func TestApprovalsAreListedByLoopAndByWorkspaceNewestFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		ci, other := fire(t, s, seed(t, s, "ci"), "-1", alice), fire(t, s, seed(t, s, "other"), "-1", alice)
		for i, run := range []loop.Run{ci, ci, other} {
			ask(t, s, run, fmt.Sprintf("ap%d", i), loop.ActionAccept, time.Hour)
		}
		if err := answer(t.Context(), s, "ap0", loop.Answer{Yes: true}); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			in     string
			states []loop.ApprovalState
			want   []string
		}{
			"all of a loop":              {ci.LoopID, nil, []string{"ap1", "ap0"}},
			"all of the workspace":       {"ws", nil, []string{"ap2", "ap1", "ap0"}},
			"open ones":                  {"ws", []loop.ApprovalState{loop.ApprovalOpen}, []string{"ap2", "ap1"}},
			"of several states":          {ci.LoopID, []loop.ApprovalState{loop.ApprovalOpen, loop.ApprovalApproved}, []string{"ap1", "ap0"}},
			"of a state that none is in": {"ws", []loop.ApprovalState{loop.ApprovalVoid}, nil},
			"of another workspace":       {"elsewhere", nil, nil},
		} {
			list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Approval, error) {
				return r.Approvals(ctx, c.in, c.states...)
			})
			var got []string
			for _, a := range list {
				got = append(got, a.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestANewerProposalMakesOlderOnesOfItsStepVoid(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		for id, kind := range map[string]string{"old": loop.ActionLand, "new": loop.ActionLand, "command": loop.ActionCommand} {
			ask(t, s, run, id, kind, time.Hour)
		}
		askFor(t, s, run, "another", "of another step", loop.ActionLand, time.Hour)
		other := fire(t, s, seed(t, s, "other"), "-1", alice)
		ask(t, s, other, "elsewhere", loop.ActionLand, time.Hour)
		var voided []loop.Approval
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			voided, err = tx.VoidProposals(ctx, run.LoopID, []string{"st", "third"}, "new", "superseded by run #2")
			return err
		})
		if len(voided) != 1 || voided[0].ID != "old" || voided[0].State != loop.ApprovalVoid || voided[0].Note != "superseded by run #2" {
			t.Errorf("voided = %+v, want the old one with its reason", voided)
		}
		links := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, run.LoopID) })
		if got, want := links[len(links)-1].Body, fmt.Sprintf(`{"hash":%q,"id":"old","state":"void","why":"superseded by run #2"}`, voided[0].Hash); got != want {
			t.Errorf("the link says %s, want %s", got, want)
		}
		asked := fmt.Sprintf(`{"hash":%q,"id":"old","kind":%q,"state":"open"}`, voided[0].Hash, voided[0].Action.Kind)
		if !slices.ContainsFunc(links, func(l loop.Link) bool { return l.Body == asked }) {
			t.Errorf("no link says %s: %+v", asked, links)
		}
		open := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Approval, error) {
			return r.Approvals(ctx, "ws", loop.ApprovalOpen)
		})
		if len(open) != 4 {
			t.Errorf("%d are open, want 4: %+v", len(open), open)
		}
		if got := kinds(t, s, run.LoopID); got[loop.LinkApproval] != 5 {
			t.Errorf("links = %v, want four questions and one that is void", got)
		}
	})
}

func TestWhatWasAnsweredIsNeitherMadeVoidNorExpires(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		for id, yes := range map[string]bool{"yes": true, "no": false} {
			ask(t, s, run, id, loop.ActionLand, time.Hour)
			if err := answer(t.Context(), s, id, loop.Answer{Yes: yes, By: "ann", Note: "hers"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.Landed(t.Context(), "yes") }); err != nil {
			t.Fatal(err)
		}
		before := kinds(t, s, run.LoopID)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			voided, err := tx.VoidProposals(ctx, run.LoopID, []string{"st"}, "", "superseded")
			if len(voided) > 0 {
				t.Errorf("voided %+v", voided)
			}
			for _, id := range []string{"yes", "no"} {
				if one, oneErr := tx.VoidApproval(ctx, id, "superseded"); one || oneErr != nil {
					t.Errorf("%s was made void, %v", id, oneErr)
				}
			}
			return err
		})
		for id, want := range map[string]loop.ApprovalState{"yes": loop.ApprovalApproved, "no": loop.ApprovalRejected} {
			got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Approval, error) { return r.Approval(ctx, id) })
			if got.State != want || got.By != "ann" || got.Note != "hers" {
				t.Errorf("%s = %s by %s, %q, want %s as ann said", id, got.State, got.By, got.Note, want)
			}
		}
		if d := cmp.Diff(before, kinds(t, s, run.LoopID)); d != "" {
			t.Errorf("links (-before +after):\n%s", d)
		}
	})
}

// A yes to a landing is not final before something has landed, and only one try at a time can
// be under way by it.
func TestAYesToALandingStaysUntilItHasLanded(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		yes, no := loop.Answer{Yes: true, By: "ann"}, loop.Answer{By: "ben", Note: "not after all"}
		state := func(id string) loop.Approval {
			t.Helper()
			return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Approval, error) { return r.Approval(ctx, id) })
		}
		for id, left := range map[string]time.Duration{"lands": time.Hour, "back": time.Hour, "void": time.Hour} {
			ask(t, s, run, id, loop.ActionLand, left)
			if err := answer(t.Context(), s, id, yes); err != nil {
				t.Fatal(err)
			}
			if got := state(id); got.State != loop.ApprovalLanding || got.By != "ann" {
				t.Errorf("%s is %s by %q after a yes, want landing by ann", id, got.State, got.By)
			}
			if err := answer(t.Context(), s, id, yes); !errors.Is(err, loop.ErrAnswered) {
				t.Errorf("a second yes to %s = %v, want that it was answered", id, err)
			}
			if err := answer(t.Context(), s, id, no); !errors.Is(err, loop.ErrAnswered) {
				t.Errorf("a no to %s while a run is live = %v, want that it was answered", id, err)
			}
		}
		try := state("lands")
		try.Tries, try.Tried = 1, time.Now().Truncate(time.Millisecond)
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.TryLanding(t.Context(), try) }); err != nil {
			t.Fatal(err)
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.FailLanding(t.Context(), "lands", "no route") }); err != nil {
			t.Fatal(err)
		}
		if got := state("lands"); got.State != loop.ApprovalLanding || got.Tries != 1 || !got.Tried.Equal(try.Tried) || got.Failure != "no route" {
			t.Errorf("after a try = %+v, want it counted, and why it failed", got)
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.Landed(t.Context(), "lands") }); err != nil {
			t.Fatal(err)
		}
		if got := state("lands"); got.State != loop.ApprovalApproved || got.Failure != "" || got.By != "ann" {
			t.Errorf("after it landed = %+v, want ann's yes, and nothing that failed", got)
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.TryLanding(t.Context(), try) }); !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("a try after it landed = %v, want that it was answered", err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			done, err := tx.VoidApproval(ctx, "void", "the branch was moved")
			if !done {
				t.Error("a yes to a branch that was moved stays")
			}
			return err
		})
		settle(t, s, run, loop.OutcomeQuiet)
		if err := answer(t.Context(), s, "back", no); err != nil {
			t.Errorf("the yes cannot be taken back: %v", err)
		}
		if got := state("back"); got.State != loop.ApprovalRejected || got.By != "ben" {
			t.Errorf("the yes that was taken back is %s by %s", got.State, got.By)
		}
	})
}

func TestApprovalsThatNobodyAnsweredExpireOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		ci, other := fire(t, s, seed(t, s, "ci"), "-1", alice), fire(t, s, seed(t, s, "other"), "-1", alice)
		ask(t, s, other, "late1", loop.ActionLand, -time.Second)
		ask(t, s, ci, "late2", loop.ActionCommand, -time.Second)
		ask(t, s, ci, "open", loop.ActionLand, time.Hour)
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					list, err := tx.ExpireApprovals(t.Context())
					mu.Lock()
					defer mu.Unlock()
					for _, a := range list {
						got = append(got, a.ID+" "+string(a.State))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(got) != 2 {
			t.Errorf("expired = %v, want each of the two once", got)
		}
		for id, want := range map[string]int{ci.LoopID: 2 + 1, other.LoopID: 1 + 1} {
			if got := kinds(t, s, id); got[loop.LinkApproval] != want {
				t.Errorf("links of %s = %v, want %d: its questions, and the one that expired", id, got, want)
			}
		}
	})
}

func TestNoEffectBeginsWhileTheLoopIsPausedInTheStore(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		another := seed(t, s, "another")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, another.ID, true) })
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			return rt.RequestEffect(t.Context(), loop.EffectRequest{Kind: "land", Key: "land/1"})
		})
		if err != nil {
			t.Fatal(err)
		}
		move := func(from, to loop.EffectState) error {
			return held(t.Context(), s, run, func(rt *store.RunTx) error {
				return rt.SaveEffect(t.Context(), from, loop.Effect{RunID: run.ID, Seq: 1, Key: "land/1", State: to})
			})
		}
		pause := func(on bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, run.LoopID, on) })
		}
		pause(true)
		if err := move(loop.EffectRequested, loop.EffectApplying); !errors.Is(err, loop.ErrPaused) {
			t.Fatalf("apply while paused = %v, want ErrPaused", err)
		}
		pause(false)
		if err := move(loop.EffectRequested, loop.EffectApplying); err != nil {
			t.Fatalf("apply after it was cleared: %v", err)
		}
		pause(true)
		if err := move(loop.EffectApplying, loop.EffectDone); err != nil {
			t.Errorf("what has happened cannot be recorded while paused: %v", err)
		}
	})
}

// kinds counts the links of a chain.
func kinds(t *testing.T, s *store.Store, chain string) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, l := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, chain) }) {
		n[l.Kind]++
	}
	return n
}

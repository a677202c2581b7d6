package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var ann = loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "test"}

// pauseAll sets the switch of a workspace, or of the store if the id is empty.
func pauseAll(t *testing.T, s *store.Store, workspace string) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		set, err := tx.SetSwitch(ctx, ann, workspace, "deploy")
		if err == nil && !set {
			err = errors.New("it was set before")
		}
		return err
	})
}

func TestASwitchIsSetOnceAndSaysWhoSetItAndWhy(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		of := func(workspace string) (scopes []loop.SwitchScope) {
			t.Helper()
			for _, sw := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Switch, error) { return r.Switches(ctx, workspace) }) {
				if sw.By != ann || sw.Why != "deploy" || time.Since(sw.At).Abs() > time.Minute || sw.Workspace != map[loop.SwitchScope]string{loop.SwitchWorkspace: workspace}[sw.Scope] {
					t.Errorf("switch = %+v", sw)
				}
				scopes = append(scopes, sw.Scope)
			}
			return scopes
		}
		want := func(workspace string, scopes ...loop.SwitchScope) {
			t.Helper()
			if d := cmp.Diff(scopes, of(workspace)); d != "" {
				t.Errorf("switches of %s (-want +got):\n%s", workspace, d)
			}
		}
		want("ws")
		start := feedHead(t, s)
		pauseAll(t, s, "ws")
		want("ws", loop.SwitchWorkspace)
		want("other")
		pauseAll(t, s, "")
		want("ws", loop.SwitchStore, loop.SwitchWorkspace)
		want("other", loop.SwitchStore)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			again, err := tx.SetSwitch(ctx, loop.Actor{Who: "bob"}, "ws", "mine")
			if again {
				t.Error("it was set twice")
			}
			return err
		})
		for _, workspace := range []string{"", "ws"} {
			for _, first := range []bool{true, false} {
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					cleared, err := tx.ClearSwitch(ctx, workspace)
					if cleared != first {
						t.Errorf("cleared %q: %v, want %v", workspace, cleared, first)
					}
					return err
				})
			}
		}
		want("ws")
		var told []string
		for _, e := range feed(t, s, start) {
			told = append(told, fmt.Sprintf("%s %s %q %s", e.Kind, e.ID, e.LoopID, e.State))
		}
		changes := []string{`switch ws "" paused`, `switch store "" paused`, `switch store "" resumed`, `switch ws "" resumed`}
		if d := cmp.Diff(changes, told); d != "" {
			t.Errorf("the feed (-want +got):\n%s", d)
		}
	})
}

// What a switch of the workspace, or of the store, keeps from happening, and what not.
func TestUnderASwitchNothingBeginsAndWhatIsDeadIsStillConcluded(t *testing.T) {
	for scope, workspace := range map[loop.SwitchScope]string{loop.SwitchStore: "", loop.SwitchWorkspace: "ws"} {
		t.Run(string(scope), func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *store.Store) {
				live := fire(t, s, seed(t, s, "live"), "-1", alice)
				waits := fire(t, s, seed(t, s, "waits"), "-1", loop.Holder{})
				fresh := seed(t, s, "fresh")
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					rt, err := tx.Enter(ctx, live, loop.PhaseConclude)
					if err != nil {
						return err
					}
					return rt.RequestEffect(ctx, loop.EffectRequest{Kind: "land", Key: "k"})
				})
				pauseAll(t, s, workspace)
				effect := loop.Effect{RunID: live.ID, Seq: 1, Key: "k", State: loop.EffectApplying}
				run := loop.Run{ID: "new", LoopID: fresh.ID, N: 1, Key: "new", Trigger: "manual", Definition: "d"}
				begins := map[string]func(context.Context, *store.Tx) error{
					"fire":       func(ctx context.Context, tx *store.Tx) error { _, err := tx.Fire(ctx, run); return err },
					"fire claim": func(ctx context.Context, tx *store.Tx) error { _, err := tx.FireClaimed(ctx, run, bob); return err },
					"claim": func(ctx context.Context, tx *store.Tx) error {
						_, _, err := tx.Claim(ctx, waits.ID, waits.Fence, bob, loop.Holder{})
						return err
					},
					"effect": func(ctx context.Context, tx *store.Tx) error {
						rt, err := tx.Enter(ctx, live, loop.PhaseEffect)
						if err != nil {
							return err
						}
						return rt.SaveEffect(ctx, loop.EffectRequested, effect)
					},
				}
				for name, begin := range begins {
					err := s.Update(t.Context(), func(tx *store.Tx) error { return begin(t.Context(), tx) })
					if paused, ok := errors.AsType[*loop.PausedError](err); !ok || paused.By.Scope != scope || !errors.Is(err, loop.ErrPaused) {
						t.Errorf("%s = %v, want that the %s is paused", name, err, scope)
					}
				}
				asked := look(t, s, func(ctx context.Context, r *store.Reader) (store.Asked, error) { return r.Asked(ctx, live.ID) })
				if asked.Switch != scope {
					t.Errorf("asked = %+v, want that %s is set", asked, scope)
				}
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					_, _, err := tx.Claim(ctx, live.ID, live.Fence, bob, alice)
					return err
				})
				update(t, s, func(ctx context.Context, tx *store.Tx) error { _, err := tx.ClearSwitch(ctx, workspace); return err })
				live.Fence++
				for _, name := range []string{"claim", "fire claim", "effect"} {
					update(t, s, begins[name])
				}
			})
		})
	}
}

// A claim or an effect that has begun without the switch is over when it is set; one that
// begins meanwhile sees it.
func TestASwitchWaitsForWhatHasBegunWithoutIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		set, begun := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			<-begun
			close(set)
			done <- s.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.SetSwitch(t.Context(), ann, "ws", ""); return err })
		}()
		first := true
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			numbered, err := tx.Number(ctx, "ws", l.Protocol, l.Name)
			if err != nil {
				return err
			}
			if first {
				first = false
				close(begun)
				<-set
				time.Sleep(100 * time.Millisecond) // Whoever does not wait has set it by now.
			}
			_, err = tx.FireClaimed(ctx, loop.Run{ID: "r", LoopID: l.ID, N: numbered.LastN, Key: "k", Trigger: "manual", Definition: "d"}, alice)
			return err
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		held, err := s.HeldRuns(t.Context(), "ws", "")
		if err != nil || len(held) != 1 || held[0].ID != "r" {
			t.Errorf("held = %+v, %v: who kills has to see the run", held, err)
		}
	})
}

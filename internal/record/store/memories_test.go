package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// remembered is one that was made at noon.
func remembered(kind loop.MemoryKind, state loop.MemoryState, text, loopID string) loop.Memory {
	return loop.Memory{Kind: kind, State: state, Text: text, LoopID: loopID, Created: noon, Seen: noon}
}

// addMemories adds entries unless the workspace has them.
func addMemories(t *testing.T, s *store.Store, workspace string, list ...loop.Memory) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ChangeMemories(ctx, workspace, digestsOf(list), func(known []loop.Memory) (missing []loop.Memory) {
			for _, m := range list {
				if !slices.ContainsFunc(known, func(k loop.Memory) bool { return k.Digest() == m.Digest() }) {
					missing = append(missing, m)
				}
			}
			return missing
		})
		return err
	})
}

func digestsOf(list []loop.Memory) (digests []string) {
	for _, m := range list {
		digests = append(digests, m.Digest())
	}
	return digests
}

func memoryNumbers(list []loop.Memory) (ns []int64) {
	for _, m := range list {
		ns = append(ns, m.N)
	}
	return ns
}

func TestMemoriesAreNumberedInTheirWorkspaceAndKeptAsTheyAre(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "a")
		addLoop(t, s, "far", loop.ProtocolSpine, "a")
		full := remembered(loop.MemoryFact, loop.MemoryProposed, "use \x00tabs é", "lp_a")
		full.Confirmed, full.Failed = 2, 1
		full.Sources = []loop.MemorySource{{RunID: "run_1", LoopID: "lp_a", Run: "a#1", Agent: "x", Commit: "c", At: noon}}
		full.Last, full.Word = full.Sources[0], loop.MemoryWord{By: loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "cli"}, At: noon}
		addMemories(t, s, "ws", full)
		addMemories(t, s, "far", remembered(loop.MemoryFact, loop.MemoryActive, "far", ""))
		addMemories(t, s, "ws", full, remembered(loop.MemoryCommand, loop.MemoryActive, "make", ""))
		full.N = 1
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Memory, error) { return r.Memory(ctx, "ws", 1) })
		if d := cmp.Diff(full, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		far := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Memory, error) { return r.Memory(ctx, "far", 1) })
		second := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Memory, error) { return r.Memory(ctx, "ws", 2) })
		if far.Text != "far" || second.Text != "make" {
			t.Errorf("far #1 is %q and #2 %q", far.Text, second.Text)
		}
		err := s.View(t.Context(), func(r *store.Reader) error { _, err := r.Memory(t.Context(), "far", 2); return err })
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("an entry that is not there: %v", err)
		}
	})
}

func TestMemoriesAreListedInPagesTheNewestFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "a")
		for i, state := range []loop.MemoryState{loop.MemoryActive, loop.MemoryProposed, loop.MemoryForgotten, loop.MemoryActive, loop.MemoryActive} {
			loopID := ""
			if i == 3 {
				loopID = "lp_a"
			}
			addMemories(t, s, "ws", remembered(loop.MemoryFact, state, fmt.Sprint("entry ", i+1), loopID))
		}
		for name, c := range map[string]struct {
			query store.MemoryQuery
			want  []int64
		}{
			"all":                       {store.MemoryQuery{Workspace: "ws"}, []int64{5, 4, 3, 2, 1}},
			"what counts":               {store.MemoryQuery{Workspace: "ws", Active: true}, []int64{5, 4, 1}},
			"of a loop":                 {store.MemoryQuery{Workspace: "ws", Loop: "lp_a"}, []int64{5, 4, 3, 2, 1}},
			"of another loop":           {store.MemoryQuery{Workspace: "ws", Loop: "lp_b"}, []int64{5, 3, 2, 1}},
			"what counts for that loop": {store.MemoryQuery{Workspace: "ws", Loop: "lp_b", Active: true}, []int64{5, 1}},
			"of another workspace":      {store.MemoryQuery{Workspace: "far"}, nil},
		} {
			for size := 1; size <= len(c.want)+1; size++ {
				var got []int64
				for q := c.query; ; q.Before = got[len(got)-1] {
					q.Limit = size
					page := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Memory, error) { return r.Memories(ctx, q) })
					if len(page) == 0 {
						break
					}
					got = append(got, memoryNumbers(page)...)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s in pages of %d: %v, want %v", name, size, got, c.want)
				}
			}
		}
	})
}

func TestAChangedMemoryIsTheSameEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "a")
		m := remembered(loop.MemoryFact, loop.MemoryProposed, "use tabs", "")
		m.Sources = []loop.MemorySource{{LoopID: "lp_a"}}
		addMemories(t, s, "ws", m)
		open := func() int {
			return look(t, s, func(ctx context.Context, r *store.Reader) (int, error) { return r.ProposedMemories(ctx, "ws", "lp_a") })
		}
		if n := open(); n != 1 {
			t.Errorf("%d are proposed", n)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			m, err := tx.LockMemory(ctx, "ws", 1)
			m.State = loop.MemoryActive
			tx.SaveMemory("ws", m)
			return err
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			written, err := tx.ChangeMemories(ctx, "ws", digestsOf([]loop.Memory{m}), func(known []loop.Memory) []loop.Memory {
				known[0].Confirmed++
				return known
			})
			if len(written) != 1 || written[0].N != 1 || written[0].Confirmed != 1 {
				t.Errorf("%+v is said to be written", written)
			}
			return err
		})
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Memory, error) {
			return r.Memories(ctx, store.MemoryQuery{Workspace: "ws", Active: true, Limit: 9})
		})
		if len(got) != 1 || got[0].Confirmed != 1 || got[0].N != 1 || open() != 0 {
			t.Errorf("the memory is %+v, and %d are proposed", got, open())
		}
	})
}

// Runs that end at once learn the same: it becomes one entry, and each of them counts.
func TestWhatManyLearnAtOnceIsOneEntryThatCountsEachOfThem(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addLoop(t, s, "ws", loop.ProtocolSpine, "a")
		const writers, rounds = 4, 5
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					shared, own := remembered(loop.MemoryCommand, loop.MemoryActive, fmt.Sprint("make ", i), ""), remembered(loop.MemoryFact, loop.MemoryActive, fmt.Sprint(w, i), "")
					err := s.Update(t.Context(), func(tx *store.Tx) error {
						_, err := tx.ChangeMemories(t.Context(), "ws", digestsOf([]loop.Memory{own, shared}), func(known []loop.Memory) []loop.Memory {
							m := shared
							for _, k := range known {
								if k.Digest() == shared.Digest() {
									m = k
								}
							}
							m.Confirmed++
							return []loop.Memory{own, m}
						})
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Memory, error) {
			return r.Memories(ctx, store.MemoryQuery{Workspace: "ws", Limit: 100})
		})
		if want := rounds + writers*rounds; len(list) != want || list[0].N != int64(want) || list[want-1].N != 1 {
			t.Errorf("%d entries, numbered %v, want %d without gaps", len(list), memoryNumbers(list), want)
		}
		for _, m := range list {
			if m.Kind == loop.MemoryCommand && m.Confirmed != writers {
				t.Errorf("%q was confirmed %d times, want %d", m.Text, m.Confirmed, writers)
			}
		}
	})
}

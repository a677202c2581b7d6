package nodes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
)

func TestANodeThatWasNotSeenLatelyIsAway(t *testing.T) {
	ctx, now := t.Context(), time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	s, err := store.Open(ctx, store.Options{Database: store.Memory, Now: time.Now, Virtual: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Update(ctx, func(tx *store.Tx) error {
		save := func(name string, schema int64) error {
			return tx.SaveNode(ctx, loop.Node{ID: "node_" + name, Name: name, Schema: schema})
		}
		return errors.Join(save("here", s.Schema()), save("old", s.Schema()-1), save("there", s.Schema()))
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		later time.Duration
		there string
	}{{loop.SeenLately, nodes.Idle}, {time.Second, nodes.Away}} {
		now = now.Add(c.later)
		list, err := (&nodes.Service{Store: s, Here: "node_here"}).List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{nodes.Idle, nodes.Differs, c.there} {
			if list[i].State != want {
				t.Errorf("%s later %s is %s, want %s", c.later, list[i].Name, list[i].State, want)
			}
		}
	}
}

package notices_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/notify"
)

// serviceOf is the verbs on a node of a store.
func serviceOf(t *testing.T, s *store.Store, name string) *notices.Service {
	t.Helper()
	n := loop.Node{ID: "node_" + name, Name: name}
	return &notices.Service{
		Store: s, Registry: &node.Registry{Store: s, Node: n}, Here: n.ID, Now: s.Now,
		Sender: &notify.Sender{Environ: []string{"PATH=/usr/bin:/bin"}, Dir: t.TempDir(), System: "linux", Exec: proc.Plain{}, Now: s.Now},
	}
}

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: storetest.SQLite(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAChannelOfAnotherNodeIsNotTriedHere(t *testing.T) {
	s := open(t)
	one, two := serviceOf(t, s, "one"), serviceOf(t, s, "two")
	by := loop.Actor{Who: "ann", Role: loop.RoleHuman}
	if _, err := one.Add(t.Context(), by, loop.Channel{Kind: loop.ChannelCommand, Target: "true"}); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Add(t.Context(), by, loop.Channel{Kind: loop.ChannelCommand, Target: "false", Name: "other"}); err != nil {
		t.Fatal(err)
	}
	got, err := one.Test(t.Context(), "")
	for i := range got {
		got[i].Fault = nil
	}
	want := []notices.Tried{
		{Channel: "command", Kind: loop.ChannelCommand, Result: notices.Delivered},
		{Channel: "other", Kind: loop.ChannelCommand, Result: notices.Elsewhere, Node: "two"},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	list, err := two.List(t.Context())
	if err != nil || len(list) != 2 || list[0].NodeName != "one" || list[0].By != by || list[0].Created.IsZero() {
		t.Errorf("the channels are %+v, %v", list, err)
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	s := open(t)
	v := serviceOf(t, s, "one")
	for name, c := range map[string]struct {
		channel loop.Channel
		exit    int
	}{
		"an unknown kind": {loop.Channel{Kind: "pigeon"}, loop.ExitUsage},
		"a bad name":      {loop.Channel{Kind: loop.ChannelCommand, Target: "true", Name: "-x"}, loop.ExitUsage},
	} {
		_, err := v.Add(t.Context(), loop.Actor{}, c.channel)
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != c.exit || f.Fix == "" {
			t.Errorf("%s: %v, want a fault with exit status %d and a fix", name, err, c.exit)
		}
	}
	if list, err := v.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the channels are %+v, %v", list, err)
	}
	var nodes []loop.Node
	err := s.View(t.Context(), func(r *store.Reader) (err error) {
		nodes, err = r.Nodes(t.Context())
		return err
	})
	if err != nil || len(nodes) != 0 {
		t.Errorf("the nodes are %+v, %v", nodes, err)
	}
}

func TestAStoreThatIsNotThereHasNoChannelsAndNoNotices(t *testing.T) {
	v := notices.Service{}
	list, err := v.List(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("the channels are %+v, %v", list, err)
	}
	if log, err := v.Log(t.Context(), 0, 10); err != nil || len(log) != 0 {
		t.Errorf("the log is %+v, %v", log, err)
	}
	for name, err := range map[string]error{
		"remove": v.Remove(t.Context(), "x"),
		"test":   second(v.Test(t.Context(), "")),
		"one":    second(v.Test(t.Context(), "x")),
	} {
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestTheLogHasANoticeWithEachOfItsDeliveries(t *testing.T) {
	s := open(t)
	v := serviceOf(t, s, "one")
	for _, name := range []string{"a", "b"} {
		if _, err := v.Add(t.Context(), loop.Actor{}, loop.Channel{Kind: loop.ChannelNtfy, Target: "https://ntfy.sh/" + name, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"1", "2", "3"} {
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			_, err := notify.Raise(t.Context(), tx, loop.Notice{Key: key, Event: loop.NoticeLanded, Title: key})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := v.Log(t.Context(), 0, 2)
	if err != nil || len(page) != 2 || page[0].Title != "3" || page[1].Title != "2" {
		t.Fatalf("the newest are %+v, %v", page, err)
	}
	last, err := v.Log(t.Context(), page[1].Seq, 2)
	if err != nil || len(last) != 1 || last[0].Title != "1" || len(last[0].Deliveries) != 2 || last[0].Deliveries[1].Channel != "b" || last[0].Deliveries[1].State != loop.DeliveryPending {
		t.Errorf("before them are %+v, %v", last, err)
	}
}

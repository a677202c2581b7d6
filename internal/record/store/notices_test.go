package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// addChannels adds channels by name.
func addChannels(t *testing.T, s *store.Store, channels ...loop.Channel) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		for _, c := range channels {
			if c.Kind == "" {
				c.Kind = loop.ChannelNtfy
			}
			if added, err := tx.AddChannel(ctx, c); err != nil || !added {
				return errors.Join(err, fmt.Errorf("channel %s was added: %v", c.Name, added))
			}
		}
		return nil
	})
}

// tell adds a notice whose id is its key.
func tell(t *testing.T, s *store.Store, key string, event loop.NoticeEvent) (added bool) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		added, err = tx.AddNotice(ctx, loop.Notice{ID: "nt_" + key, Key: key, Event: event, Kind: event.Kind(), Title: "about " + key})
		return err
	})
	return added
}

func endNotice(t *testing.T, s *store.Store, key, id string) (ended bool) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		ended, err = tx.EndNotice(ctx, loop.Notice{ID: id, Key: key, Title: key + " is over"})
		return err
	})
	return ended
}

func claim(t *testing.T, s *store.Store, node string) (list []store.Outgoing) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.ClaimDeliveries(ctx, node, 10, time.Minute)
		return err
	})
	slices.SortFunc(list, func(a, b store.Outgoing) int {
		return slices.Compare([]string{a.NoticeID, a.Channel}, []string{b.NoticeID, b.Channel})
	})
	return list
}

func named(list []store.Outgoing) (names []string) {
	for _, o := range list {
		names = append(names, o.NoticeID+" on "+o.To.Name+" of "+o.Notice.Title)
	}
	return names
}

func delivered(t *testing.T, s *store.Store, o store.Outgoing) (ok bool) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		ok, err = tx.Delivered(ctx, o.NoticeDelivery)
		return err
	})
	return ok
}

func failed(t *testing.T, s *store.Store, o store.Outgoing, pause time.Duration) (state loop.DeliveryState) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		state, err = tx.NotDelivered(ctx, o.NoticeDelivery, "no\x00 route", pause, 24*time.Hour)
		return err
	})
	return state
}

// statesOf are the states of the deliveries of a notice, by channel.
func statesOf(t *testing.T, s *store.Store, id string) (states []string) {
	t.Helper()
	by := look(t, s, func(ctx context.Context, r *store.Reader) (map[string][]loop.NoticeDelivery, error) {
		return r.Deliveries(ctx, []loop.Notice{{ID: id}})
	})
	for _, d := range by[id] {
		states = append(states, fmt.Sprintf("%s %s %d", d.Channel, d.State, d.Tries))
	}
	return states
}

func TestANoticeIsOnItsWayInEachChannelThatWantsIt(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		addChannels(t, s, loop.Channel{Name: "all"}, loop.Channel{Name: "mine", Only: loop.NoticeNeedsYou}, loop.Channel{Name: "other", Only: loop.NoticeInforms})
		tell(t, s, "a", loop.NoticeLate)
		tell(t, s, "b", loop.NoticeLanded)
		want := []string{"nt_a on all of about a", "nt_a on mine of about a", "nt_b on all of about b", "nt_b on other of about b"}
		if got := named(claim(t, s, "")); !slices.Equal(got, want) {
			t.Errorf("on the way are %q, want %q", got, want)
		}
		if list := claim(t, s, ""); len(list) > 0 {
			t.Errorf("claimed twice: %q", named(list))
		}
		page := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Notice, error) { return r.Notices(ctx, 0, 1) })
		if len(page) != 1 || page[0].ID != "nt_b" || !page[0].At.Equal(noon) {
			t.Errorf("the newest is %+v", page)
		}
		page = look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Notice, error) {
			return r.Notices(ctx, page[0].Seq, 9)
		})
		if len(page) != 1 || page[0].ID != "nt_a" || page[0].Event != loop.NoticeLate {
			t.Errorf("before it is %+v", page)
		}
	})
}

func TestAMatterIsToldOnceWhileItLastsAndOnceWhenItIsOver(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		addChannels(t, s, loop.Channel{Name: "told"}, loop.Channel{Name: "untold"})
		if !tell(t, s, "late", loop.NoticeLate) || tell(t, s, "late", loop.NoticeLate) {
			t.Fatal("a matter is told twice, or never")
		}
		list := claim(t, s, "")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { // As if this one had never been tried.
			_, err := tx.RemoveChannel(ctx, "untold")
			return err
		})
		addChannels(t, s, loop.Channel{Name: "new"})
		delivered(t, s, list[0])
		if !endNotice(t, s, "late", "nt_over") || endNotice(t, s, "late", "nt_again") {
			t.Error("a matter is over twice, or never")
		}
		if got, want := named(claim(t, s, "")), []string{"nt_over on told of late is over"}; !slices.Equal(got, want) {
			t.Errorf("that it is over is told by %q, want %q", got, want)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			again, err := tx.AddNotice(ctx, loop.Notice{ID: "nt_2", Key: "late", Event: loop.NoticeLate, Kind: loop.NoticeNeedsYou})
			if !again {
				t.Error("what begins anew is not told")
			}
			return err
		})
	})
}

func TestWhatIsOverBeforeItWasTriedIsToldToNobody(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		addChannels(t, s, loop.Channel{Name: "c"})
		tell(t, s, "short", loop.NoticeApproval)
		endNotice(t, s, "short", "nt_over")
		if list := claim(t, s, ""); len(list) > 0 {
			t.Errorf("told are %q", named(list))
		}
		if got := statesOf(t, s, "nt_short"); !slices.Equal(got, []string{"c dropped 0"}) {
			t.Errorf("the deliveries are %q", got)
		}
		// A try that was under way when it was over may have arrived; no other follows.
		tell(t, s, "long", loop.NoticeApproval)
		list := claim(t, s, "")
		endNotice(t, s, "long", "nt_over2")
		if state := failed(t, s, list[0], time.Minute); state != loop.DeliveryDropped {
			t.Errorf("a try that failed when it was over is %s", state)
		}
		if got := named(claim(t, s, "")); !slices.Equal(got, []string{"nt_over2 on c of long is over"}) {
			t.Errorf("then told are %q", got)
		}
		clock.add(48 * time.Hour)
		if got := named(claim(t, s, "")); !slices.Equal(got, []string{"nt_over2 on c of long is over"}) {
			t.Errorf("later told are %q", got)
		}
	})
}

func TestADeliveryIsTriedAgainAfterAPauseAndGivenUpAfterADay(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		addChannels(t, s, loop.Channel{Name: "c"})
		tell(t, s, "a", loop.NoticeLate)
		first := claim(t, s, "")[0]
		if state := failed(t, s, first, time.Hour); state != loop.DeliveryPending {
			t.Errorf("after one failure it is %s", state)
		}
		if list := claim(t, s, ""); len(list) > 0 {
			t.Error("it is tried again at once")
		}
		clock.add(time.Hour)
		second := claim(t, s, "")
		if len(second) != 1 || second[0].Tries != 2 || second[0].Error != "no\uFFFD route" {
			t.Fatalf("the second try is %+v", second)
		}
		if delivered(t, s, first) || failed(t, s, first, time.Hour) != loop.DeliveryPending {
			t.Error("the first try still counts")
		}
		if got := statesOf(t, s, "nt_a"); !slices.Equal(got, []string{"c pending 2"}) {
			t.Errorf("then it is %q", got)
		}
		clock.add(22*time.Hour + 30*time.Minute)
		if state := failed(t, s, second[0], time.Hour); state != loop.DeliveryGaveUp {
			t.Errorf("after a day it is %s", state)
		}
		h := look(t, s, func(ctx context.Context, r *store.Reader) (store.ChannelHealth, error) {
			return r.ChannelHealth(ctx, "c")
		})
		if h.Pending != 0 || h.Last.State != loop.DeliveryGaveUp || h.Last.Error == "" || !h.Last.Due.IsZero() || h.Last.Ended.IsZero() {
			t.Errorf("the channel is %+v", h)
		}
		clock.add(time.Hour)
		if list := claim(t, s, ""); len(list) > 0 {
			t.Error("what was given up is tried again")
		}
	})
}

// The process that delivered may be gone: then another one tries.
func TestADeliveryWhoseProcessIsGoneIsTriedAgain(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		addChannels(t, s, loop.Channel{Name: "c"})
		tell(t, s, "a", loop.NoticeLanded)
		lost := claim(t, s, "node_1")[0]
		clock.add(time.Minute)
		again := claim(t, s, "node_2")
		if len(again) != 1 || !delivered(t, s, again[0]) || delivered(t, s, lost) {
			t.Errorf("claimed again: %q", named(again))
		}
		due := look(t, s, func(ctx context.Context, r *store.Reader) (bool, error) { return r.DueDeliveries(ctx, "node_2") })
		if due {
			t.Error("what was delivered is due")
		}
	})
}

func TestOfManyProcessesOneDelivers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		addChannels(t, s, loop.Channel{Name: "c"}, loop.Channel{Name: "d"})
		const notices = 20
		for i := range notices {
			tell(t, s, fmt.Sprint(i), loop.NoticeLanded)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		times := map[string]int{}
		for range 4 {
			all.Go(func() {
				for range 2 * notices {
					var mine []store.Outgoing
					err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
						mine, err = tx.ClaimDeliveries(t.Context(), "", 3, time.Hour)
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, o := range mine {
						times[o.NoticeID+o.Channel]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for what, n := range times {
			if n != 1 {
				t.Errorf("%s was claimed %d times", what, n)
			}
		}
		if len(times) != 2*notices {
			t.Errorf("%d were claimed, want %d", len(times), 2*notices)
		}
	})
}

func TestAChannelOfANodeIsDeliveredThereAndGoesWithIt(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveNode(ctx, loop.Node{ID: "node_1", Name: "one"})
		})
		addChannels(t, s, loop.Channel{Name: "here", Kind: loop.ChannelDesktop, Node: "node_1"}, loop.Channel{Name: "any"})
		tell(t, s, "a", loop.NoticeLanded)
		if got := named(claim(t, s, "node_2")); !slices.Equal(got, []string{"nt_a on any of about a"}) {
			t.Errorf("another node delivers %q", got)
		}
		if got := named(claim(t, s, "node_1")); !slices.Equal(got, []string{"nt_a on here of about a"}) {
			t.Errorf("its node delivers %q", got)
		}
		tell(t, s, "b", loop.NoticeLanded)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetNode(ctx, "node_1") })
		channels := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Channel, error) { return r.Channels(ctx) })
		if len(channels) != 1 || channels[0].Name != "any" || !channels[0].Created.Equal(noon) {
			t.Errorf("the channels are %+v", channels)
		}
		if got := statesOf(t, s, "nt_b"); !slices.Equal(got, []string{"any pending 0", "here dropped 0"}) {
			t.Errorf("the deliveries are %q", got)
		}
	})
}

func TestAChannelIsNotReplacedByAnotherOfItsName(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		addChannels(t, s, loop.Channel{Name: "c", Target: "first"})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			added, err := tx.AddChannel(ctx, loop.Channel{Name: "c", Kind: loop.ChannelWebhook, Target: "second"})
			if added {
				t.Error("it was added")
			}
			return err
		})
		channels := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Channel, error) { return r.Channels(ctx) })
		if len(channels) != 1 || channels[0].Target != "first" {
			t.Errorf("the channels are %+v", channels)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			removed, err := tx.RemoveChannel(ctx, "none")
			if removed {
				t.Error("a channel that is not there was removed")
			}
			return err
		})
	})
}

func TestTheNoticesAreReadOnFromWhereTheyWereReadTo(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		read := func() (loop.Cursor, error) {
			var c loop.Cursor
			err := s.View(t.Context(), func(r *store.Reader) (err error) {
				c, err = r.NoticeCursor(t.Context())
				return err
			})
			return c, err
		}
		if _, err := read(); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("before the first: %v, want ErrNotFound", err)
		}
		at := func(n int64) loop.Cursor { return loop.Cursor{Transaction: 7, Seq: n} }
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			first, err := tx.StartNoticeCursor(ctx, at(1))
			second, err2 := tx.StartNoticeCursor(ctx, at(9))
			moved, err3 := tx.MoveNoticeCursor(ctx, at(1), at(2))
			late, err4 := tx.MoveNoticeCursor(ctx, at(1), at(3))
			if !first || second || !moved || late {
				t.Errorf("started %v, again %v, moved %v, by one that is late %v", first, second, moved, late)
			}
			return errors.Join(err, err2, err3, err4)
		})
		if c, err := read(); err != nil || c != at(2) {
			t.Errorf("it was read to %v: %v", c, err)
		}
	})
}

func TestOldNoticesAreRemovedUnlessTheirMatterLasts(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		addChannels(t, s, loop.Channel{Name: "c"})
		tell(t, s, "lasts", loop.NoticeLate)
		tell(t, s, "over", loop.NoticeLate)
		tell(t, s, "run", loop.NoticeLanded)
		for _, o := range claim(t, s, "") {
			delivered(t, s, o)
		}
		endNotice(t, s, "over", "nt_end")
		for _, o := range claim(t, s, "") {
			delivered(t, s, o)
		}
		tell(t, s, "on its way", loop.NoticeLanded)
		clock.add(time.Hour)
		tell(t, s, "new", loop.NoticeLanded)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.PruneNotices(ctx, clock.now())
			if n != 3 {
				t.Errorf("%d were removed, want 3", n)
			}
			return err
		})
		var left []string
		for _, n := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Notice, error) { return r.Notices(ctx, 0, 9) }) {
			left = append(left, n.Key)
		}
		if want := []string{"new", "on its way", "lasts"}; !slices.Equal(left, want) {
			t.Errorf("left are %q, want %q", left, want)
		}
		lasting := look(t, s, func(ctx context.Context, r *store.Reader) (map[string]bool, error) {
			return r.LastingKeys(ctx, []string{"lasts", "over", "none"})
		})
		if len(lasting) != 1 || !lasting["lasts"] {
			t.Errorf("lasting are %v", lasting)
		}
	})
}

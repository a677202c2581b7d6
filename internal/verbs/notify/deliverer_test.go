package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func (r *rig) deliverer(s *store.Store, environ ...string) *Deliverer {
	return &Deliverer{Store: s, Sender: r.sender(environ...), Node: "node_1", Log: slog.New(slog.DiscardHandler)}
}

func (r *rig) deliver(d *Deliverer) (n int) {
	r.t.Helper()
	n, err := d.DeliverDue(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// log is the delivery log, the oldest first.
func (r *rig) log() (lines []string) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(rd *store.Reader) error {
		notices, err := rd.Notices(r.t.Context(), 0, 100)
		if err != nil {
			return err
		}
		by, err := rd.Deliveries(r.t.Context(), notices)
		for _, n := range slices.Backward(notices) {
			for _, d := range by[n.ID] {
				lines = append(lines, fmt.Sprintf("%s on %s: %s after %d", n.Title, d.Channel, d.State, d.Tries))
			}
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return lines
}

func (r *rig) wantLog(want ...string) {
	r.t.Helper()
	if got := r.log(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.t.Errorf("the log is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (r *rig) raiseLate() {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, err := RaiseLate(ctx, tx, r.loop, "it is")
		return err
	})
}

func TestADeliveryThatFailsIsTriedAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		server := receive(t, 500)
		r.addChannel(loop.Channel{Name: "hook", Kind: loop.ChannelWebhook, Target: server.URL, SecretEnv: "HOOK"})
		r.raiseLate()
		d := r.deliverer(r.store, "HOOK="+hookSecret)
		var said bytes.Buffer
		d.Log = slog.New(slog.NewTextHandler(&said, nil))
		if n := r.deliver(d); n != 1 {
			t.Fatalf("%d were tried, want 1", n)
		}
		r.wantLog("ci is late on hook: pending after 1")
		r.clock.add(time.Minute - time.Millisecond)
		if n := r.deliver(d); n != 0 {
			t.Error("it is tried again before its time")
		}
		r.clock.add(time.Millisecond)
		r.deliver(d)
		r.wantLog("ci is late on hook: delivered after 2")
		got := server.got()
		if len(got) != 2 || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") || got[0].header.Get("webhook-timestamp") == got[1].header.Get("webhook-timestamp") {
			t.Errorf("the requests are %+v", got)
		}
		for _, one := range got {
			verify(t, hookSecret, one)
		}
		if text := said.String(); !strings.Contains(text, "500 Internal Server Error") || strings.Contains(text, hookSecret) {
			t.Errorf("the log says %s", text)
		}
		r.clock.add(48 * time.Hour)
		if n := r.deliver(d); n != 0 {
			t.Error("what was delivered is tried again")
		}
	})
}

func TestADeliveryIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		r.addChannel(loop.Channel{Name: "c", Kind: loop.ChannelCommand, Target: "exit 1", Node: "node_1"})
		r.raiseLate()
		d, tries := r.deliverer(r.store), 0
		for range 60 * 48 {
			tries += r.deliver(d)
			r.clock.add(time.Minute)
		}
		// After 1, 2, 4, 8, 16, 32 minutes, and then each hour.
		r.wantLog(fmt.Sprintf("ci is late on c: gave_up after %d", tries))
		if tries != 29 {
			t.Errorf("%d tries in a day, want 29", tries)
		}
	})
}

// A process that dies before it notes what it sent makes another one send it again.
func TestWhatADeadProcessHasSentIsSentAgain(t *testing.T) {
	t.Parallel()
	died := errors.New("killed")
	for point, requests := range map[string]int{"notify.send.before": 1, "notify.send.after": 2} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(r *rig) {
				server := receive(r.t)
				r.addChannel(loop.Channel{Name: "phone", Kind: loop.ChannelNtfy, Target: server.URL + "/t"})
				r.raiseLate()
				plan := new(fault.Plan).Do(point, 1, func(context.Context) error { return died })
				if _, err := r.deliverer(r.open()).DeliverDue(fault.With(r.t.Context(), plan)); !errors.Is(err, died) {
					r.t.Fatalf("the first ended with %v", err)
				}
				second := r.deliverer(r.open())
				if n := r.deliver(second); n != 0 {
					r.t.Error("it is tried while the first may be at it")
				}
				r.clock.add(lease)
				r.deliver(second)
				r.wantLog("ci is late on phone: delivered after 2")
				if got := len(server.got()); got != requests {
					r.t.Errorf("it was sent %d times, want %d", got, requests)
				}
			})
		})
	}
}

func TestSeveralDeliverersDeliverEachNoticeOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		server := receive(t)
		r.addChannel(loop.Channel{Name: "phone", Kind: loop.ChannelNtfy, Target: server.URL + "/t"})
		const notices = 40
		r.update(func(ctx context.Context, tx *store.Tx) error {
			for i := range notices {
				if _, err := Raise(ctx, tx, loop.Notice{Key: fmt.Sprint("run/", i), Event: loop.NoticeLanded, Title: fmt.Sprint("notice ", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		enough := errors.New("enough")
		var all sync.WaitGroup
		for range 3 {
			d := r.deliverer(r.open())
			ctx, cancel := context.WithCancelCause(t.Context())
			d.Sleep = func(ctx context.Context, _ time.Duration) error { // Nothing is due any more.
				cancel(enough)
				return context.Cause(ctx)
			}
			all.Go(func() {
				if err := d.Run(ctx); !errors.Is(err, enough) {
					t.Errorf("a deliverer ended with %v", err)
				}
			})
		}
		all.Wait()
		seen := map[string]int{}
		for _, one := range server.got() {
			seen[one.header.Get("Title")]++
		}
		for title, n := range seen {
			if n != 1 {
				t.Errorf("%q was sent %d times", title, n)
			}
		}
		if got := strings.Join(r.log(), "\n"); len(seen) != notices || strings.Count(got, "delivered after 1") != notices {
			t.Errorf("%d notices arrived, and the log is\n%s", len(seen), got)
		}
	})
}

func TestTextsOfAgentsAreMadeFitToBeShown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(r *rig) {
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := Raise(ctx, tx, loop.Notice{Key: "k", Event: loop.NoticeLanded, Title: "a\x1b[31m\nb\r\nX-Header: 1\u202e", Body: strings.Repeat("long ", 1000) + "\x00"})
			return err
		})
		got := r.titles()
		if len(got) != 1 || got[0] != "a b X-Header: 1" {
			t.Errorf("the title is %q", got)
		}
	})
}

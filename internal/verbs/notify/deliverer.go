package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeSend = fault.New("notify.send.before")
	afterSend  = fault.New("notify.send.after")
)

// Deliverer delivers the notices of a store. Several may work on one store: each
// delivery is claimed by one of them for the time of a try.
type Deliverer struct {
	Store  *store.Store
	Sender *Sender
	Node   string // id of this node; empty: it delivers nothing on channels of a node
	Log    *slog.Logger
	Sleep  func(context.Context, time.Duration) error
	Gap    time.Duration // between looks at what is due; 0 means 2 s
}

const (
	atOnce   = 8               // deliveries
	lease    = 2 * timeout     // a try is over long before
	shortest = time.Minute     // the pause after the first try; it doubles with each
	longest  = time.Hour       // the longest pause
	patience = 24 * time.Hour  // after which a delivery is given up
	settling = 5 * time.Second // what a deliverer that has to stop has for noting what it sent
)

// Run delivers what is due until ctx ends, and returns its cause. It logs its errors. A
// try that is under way then is canceled; it counts as not made, and another deliverer
// makes it when its claim is over.
func (d *Deliverer) Run(ctx context.Context) error {
	gap := d.Gap
	if gap == 0 {
		gap = 2 * time.Second
	}
	for {
		n, err := d.DeliverDue(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			d.Log.WarnContext(ctx, "notices are not delivered", slog.String("error", err.Error()))
		}
		if n == atOnce && err == nil {
			continue
		}
		if err := d.Sleep(ctx, gap); err != nil {
			return err
		}
	}
}

// DeliverDue tries once what is due now, at most a few deliveries, and returns how many
// it tried. A try that fails is no error: it is noted, and made again later.
func (d *Deliverer) DeliverDue(ctx context.Context) (int, error) {
	due := false
	err := d.Store.View(ctx, func(r *store.Reader) (err error) {
		due, err = r.DueDeliveries(ctx, d.Node)
		return err
	})
	if err != nil || !due {
		return 0, err
	}
	var list []store.Outgoing
	err = d.Store.Update(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.ClaimDeliveries(ctx, d.Node, atOnce, lease)
		return err
	})
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, o := range list {
		all.Go(func() { errs[i] = d.deliver(ctx, o) })
	}
	all.Wait()
	return len(list), errors.Join(errs...)
}

// deliver tries one delivery and notes what came of it.
func (d *Deliverer) deliver(ctx context.Context, o store.Outgoing) error {
	if err := beforeSend.Hit(ctx); err != nil {
		return err
	}
	sent := d.Sender.Send(ctx, o.To, o.Notice)
	if sent != nil && ctx.Err() != nil {
		return nil
	}
	if err := afterSend.Hit(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	state := loop.DeliveryDelivered
	err := d.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if sent == nil {
			_, err = tx.Delivered(ctx, o.NoticeDelivery)
			return err
		}
		state, err = tx.NotDelivered(ctx, o.NoticeDelivery, describeFailure(sent), pauseAfter(o.Tries), patience)
		return err
	})
	if sent != nil {
		d.Log.WarnContext(ctx, "notice was not delivered", slog.String("channel", o.Channel), slog.String("notice", o.NoticeID), slog.Int64("try", o.Tries), slog.String("state", string(state)), slog.String("error", describeFailure(sent)))
	}
	return err
}

// describeFailure says why a try failed, and what to do about it if that is known.
func describeFailure(err error) string {
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Fix != "" {
		return f.Error() + "; " + f.Advice().String()
	}
	return err.Error()
}

// pauseAfter is how long a delivery rests after its n-th try, from 1.
func pauseAfter(n int64) time.Duration {
	return min(longest, shortest<<min(max(n-1, 0), 10))
}

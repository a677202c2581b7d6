// Package notices carries out the verbs for notices: where they are sent, whether that
// works, and what became of them.
//
// It delivers nothing but trials; package notify does, in a daemon.
package notices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/notify"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Service carries out the verbs.
type Service struct {
	Store    *store.Store   // nil: nothing has been stored yet
	Registry *node.Registry // of this node; nil: the verbs only read
	Sender   *notify.Sender
	Here     string // id of this node; empty: it is not registered
	Now      func() time.Time
	Claim    store.Claim // of the call that is carried out; zero: it has no key
}

// View is a channel as people see it.
type View struct {
	loop.Channel
	NodeName string             `json:"node_name,omitempty"`
	Pending  int64              `json:"pending"` // deliveries
	Last     loop.DeliveryState `json:"last,omitempty"`
	Error    string             `json:"error,omitempty"` // of the last delivery
	Ended    *time.Time         `json:"last_ended"`      // when the last delivery was over
}

// List returns all channels by name.
func (s *Service) List(ctx context.Context) (list []View, err error) {
	if s.Store == nil {
		return []View{}, nil
	}
	err = s.Store.View(ctx, func(r *store.Reader) error {
		channels, err := r.Channels(ctx)
		if err != nil {
			return err
		}
		nodes, err := r.Nodes(ctx)
		if err != nil {
			return err
		}
		list = make([]View, len(channels))
		for i, c := range channels {
			h, err := r.ChannelHealth(ctx, c.Name)
			if err != nil {
				return err
			}
			list[i] = View{Channel: c, NodeName: nameOf(nodes, c.Node), Pending: h.Pending, Last: h.Last.State, Error: h.Last.Error, Ended: shape.Time(h.Last.Ended)}
		}
		return nil
	})
	return shape.List(list), err
}

// nameOf is what a node is called; empty if the id is.
func nameOf(nodes []loop.Node, id string) string {
	for _, n := range nodes {
		if n.ID == id {
			return n.Name
		}
	}
	return id
}

// Add adds a channel and returns it as it was stored. Without a name it has that of its
// kind. One that cannot work here is a *loop.Fault, and nothing is changed. What a person
// adds is accepted on this machine.
func (s *Service) Add(ctx context.Context, by loop.Actor, c loop.Channel) (loop.Channel, error) {
	c.Name, c.By = cmp.Or(c.Name, string(c.Kind)), by
	if c.Kind.OfHost() {
		c.Node = s.Here
	}
	if err := s.Sender.Check(c); err != nil {
		return c, err
	}
	if !loop.IsNodeName(c.Name) {
		return c, &loop.Fault{
			Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a name of a channel", c.Name),
			Fix: "use at most 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
		}
	}
	if item, asks := accepted.Channel(c); asks && by.Role == loop.RoleHuman {
		if err := s.Sender.Accepted.Accept(item); err != nil {
			return c, err
		}
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) error {
		if c.Node != "" { // People know it by its name.
			if _, err := s.Registry.SaveNode(ctx, tx); err != nil {
				return err
			}
		}
		added, err := tx.AddChannel(ctx, c)
		if err == nil && !added {
			err = &loop.Fault{
				Exit: loop.ExitMissing, What: "there is a channel " + c.Name, Fix: "choose another name with --name, or remove it first: {1}",
				Actions: []loop.Command{loop.PawlCommand("notify rm", c.Name)},
			}
		}
		if err != nil {
			return err
		}
		c.Created = tx.Now()
		return tx.AnswerCall(ctx, s.Claim, c)
	})
	return c, err
}

// Remove removes a channel, and drops what it has not delivered.
func (s *Service) Remove(ctx context.Context, name string) error {
	if s.Store == nil {
		return unknown(name)
	}
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		removed, err := tx.RemoveChannel(ctx, name)
		if err == nil && !removed {
			err = unknown(name)
		}
		return err
	})
}

func unknown(name string) error {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: "there is no channel " + name, Err: loop.ErrNotFound,
		Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("notify list")},
	}
}

// Results of a trial.
const (
	Delivered = "delivered"
	Failed    = "failed"
	Elsewhere = "elsewhere" // only another node delivers on the channel
)

// Tried is what came of a trial of a channel.
type Tried struct {
	Channel string           `json:"channel"`
	Kind    loop.ChannelKind `json:"kind"`
	Result  string           `json:"result"`
	Error   string           `json:"error,omitempty"`
	Node    string           `json:"node,omitempty"` // name of the only node that delivers

	Fault error `json:"-"` // that a person can mend, or nil
}

// Test sends a trial through the channel of a name, or through all if it is empty, and
// waits for what comes of it.
func (s *Service) Test(ctx context.Context, name string) ([]Tried, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	if name != "" {
		list = slices.DeleteFunc(list, func(v View) bool { return v.Name != name })
	}
	switch {
	case len(list) == 0 && name != "":
		return nil, unknown(name)
	case len(list) == 0:
		return nil, &loop.Fault{
			Exit: loop.ExitNotFound, What: "there is no channel for notices", Err: loop.ErrNotFound,
			Fix: "add one: {1}", Actions: []loop.Command{loop.PawlCommand("notify add", "ntfy", "https://ntfy.sh/TOPIC").WithBlanks("TOPIC")},
		}
	}
	tried := make([]Tried, len(list))
	var all sync.WaitGroup
	for i, v := range list {
		all.Go(func() { tried[i] = s.try(ctx, v) })
	}
	all.Wait()
	return tried, nil
}

func (s *Service) try(ctx context.Context, v View) Tried {
	t := Tried{Channel: v.Name, Kind: v.Kind, Result: Delivered}
	if v.Node != "" && v.Node != s.Here {
		t.Result, t.Node = Elsewhere, v.NodeName
		return t
	}
	if err := s.Sender.Send(ctx, v.Channel, notify.Trial(v.Name, s.Now())); err != nil {
		t.Result, t.Error, t.Fault = Failed, err.Error(), err
	}
	return t
}

// Logged is a notice and what became of it in each channel.
type Logged struct {
	loop.Notice
	Deliveries []loop.NoticeDelivery `json:"deliveries"`
}

// Log returns the newest notices, newest first, at most limit: only those before the one
// with the number before, all if that is 0.
func (s *Service) Log(ctx context.Context, before int64, limit int) (list []Logged, err error) {
	if s.Store == nil {
		return []Logged{}, nil
	}
	err = s.Store.View(ctx, func(r *store.Reader) error {
		notices, err := r.Notices(ctx, before, limit)
		if err != nil {
			return err
		}
		by, err := r.Deliveries(ctx, notices)
		list = make([]Logged, len(notices))
		for i, n := range notices {
			list[i] = Logged{n, shape.List(by[n.ID])}
		}
		return err
	})
	return shape.List(list), err
}

// ParseOnly reads which notices a channel is told: needs-you, information, or all if it
// is empty.
func ParseOnly(text string) (loop.NoticeKind, error) {
	switch kind := loop.NoticeKind(strings.ReplaceAll(text, "-", "_")); kind {
	case "", loop.NoticeNeedsYou, loop.NoticeInforms:
		return kind, nil
	}
	return "", &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --only %q", text), Fix: "write needs-you or information, or leave it out for all notices"}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const insertChannel = `
INSERT INTO channels (name, kind, node_id, only_kind, body, created_ms) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING`

// AddChannel adds a channel for notices. It reports false, and changes nothing, if
// there is one with this name.
func (t *Tx) AddChannel(ctx context.Context, c loop.Channel) (bool, error) {
	c.Created = t.now
	n, err := t.exec(ctx, insertChannel, c.Name, string(c.Kind), c.Node, string(c.Only), encode(c), millis(t.now))
	if err != nil {
		return false, fmt.Errorf("add channel %s: %w", c.Name, err)
	}
	return n == 1, nil
}

const (
	dropChannel   = `DELETE FROM channels WHERE name = $1`
	dropPending   = `UPDATE deliveries SET state = 'dropped', due_ms = 0, ended_ms = {now}, error = $1 WHERE channel = $2 AND state = 'pending'`
	channelsOf    = `SELECT name FROM channels WHERE node_id = $1 ORDER BY name`
	channelGone   = "the channel was removed"
	channelColumn = `body, created_ms`
)

// RemoveChannel removes a channel, and drops what it has not delivered. It reports
// false if there is none with this name.
func (t *Tx) RemoveChannel(ctx context.Context, name string) (bool, error) {
	n, err := t.exec(ctx, dropChannel, name)
	if err == nil {
		_, err = t.exec(ctx, dropPending, channelGone, name)
	}
	if err != nil {
		return false, fmt.Errorf("remove channel %s: %w", name, err)
	}
	return n == 1, nil
}

// removeChannelsOf removes the channels that only one node delivers on.
func (t *Tx) removeChannelsOf(ctx context.Context, node string) error {
	names, err := collect(ctx, &t.Reader, channelsOf, scanID, node)
	for _, name := range names {
		_, removed := t.RemoveChannel(ctx, name)
		err = errors.Join(err, removed)
	}
	return err
}

func scanChannel(row interface{ Scan(...any) error }) (c loop.Channel, err error) {
	var body string
	var created int64
	if err := row.Scan(&body, &created); err != nil {
		return c, err
	}
	err = decode("channel", body, &c)
	c.Created = fromMillis(created)
	return c, err
}

const allChannels = `SELECT ` + channelColumn + ` FROM channels ORDER BY name`

// Channels lists all channels by name.
func (r *Reader) Channels(ctx context.Context) ([]loop.Channel, error) {
	return collect(ctx, r, allChannels, scanChannel)
}

// ChannelHealth is what became of the deliveries of a channel.
type ChannelHealth struct {
	Pending int64
	Last    loop.NoticeDelivery // that was asked for last; the zero Delivery: none was
}

const (
	pendingOf  = `SELECT count(*) FROM deliveries WHERE channel = $1 AND state = 'pending'`
	newestOf   = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE channel = $1 ORDER BY asked_ms DESC LIMIT 1`
	deliveryOf = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE notice_id IN ({list}) ORDER BY notice_id, channel`
)

// ChannelHealth says what became of the deliveries of a channel.
func (r *Reader) ChannelHealth(ctx context.Context, name string) (h ChannelHealth, err error) {
	if err := r.queryRow(ctx, pendingOf, name).Scan(&h.Pending); err != nil {
		return h, fmt.Errorf("count the deliveries of channel %s: %w", name, err)
	}
	newest, err := collect(ctx, r, newestOf, scanDelivery, name)
	if err != nil {
		return h, fmt.Errorf("read the deliveries of channel %s: %w", name, err)
	}
	if len(newest) == 1 {
		h.Last = newest[0]
	}
	return h, nil
}

const deliveryColumns = `notice_id, channel, state, tries, due_ms, error, ended_ms`

func scanDelivery(row interface{ Scan(...any) error }) (d loop.NoticeDelivery, err error) {
	var due, ended int64
	err = row.Scan(&d.NoticeID, &d.Channel, &d.State, &d.Tries, &due, &d.Error, &ended)
	d.Due, d.Ended = fromMillis(due), fromMillis(ended)
	return d, err
}

// Deliveries lists what became of some notices in each channel, by channel.
func (r *Reader) Deliveries(ctx context.Context, notices []loop.Notice) (map[string][]loop.NoticeDelivery, error) {
	var ids []string
	for _, n := range notices {
		ids = append(ids, n.ID)
	}
	slices.Sort(ids)
	list, err := collectInParts(ctx, r, deliveryOf, scanDelivery, ids)
	by := make(map[string][]loop.NoticeDelivery, len(ids))
	for _, d := range list {
		by[d.NoticeID] = append(by[d.NoticeID], d)
	}
	return by, err
}

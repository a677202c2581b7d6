package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const noticeColumns = `seq, body, at_ms, ended_ms`

func scanNotice(row interface{ Scan(...any) error }) (n loop.Notice, err error) {
	var body string
	var seq, at, ended int64
	if err := row.Scan(&seq, &body, &at, &ended); err != nil {
		return n, err
	}
	err = decode("notice", body, &n)
	n.Seq, n.At, n.Ended = seq, fromMillis(at), fromMillis(ended)
	return n, err
}

const insertNotice = `
INSERT INTO notices (id, key, is_over, lasts, body, at_ms) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`

// AddNotice records a notice and a delivery for each channel that wants it. It reports
// false, and changes nothing, while the matter of an earlier notice with its key lasts.
func (t *Tx) AddNotice(ctx context.Context, n loop.Notice) (bool, error) {
	lasts := 0
	if n.Event.Lasts() {
		lasts = 1
	}
	added, err := t.exec(ctx, insertNotice, n.ID, n.Key, 0, lasts, encode(n), millis(t.now))
	if err != nil || added == 0 {
		return false, wrapNotice("add notice", n.Key, err)
	}
	channels, err := t.Channels(ctx)
	var names []string
	for _, c := range channels {
		if c.Wants(n.Kind) {
			names = append(names, c.Name)
		}
	}
	return true, wrapNotice("add notice", n.Key, errors.Join(err, t.addDeliveries(ctx, n.ID, names)))
}

func wrapNotice(doing, key string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s %s: %w", doing, key, err)
	}
	return err
}

const insertDeliveries = `INSERT INTO deliveries (notice_id, channel, state, due_ms, asked_ms) VALUES {rows}`

func (t *Tx) addDeliveries(ctx context.Context, id string, channels []string) error {
	var rows [][]any
	for _, name := range channels {
		rows = append(rows, []any{id, name, string(loop.DeliveryPending), millis(t.now), millis(t.now)})
	}
	return t.insertRows(ctx, insertDeliveries, rows)
}

const (
	lastingNotice = `SELECT ` + noticeColumns + ` FROM notices WHERE key = $1 AND is_over = 0 AND ended_ms = 0`
	lastingKeys   = `SELECT key FROM notices WHERE is_over = 0 AND ended_ms = 0 AND key IN ({list})`
)

// LastingNotice returns the notice of a key whose matter lasts, or ErrNotFound.
func (r *Reader) LastingNotice(ctx context.Context, key string) (loop.Notice, error) {
	n, err := scanNotice(r.queryRow(ctx, lastingNotice, key))
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrNotFound
	}
	return n, wrapNotice("read notice", key, err)
}

const lastingNotices = `SELECT ` + noticeColumns + ` FROM notices WHERE is_over = 0 AND ended_ms = 0 AND lasts = 1 ORDER BY seq`

// LastingNotices lists the notices whose matter has an end and lasts, the oldest first:
// at most a few for each loop and open approval.
func (r *Reader) LastingNotices(ctx context.Context) ([]loop.Notice, error) {
	return collect(ctx, r, lastingNotices, scanNotice)
}

// LastingKeys tells which of the keys have a notice whose matter lasts.
func (r *Reader) LastingKeys(ctx context.Context, keys []string) (map[string]bool, error) {
	list, err := collectInParts(ctx, r, lastingKeys, scanID, keys)
	lasting := make(map[string]bool, len(list))
	for _, key := range list {
		lasting[key] = true
	}
	return lasting, err
}

const (
	endNotice = `UPDATE notices SET ended_ms = $1 WHERE key = $2 AND is_over = 0 AND ended_ms = 0 RETURNING id`
	toldOn    = `SELECT channel FROM deliveries WHERE notice_id = $1 AND (state = 'delivered' OR tries > 0) ORDER BY channel`
	dropEarly = `UPDATE deliveries SET state = 'dropped', due_ms = 0, ended_ms = {now} WHERE notice_id = $1 AND state = 'pending' AND tries = 0`
)

// EndNotice says that the matter of a key is over. The notice over, with an id and a text of
// its own, is told where that of the matter was or may have been; where it was not, neither
// is. It reports false, and changes nothing, if no matter with that key lasts.
func (t *Tx) EndNotice(ctx context.Context, over loop.Notice) (bool, error) {
	var id string
	err := t.queryRow(ctx, endNotice, millis(t.now), over.Key).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	var told []string
	if err == nil {
		_, err = t.exec(ctx, dropEarly, id)
	}
	if err == nil {
		told, err = collect(ctx, &t.Reader, toldOn, scanID, id)
	}
	if err == nil {
		over.Over = true
		_, err = t.exec(ctx, insertNotice, over.ID, over.Key, 1, 0, encode(over), millis(t.now))
	}
	if err == nil {
		err = t.addDeliveries(ctx, over.ID, told)
	}
	return err == nil, wrapNotice("end notice", over.Key, err)
}

const noticesBefore = `SELECT ` + noticeColumns + ` FROM notices WHERE seq < $1 ORDER BY seq DESC LIMIT $2`

// Notices lists the newest notices, newest first: only those before the one with the
// given Seq, all if it is 0.
func (r *Reader) Notices(ctx context.Context, before int64, limit int) ([]loop.Notice, error) {
	return collect(ctx, r, noticesBefore, scanNotice, cmp.Or(before, math.MaxInt64), limit)
}

const dueDeliveries = `
SELECT d.notice_id, d.channel FROM deliveries d JOIN channels c ON c.name = d.channel
WHERE  d.state = 'pending' AND d.due_ms <= {now} AND c.node_id IN ('', $1)
ORDER  BY d.due_ms LIMIT $2`

// DueDeliveries reports whether a node has anything to deliver now, by the database's
// clock.
func (r *Reader) DueDeliveries(ctx context.Context, node string) (bool, error) {
	due, err := collect(ctx, r, dueDeliveries, func(row interface{ Scan(...any) error }) (id string, err error) {
		var channel string
		err = row.Scan(&id, &channel)
		return id, err
	}, node, 1)
	return len(due) > 0, err
}

const claimDeliveries = `
UPDATE deliveries SET tries = tries + 1, due_ms = {now} + $3
WHERE  state = 'pending' AND due_ms <= {now} AND (notice_id, channel) IN (` + dueDeliveries + `)
RETURNING ` + deliveryColumns

// Outgoing is a delivery with what is delivered, and where.
type Outgoing struct {
	loop.NoticeDelivery
	Notice loop.Notice
	To     loop.Channel
}

// ClaimDeliveries takes what a node has to deliver now, at most limit, so that for the
// time of a lease nobody else tries it.
func (t *Tx) ClaimDeliveries(ctx context.Context, node string, limit int, lease time.Duration) (list []Outgoing, err error) {
	claimed, err := collect(ctx, &t.Reader, claimDeliveries, scanDelivery, node, limit, lease.Milliseconds())
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	channels, err := t.Channels(ctx)
	if err != nil {
		return nil, err
	}
	to := make(map[string]loop.Channel, len(channels))
	for _, c := range channels {
		to[c.Name] = c
	}
	for _, d := range claimed {
		n, err := t.notice(ctx, d.NoticeID)
		if err != nil {
			return nil, err
		}
		list = append(list, Outgoing{d, n, to[d.Channel]})
	}
	return list, nil
}

const noticeByID = `SELECT ` + noticeColumns + ` FROM notices WHERE id = $1`

func (r *Reader) notice(ctx context.Context, id string) (loop.Notice, error) {
	n, err := scanNotice(r.queryRow(ctx, noticeByID, id))
	return n, wrapNotice("read notice", id, err)
}

const deliveryDone = `
UPDATE deliveries SET state = 'delivered', error = '', due_ms = 0, ended_ms = {now}
WHERE  notice_id = $1 AND channel = $2 AND tries = $3 AND state = 'pending'`

// Delivered says that a claimed delivery has happened. It reports false, and changes
// nothing, if another try of it has begun, or if it was dropped.
func (t *Tx) Delivered(ctx context.Context, d loop.NoticeDelivery) (bool, error) {
	n, err := t.exec(ctx, deliveryDone, d.NoticeID, d.Channel, d.Tries)
	return n == 1, wrapNotice("deliver notice", d.NoticeID, err)
}

const deliveryFailed = `
UPDATE deliveries SET error = $1, due_ms = {now} + $2
WHERE  notice_id = $3 AND channel = $4 AND tries = $5 AND state = 'pending'
RETURNING asked_ms + $6 < {now} + $2, (SELECT ended_ms > 0 FROM notices WHERE id = notice_id)`

const deliveryEnded = `
UPDATE deliveries SET state = $1, due_ms = 0, ended_ms = {now} WHERE notice_id = $2 AND channel = $3`

// NotDelivered says that a claimed delivery failed and why, and that it is tried again
// after a pause: not if that is later than patience after it was asked for, and not if its
// matter is over. It returns the state then, or that of another try which has begun.
func (t *Tx) NotDelivered(ctx context.Context, d loop.NoticeDelivery, why string, pause, patience time.Duration) (loop.DeliveryState, error) {
	var late, over bool
	err := t.queryRow(ctx, deliveryFailed, storableText(why), pause.Milliseconds(), d.NoticeID, d.Channel, d.Tries, patience.Milliseconds()).Scan(&late, &over)
	state := loop.DeliveryPending
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return state, nil
	case over:
		state = loop.DeliveryDropped
	case late:
		state = loop.DeliveryGaveUp
	}
	if err == nil && state != loop.DeliveryPending {
		_, err = t.exec(ctx, deliveryEnded, string(state), d.NoticeID, d.Channel)
	}
	return state, wrapNotice("deliver notice", d.NoticeID, err)
}

const readNoticeCursor = `SELECT cursor FROM notice_cursor WHERE one = 1`

// NoticeCursor is how far the feed was read for notices, or ErrNotFound if nobody has
// begun.
func (r *Reader) NoticeCursor(ctx context.Context) (c loop.Cursor, err error) {
	var text string
	err = r.queryRow(ctx, readNoticeCursor).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return c, loop.ErrNotFound
	case err != nil:
		return c, fmt.Errorf("read how far the feed was read for notices: %w", err)
	}
	return c, c.UnmarshalText([]byte(text))
}

const (
	startNoticeCursor = `INSERT INTO notice_cursor (one, cursor) VALUES (1, $1) ON CONFLICT DO NOTHING`
	moveNoticeCursor  = `UPDATE notice_cursor SET cursor = $1 WHERE one = 1 AND cursor = $2`
)

// StartNoticeCursor says from where on the feed is read for notices. It reports false,
// and changes nothing, if somebody has begun.
func (t *Tx) StartNoticeCursor(ctx context.Context, at loop.Cursor) (bool, error) {
	n, err := t.exec(ctx, startNoticeCursor, at.String())
	return n == 1, wrapNotice("start the notices at", at.String(), err)
}

// MoveNoticeCursor says how far the feed was read for notices. It reports false, and
// changes nothing, if it is not where the caller found it: another has told what is between.
func (t *Tx) MoveNoticeCursor(ctx context.Context, from, to loop.Cursor) (bool, error) {
	n, err := t.exec(ctx, moveNoticeCursor, to.String(), from.String())
	return n == 1, wrapNotice("move the notices to", to.String(), err)
}

const (
	pruneDeliveries = `DELETE FROM deliveries WHERE notice_id IN (SELECT id FROM notices WHERE at_ms < $1) AND state <> 'pending'`
	pruneNotices    = `DELETE FROM notices WHERE at_ms < $1 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notice_id = notices.id) AND (lasts = 0 OR ended_ms > 0)`
)

// PruneNotices removes the notices that are older than a time, whose matter does not last
// and which are not on their way, and returns how many.
func (t *Tx) PruneNotices(ctx context.Context, before time.Time) (int64, error) {
	_, err := t.exec(ctx, pruneDeliveries, millis(before))
	if err != nil {
		return 0, fmt.Errorf("prune deliveries: %w", err)
	}
	n, err := t.exec(ctx, pruneNotices, millis(before))
	if err != nil {
		return 0, fmt.Errorf("prune notices: %w", err)
	}
	return n, nil
}

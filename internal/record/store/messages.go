package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// States of messages.
const (
	messageWaits = "waits" // for a run of the loop that it is for
	messageTaken = "taken"
	messageTold  = "told" // to a person
)

const insertMessage = `
INSERT INTO messages (workspace_id, recipient, message_key, sender, topic, state, body, sent_ms)
SELECT workspace_id, $1, $2, $3, $4, $5, $6, $7 FROM loops WHERE id = $8
ON CONFLICT (workspace_id, recipient, message_key) DO NOTHING`

// Deliver records a message of the run's loop. It reports false, and changes nothing, if the
// recipient has one with that key already.
func (t *RunTx) Deliver(ctx context.Context, d loop.Delivery) (bool, error) {
	state := messageWaits
	if d.Person {
		state = messageTold
	}
	d.Sent = t.now
	n, err := t.exec(ctx, insertMessage, d.To, d.Key, d.From, d.Topic, state, encode(d), millis(t.now), t.run.LoopID)
	if err != nil {
		return false, fmt.Errorf("deliver message %s to %s: %w", d.Key, d.To, err)
	}
	return n == 1, nil
}

const (
	takeMessage = `
UPDATE messages SET state = 'taken', taken_by = $1
WHERE  workspace_id = (SELECT workspace_id FROM loops WHERE id = $2) AND recipient = $3 AND message_key = $4 AND state = 'waits'`
	answerMessage = `UPDATE messages SET body = $1 WHERE workspace_id = (SELECT workspace_id FROM loops WHERE id = $2) AND recipient = $3 AND message_key = $4`
)

// Receive records that the run has taken a message into the memory of its loop, and its
// Response, if it has one.
func (t *RunTx) Receive(ctx context.Context, d loop.Delivery) error {
	_, err := t.exec(ctx, takeMessage, t.run.ID, t.run.LoopID, d.To, d.Key)
	if err == nil && d.Response != "" {
		_, err = t.exec(ctx, answerMessage, encode(d), t.run.LoopID, d.To, d.Key)
	}
	if err != nil {
		return fmt.Errorf("receive message %s: %w", d.Key, err)
	}
	return nil
}

const waitingMessages = `SELECT body FROM messages WHERE workspace_id = $1 AND recipient = $2 AND state = 'waits' ORDER BY sent_ms, message_key LIMIT $3`

// Undelivered lists the messages that no run of their recipient has taken yet, the oldest
// first.
func (r *Reader) Undelivered(ctx context.Context, workspace, recipient string, limit int) ([]loop.Delivery, error) {
	return r.messages(ctx, waitingMessages, workspace, recipient, limit)
}

const topicMessages = `SELECT body FROM messages WHERE workspace_id = $1 AND sender = $2 AND topic <> '' ORDER BY sent_ms DESC, message_key LIMIT $3`

// MessagesOnTopics lists what a loop has sent about any topic, the newest first.
func (r *Reader) MessagesOnTopics(ctx context.Context, workspace, sender string, limit int) ([]loop.Delivery, error) {
	return r.messages(ctx, topicMessages, workspace, sender, limit)
}

const aboutMessages = `SELECT body FROM messages WHERE workspace_id = $1 AND topic IN ({list}) AND topic <> '' ORDER BY sent_ms, message_key`

// MessagesAbout lists the messages about topics, whoever sent them, the oldest of each topic first.
func (r *Reader) MessagesAbout(ctx context.Context, workspace string, topics []string) ([]loop.Delivery, error) {
	list, err := collectInParts(ctx, r, aboutMessages, scanBody[loop.Delivery], topics, workspace)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return list, nil
}

const toldMessages = `SELECT body FROM messages WHERE workspace_id = $1 AND state = 'told' ORDER BY sent_ms DESC, message_key LIMIT $2`

// MessagesTold lists what loops of a workspace have told people, the newest first.
func (r *Reader) MessagesTold(ctx context.Context, workspace string, limit int) ([]loop.Delivery, error) {
	return r.messages(ctx, toldMessages, workspace, limit)
}

func (r *Reader) messages(ctx context.Context, query string, args ...any) ([]loop.Delivery, error) {
	list, err := collect(ctx, r, query, scanBody[loop.Delivery], args...)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return list, nil
}

const sendMessage = `
INSERT INTO messages (workspace_id, recipient, message_key, sender, topic, state, body, sent_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (workspace_id, recipient, message_key) DO NOTHING`

// Send records a message that no run sends: that of a person, or one that is taken over from
// elsewhere, when it was sent, and perhaps taken already. It reports false, and changes
// nothing, if the recipient has one with that key already.
func (t *Tx) Send(ctx context.Context, workspace string, d loop.Delivery, taken bool) (bool, error) {
	if d.Sent.IsZero() {
		d.Sent = t.now
	}
	state := messageWaits
	switch {
	case d.Person:
		state = messageTold
	case taken:
		state = messageTaken
	}
	n, err := t.exec(ctx, sendMessage, workspace, d.To, d.Key, d.From, d.Topic, state, encode(d), millis(d.Sent))
	if err != nil {
		return false, fmt.Errorf("send message %s to %s: %w", d.Key, d.To, err)
	}
	return n == 1, nil
}

// Message is a message with what became of it.
type Message struct {
	loop.Delivery

	Taken bool // a run has taken it, or a person was told
}

// MessageQuery selects messages of a workspace. Fields that are empty select nothing.
type MessageQuery struct {
	Recipient string
	Sender    string
	Key       string
	OfBoards  bool // only those to or from agents of boards, whose loops have names like @dev
	Limit     int
}

const (
	messagesIn = `SELECT body, state FROM messages WHERE workspace_id = $1`
	ofBoards   = ` AND (substr(recipient, 1, 1) = '@' OR substr(sender, 1, 1) = '@')`
	newestSent = ` ORDER BY sent_ms DESC, message_key DESC`
)

// Messages lists messages, the newest first.
func (r *Reader) Messages(ctx context.Context, workspace string, q MessageQuery) ([]Message, error) {
	query, args := messagesIn, []any{workspace}
	for _, c := range []struct{ column, value string }{{"recipient", q.Recipient}, {"sender", q.Sender}, {"message_key", q.Key}} {
		if c.value != "" {
			args = append(args, storableText(c.value))
			query += fmt.Sprintf(" AND %s = $%d", c.column, len(args))
		}
	}
	if q.OfBoards {
		query += ofBoards
	}
	args = append(args, cmp.Or(q.Limit, mostRows))
	list, err := collect(ctx, r, query+newestSent+fmt.Sprintf(" LIMIT $%d", len(args)), func(row interface{ Scan(...any) error }) (m Message, err error) {
		var body, state string
		if err := row.Scan(&body, &state); err != nil {
			return m, err
		}
		m.Taken = state != messageWaits
		return m, decode("message", body, &m.Delivery)
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return list, nil
}

package board

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// rowOf makes a row whose body is v. Nothing of a board fails to marshal.
func rowOf(set, key, scope, state, owner string, v any) loop.Row {
	body, err := json.Marshal(v)
	if err != nil {
		panic("board: " + set + " do not marshal: " + err.Error())
	}
	return loop.Row{Set: set, Key: key, Scope: scope, State: state, Owner: owner, Body: body}
}

// Row returns the row of the board, without its version.
func (b Board) Row() loop.Row { return rowOf(SetBoards, b.ID, "", "", b.Slug, b) }

// Row returns the row of the task, without its version and without its log.
func (t Task) Row() loop.Row {
	t.ExecutionLog = nil
	return rowOf(SetTasks, t.ID, t.BoardID, string(t.Status), t.AssigneeID, t)
}

// Row returns the row of the comment, without its version.
func (m Comment) Row() loop.Row { return rowOf(SetComments, m.ID, m.TaskID, "", m.AuthorID, m) }

// Row returns the row of the agent, without its version.
func (m Member) Row() loop.Row { return rowOf(SetMembers, m.Handle, "", "", "", m) }

// Row returns the row of the mind of an agent, without its version.
func (m Mind) Row(handle string) loop.Row {
	return rowOf(SetMinds, handle, "", string(m.Status), "", m)
}

// Row returns the row of the activity, without its version.
func (a Activity) Row() loop.Row {
	return rowOf(SetActivity, a.ID, a.BoardID, string(a.ActionType), a.ActorID, a)
}

// States of subscriptions.
const (
	SubscriptionWaits        = "waits"
	SubscriptionAcknowledged = "acknowledged"
)

// Row returns the row of the mention, without its version.
func (s Subscription) Row() loop.Row {
	state := SubscriptionWaits
	if s.Acknowledged {
		state = SubscriptionAcknowledged
	}
	return rowOf(SetSubscriptions, s.ID, s.TaskID, state, s.AgentID, s)
}

// Row returns the row of the resource, without its version.
func (r Resource) Row() loop.Row {
	return rowOf(SetResources, r.ID, r.BoardID, string(r.Category), "", r)
}

// Row returns the row of the error, without its version.
func (e Error) Row() loop.Row { return rowOf(SetErrors, e.ID, "", e.Phase, e.AgentID, e) }

// Row returns the row of the entry of a task's log, without its version. Keys of a task sort
// as its entries.
func (e LogEntry) Row(key, taskID, handle string) loop.Row {
	return rowOf(SetLog, key, taskID, string(e.Type), handle, e)
}

// FromRow reads what a row holds.
func FromRow[T any](r loop.Row) (v T, err error) {
	if err := json.Unmarshal(r.Body, &v); err != nil {
		return v, fmt.Errorf("read %s of %s: %w", r.Key, r.Set, err)
	}
	return v, nil
}

// FromRows reads what rows hold.
func FromRows[T any](rows []loop.Row) ([]T, error) {
	list := make([]T, 0, len(rows))
	for _, r := range rows {
		v, err := FromRow[T](r)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Delivery returns the delivery that the message is: to the loop of an agent, or to a
// person.
func (m Message) Delivery() loop.Delivery {
	return loop.Delivery{
		To: LoopName(m.ToAgentID), Person: m.ToAgentID == Human, Key: m.ID, From: LoopName(m.FromAgentID), Kind: string(m.MessageType), Topic: m.TaskID, Text: m.Content,
		Answers: m.Answers, Response: m.Response, Sent: m.SentAt.Time(),
	}
}

// LoopName returns the name of the loop of an agent; a person has none, and is human.
func LoopName(handle string) string {
	if handle == Human {
		return Human
	}
	return "@" + handle
}

// FromDelivery returns the message that a delivery is. Whether it was taken is not in it.
func FromDelivery(d loop.Delivery) Message {
	return Message{
		ID: d.Key, FromAgentID: strings.TrimPrefix(d.From, "@"), ToAgentID: strings.TrimPrefix(d.To, "@"), MessageType: MessageType(d.Kind), Content: d.Text, TaskID: d.Topic,
		Answers: d.Answers, Response: d.Response, SentAt: At(d.Sent),
	}
}

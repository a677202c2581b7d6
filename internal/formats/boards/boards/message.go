package boards

import (
	"cmp"
	"context"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

const prefixMessage = "ms"

// SendRequest is a message to send.
type SendRequest struct {
	From    string `json:"from,omitempty"` // handle; empty: a person
	To      string `json:"to"`             // handle
	Kind    string `json:"kind"`
	Content string `json:"content"`
	Task    string `json:"task,omitempty"`    // id
	Answers string `json:"answers,omitempty"` // id of the message that it answers
}

// MessageView is one message, schema pawl.message/v1.
type MessageView struct {
	Schema string `json:"schema"`
	board.Message
}

func viewMessage(m store.Message) MessageView {
	v := MessageView{Schema: "pawl.message/v1", Message: board.FromDelivery(m.Delivery)}
	v.Acknowledged = m.Taken
	return v
}

// Send sends a message. Its recipient answers it in its next heartbeat.
func (s *Service) Send(ctx context.Context, by loop.Actor, r SendRequest) (v MessageView, err error) {
	m := board.Message{
		ID: s.NewID(prefixMessage), FromAgentID: cmp.Or(handleOf(r.From), board.Human), ToAgentID: handleOf(r.To), MessageType: board.MessageType(r.Kind), Content: r.Content, TaskID: r.Task, Answers: r.Answers,
	}
	what := "the message"
	if err := invalid(what, m.Check()); err != nil {
		return v, err
	}
	if err := s.checkSecrets(what, map[string]string{"content": m.Content}); err != nil {
		return v, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		members, err := s.members(ctx, &tx.Reader)
		if err != nil {
			return err
		}
		if m.TaskID != "" {
			if _, err := tx.Row(ctx, s.ws.ID, board.SetTasks, m.TaskID); err != nil {
				return absent(err, "task", m.TaskID, loop.PawlCommand("task list"))
			}
		}
		if m.Answers != "" {
			if _, err := s.findMessage(ctx, &tx.Reader, m.Answers); err != nil {
				return err
			}
		}
		if err := s.maySend(ctx, tx, members, m); err != nil {
			return err
		}
		m.SentAt = board.At(tx.Now())
		if _, err := tx.Send(ctx, s.ws.ID, m.Delivery(), false); err != nil {
			return err
		}
		v = MessageView{Schema: "pawl.message/v1", Message: m}
		if err := s.link(ctx, tx, by, "msg send", m.ID, plain(m)); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, v)
	})
	return v, err
}

// maySend is the error for a message that the hierarchy or the bounds of chatter refuse.
func (s *Service) maySend(ctx context.Context, tx *store.Tx, members []board.Member, m board.Message) error {
	reason, words := board.MaySend(board.Team(members), m)
	if reason == "" {
		var said []loop.Delivery
		var err error
		if m.TaskID != "" {
			said, err = tx.MessagesAbout(ctx, s.ws.ID, []string{m.TaskID})
		} else {
			said, err = s.between(ctx, &tx.Reader, m.FromAgentID, m.ToAgentID)
		}
		if err != nil {
			return err
		}
		var history []board.Message
		for _, d := range said {
			history = append(history, board.FromDelivery(d))
		}
		reason, words = board.MaySay(history, m, tx.Now())
	}
	if reason == "" {
		return nil
	}
	if reason == loop.ReasonNotAgent {
		return &loop.Fault{Exit: loop.ExitNotFound, What: "the message is refused", Why: words, Fix: "name agents that {1} shows", Actions: []loop.Command{loop.PawlCommand("agent list")}}
	}
	return &loop.Fault{Exit: loop.ExitRefused, What: "the message is refused", Why: words, Fix: "send a question or a suggestion to somebody else, or wait"}
}

// between lists the newest messages of two agents.
func (s *Service) between(ctx context.Context, r *store.Reader, a, b string) (all []loop.Delivery, err error) {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		some, err := r.Messages(ctx, s.ws.ID, store.MessageQuery{Sender: board.LoopName(pair[0]), Recipient: board.LoopName(pair[1]), Limit: 100})
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			all = append(all, m.Delivery)
		}
	}
	return all, nil
}

// MessageQuery selects messages.
type MessageQuery struct {
	To    string `json:"to,omitempty"`   // handle, or human; empty: to all
	From  string `json:"from,omitempty"` // likewise
	Limit int    `json:"limit"`
}

// ListMessages lists messages of agents of boards, the newest first.
func (s *Service) ListMessages(ctx context.Context, q MessageQuery) (all []MessageView, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	query := store.MessageQuery{OfBoards: true, Limit: q.Limit}
	if q.To != "" {
		query.Recipient = board.LoopName(handleOf(q.To))
	}
	if q.From != "" {
		query.Sender = board.LoopName(handleOf(q.From))
	}
	err = s.view(ctx, func(r *store.Reader) error {
		found, err := r.Messages(ctx, s.ws.ID, query)
		all = nil
		for _, m := range found {
			all = append(all, viewMessage(m))
		}
		return err
	})
	return shape.List(all), err
}

// ShowMessage shows a message, with the response that it got.
func (s *Service) ShowMessage(ctx context.Context, id string) (v MessageView, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		v, err = s.findMessage(ctx, r, id)
		return err
	})
	return v, absent(err, "message", id, loop.PawlCommand("msg list"))
}

// findMessage finds a message between agents of boards of the workspace.
func (s *Service) findMessage(ctx context.Context, r *store.Reader, id string) (MessageView, error) {
	var list []store.Message
	var err error
	if id != "" {
		list, err = r.Messages(ctx, s.ws.ID, store.MessageQuery{Key: id, OfBoards: true, Limit: 1})
	}
	if err == nil && len(list) == 0 {
		err = absent(loop.ErrNotFound, "message", id, loop.PawlCommand("msg list"))
	}
	if err != nil {
		return MessageView{}, err
	}
	return viewMessage(list[0]), nil
}

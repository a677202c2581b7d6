package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Post has the messages of a world, as the store has those of a workspace. The zero Post has
// none.
type Post struct {
	Messages []Message       // between agents, the oldest first
	Told     []loop.Delivery // to people, the oldest first
}

// Message is one between agents.
type Message struct {
	loop.Delivery

	Taken bool // its recipient has it in its memory
}

// Send adds a message, once for each key and recipient. It reports whether it was new.
func (p *Post) Send(d loop.Delivery) bool {
	same := func(o loop.Delivery) bool { return o.To == d.To && o.Key == d.Key }
	if d.Person {
		if slices.ContainsFunc(p.Told, same) {
			return false
		}
		p.Told = append(p.Told, d)
		return true
	}
	if slices.ContainsFunc(p.Messages, func(m Message) bool { return same(m.Delivery) }) {
		return false
	}
	p.Messages = append(p.Messages, Message{Delivery: d})
	return true
}

// Take notes that its recipient has a message, and what it answered.
func (p *Post) Take(d loop.Delivery) {
	for i := range p.Messages {
		if m := &p.Messages[i]; m.To == d.To && m.Key == d.Key {
			m.Taken, m.Response = true, cmp.Or(d.Response, m.Response)
		}
	}
}

// Mailbox is the mail of a loop, by its name.
func (p *Post) Mailbox(name string) engine.Mail { return mailbox{p, name} }

type mailbox struct {
	*Post

	name string
}

// Waiting implements engine.Mail.
func (m mailbox) Waiting(context.Context) (list []loop.Delivery, err error) {
	for _, d := range m.Messages {
		if d.To == m.name && !d.Taken {
			list = append(list, d.Delivery)
		}
	}
	return list, nil
}

// Sent implements engine.Mail.
func (m mailbox) Sent(context.Context) (list []loop.Delivery, err error) {
	for _, d := range slices.Backward(m.Messages) {
		if d.From == m.name && d.Topic != "" {
			list = append(list, d.Delivery)
		}
	}
	for _, d := range slices.Backward(m.Told) {
		if d.From == m.name && d.Topic != "" {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b loop.Delivery) int { return b.Sent.Compare(a.Sent) })
	return list, nil
}

// About implements engine.Mail.
func (m mailbox) About(_ context.Context, topics ...string) (list []loop.Delivery, err error) {
	for _, d := range m.Messages {
		if d.Topic != "" && slices.Contains(topics, d.Topic) {
			list = append(list, d.Delivery)
		}
	}
	return list, nil
}

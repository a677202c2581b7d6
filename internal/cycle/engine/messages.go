package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// mostMessages bounds how many messages a run takes into the memory, and looks back at.
const mostMessages = 1000

// Mail reads what loops have sent each other.
type Mail interface {
	// Waiting lists the messages for the loop that no run of it has taken into its memory,
	// the oldest first, bounded.
	Waiting(ctx context.Context) ([]loop.Delivery, error)
	// Sent lists what the loop has sent about any topic, the newest first, bounded.
	Sent(ctx context.Context) ([]loop.Delivery, error)
	// About lists the messages about topics, whoever sent them, the oldest of each topic first.
	About(ctx context.Context, topics ...string) ([]loop.Delivery, error)
}

// mail is the mail of the loop of a run.
type mail struct{ *heldRun }

// Waiting implements Mail.
func (m mail) Waiting(ctx context.Context) (list []loop.Delivery, err error) {
	l := m.target.Loop
	err = m.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Undelivered(ctx, l.WorkspaceID, l.Name, mostMessages)
		return err
	})
	return list, err
}

// Sent implements Mail.
func (m mail) Sent(ctx context.Context) (list []loop.Delivery, err error) {
	l := m.target.Loop
	err = m.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.MessagesOnTopics(ctx, l.WorkspaceID, l.Name, mostMessages)
		return err
	})
	return list, err
}

// About implements Mail.
func (m mail) About(ctx context.Context, topics ...string) (list []loop.Delivery, err error) {
	err = m.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.MessagesAbout(ctx, m.target.Loop.WorkspaceID, topics)
		return err
	})
	return list, err
}

// deliver records a message. An urgent one fires the loop that it is for; one to a person
// becomes a notice.
func (h *heldRun) deliver(ctx context.Context, rt *store.RunTx, d loop.Delivery) error {
	l := h.target.Loop
	d.From = l.Name
	added, err := rt.Deliver(ctx, d)
	if err != nil || !added {
		return err
	}
	if d.Person {
		run := fmt.Sprintf("%s#%d", l.Name, h.run.N)
		_, err := rt.AddNotice(ctx, loop.Notice{
			ID: h.NewID("nt"), Key: "message/" + l.ID + "/" + d.Key, Kind: loop.NoticeEscalated.Kind(), Event: loop.NoticeEscalated,
			Title: run + " tells " + d.To + ": " + firstLine(d.Text), Body: d.Text, LoopID: l.ID, Loop: l.Name, RunID: h.run.ID, Run: run,
			Workspace: l.WorkspaceID, Root: h.target.Workspace.Root, Answer: loop.PawlCommand("show", run), At: h.Now(),
		})
		return err
	}
	if d.Priority != loop.Urgent {
		return nil
	}
	loops, err := rt.LoopsNamed(ctx, l.WorkspaceID, d.To)
	for _, to := range loops {
		if err == nil && to.Protocol == l.Protocol && to.ID != l.ID {
			_, err = rt.AddEvent(ctx, loop.FiringEvent{LoopID: to.ID, ID: loop.OnMessage + "/" + l.ID + "/" + d.Key, Source: loop.OnMessage, Payload: firstLine(d.Text)}, nil)
		}
	}
	return err
}

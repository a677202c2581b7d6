// Package notify tells people what happens to their loops: what needs them, and what
// is for information. A Watcher turns the feed of the store into notices, each written
// once in the transaction that notes how far the feed was read. A Deliverer sends them
// through the channels of the store and tries again what failed; Sender is one try.
//
// A notice is told at least once in each channel, and normally exactly once: a process
// that dies between sending and noting it makes another one send it again, with the
// same id.
//
// The package never takes part in the transactions of a run, never reads a repository
// and never changes a run. No secret is stored, logged or named in an error.
package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// newID returns the id of a notice, which receivers know it by.
func newID() string { return "nt_" + strings.ToLower(rand.Text()) }

// Raise tells people of a matter, unless it was told and lasts. It sets id and kind, and
// makes the texts fit to be shown. It reports whether the notice is new. Tx may be called
// again, as any function of store.Update.
func Raise(ctx context.Context, tx *store.Tx, n loop.Notice) (bool, error) {
	n.ID, n.Kind, n.At = newID(), n.Event.Kind(), tx.Now()
	n.Title, n.Body = excerpt(output.CleanLine(n.Title), mostTitle), excerpt(output.Clean(n.Body), mostBody)
	return tx.AddNotice(ctx, n)
}

// RaiseLate is Raise for a loop that does not come when it is due, and why one says so. Its
// end is told by Over with KeyOfLate.
func RaiseLate(ctx context.Context, tx *store.Tx, l loop.Loop, why string) (bool, error) {
	p, err := placeOf(ctx, &tx.Reader, l, "")
	if err != nil {
		return false, err
	}
	return Raise(ctx, tx, ofLate(p, why))
}

// Over tells people that the matter of a key is over, and how it ended; how may be empty.
// It reports false, and does nothing, if no such matter lasts.
func Over(ctx context.Context, tx *store.Tx, key, how string) (bool, error) {
	was, err := tx.LastingNotice(ctx, key)
	if errors.Is(err, loop.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	over := was
	over.ID, over.Kind, over.At, over.Over = newID(), loop.NoticeInforms, tx.Now(), true
	over.Title, over.Body = describeEnd(was), excerpt(output.Clean(cmp.Or(how, "It was: "+was.Title)), mostBody)
	if was.RunID != "" {
		over.Answer = loop.PawlCommand("show", was.Run).WithFlag("workspace", was.Root)
	}
	return tx.EndNotice(ctx, over)
}

// describeEnd says that the matter of a notice is over.
func describeEnd(was loop.Notice) string {
	switch was.Event {
	case loop.NoticeApproval:
		return was.Run + " needs no answer any more"
	case loop.NoticeBudget:
		return was.Loop + " has a budget again"
	case loop.NoticeFailing:
		return was.Loop + " works again"
	case loop.NoticeLate:
		return was.Loop + " is back"
	case loop.NoticeUnpushed:
		return was.Loop + " has pushed again"
	case loop.NoticeWaiting, loop.NoticeEscalated, loop.NoticeGaveUp, loop.NoticeLanded, loop.NoticeProposed, loop.NoticeUngated, loop.NoticeTest:
	}
	return "over: " + was.Title
}

const (
	mostTitle = 200  // characters
	mostBody  = 2000 // characters
)

// excerpt is the beginning of a text, at most so many characters.
func excerpt(text string, most int) string {
	text = strings.TrimSpace(text)
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}

// message is a notice as programs get it.
type message struct {
	Schema string `json:"schema"`
	loop.Notice
	Command string `json:"command,omitempty"` // Answer, for a shell
}

// encode is a notice as JSON.
func encode(n loop.Notice) ([]byte, error) {
	return json.Marshal(message{"pawl.notice/v1", n, describeAnswer(n)})
}

// describeAnswer is the command with which one answers, for a shell; empty if there is
// none.
func describeAnswer(n loop.Notice) string {
	if n.Answer.Verb == "" && n.Answer.Program == "" {
		return ""
	}
	return n.Answer.String()
}

// text is the body of a notice with the command that answers it.
func text(n loop.Notice) string {
	var parts []string
	for _, part := range []string{n.Body, describeAnswer(n)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Trial is a notice with which somebody tries a channel.
func Trial(channel string, now time.Time) loop.Notice {
	return loop.Notice{
		ID: newID(), Key: "test/" + channel, Event: loop.NoticeTest, Kind: loop.NoticeTest.Kind(), Title: "pawl reaches you",
		Body: "Notices of your loops arrive here, by the channel " + channel + ".", Answer: loop.PawlCommand("notify list"), At: now,
	}
}

package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of what agents say to each other.
const (
	MostDepth    = 6  // messages of a chain of answers
	MostAnHour   = 10 // messages between two agents on one topic
	chatterHours = time.Hour
)

// MaySay reports whether a message may be sent after those that were, and why not: a chain
// of answers is cut when it is too deep, two agents who say too much to each other on one
// topic have to wait, and an answer to an answer has to say something new. A person may say
// anything.
//
// History has all messages of the chain, and those of the two agents on the topic within the
// last hour; its order makes no difference.
func MaySay(history []Message, next Message, now time.Time) (loop.Reason, string) {
	if next.FromAgentID == Human || next.ToAgentID == Human {
		return "", ""
	}
	chain := chainOf(history, next.Answers)
	if len(chain) >= MostDepth {
		return loop.ReasonChainDepth, fmt.Sprintf("it would be message %d of a chain, and %d is the most", len(chain)+1, MostDepth)
	}
	lately := 0
	for _, m := range history {
		pair := m.FromAgentID == next.FromAgentID && m.ToAgentID == next.ToAgentID || m.FromAgentID == next.ToAgentID && m.ToAgentID == next.FromAgentID
		if pair && m.TaskID == next.TaskID && now.Sub(m.SentAt.Time()) < chatterHours {
			lately++
		}
	}
	if lately >= MostAnHour {
		return loop.ReasonChainRate, fmt.Sprintf("@%s and @%s have sent each other %d messages on this within an hour, and %d is the most", next.FromAgentID, next.ToAgentID, lately, MostAnHour)
	}
	if len(chain) > 1 {
		said := map[string]bool{}
		for _, m := range chain {
			for w := range wordsOf(m.Content) {
				said[w] = true
			}
		}
		if words := wordsOf(next.Content); common(words, said) == len(words) {
			return loop.ReasonNothingNew, "it answers an answer, and says nothing that was not said before"
		}
	}
	return "", ""
}

// chainOf are the messages that led to one, which is the first of them; none if it is not
// there.
func chainOf(history []Message, id string) (chain []Message) {
	for id != "" && len(chain) < MostDepth {
		i := slices.IndexFunc(history, func(m Message) bool { return m.ID == id })
		if i < 0 || slices.ContainsFunc(chain, func(m Message) bool { return m.ID == id }) {
			break
		}
		chain = append(chain, history[i])
		id = history[i].Answers
	}
	return chain
}

// MayComment is MaySay for a comment below a task, which also must not say what the last one
// of its author says. Thread has all comments below the task.
func MayComment(thread []Comment, next Comment, now time.Time) (loop.Reason, string) {
	var last Comment
	authors := map[string]string{} // of comments; a person is human, whatever they are called
	for _, c := range thread {
		authors[c.ID] = c.speaker()
		later := cmp.Or(cmp.Compare(c.CreatedAt, last.CreatedAt), cmp.Compare(c.ID, last.ID)) > 0
		if c.TaskID == next.TaskID && c.AuthorID == next.AuthorID && (last.ID == "" || later) {
			last = c
		}
	}
	if last.ID != "" && sameText(last.Content, next.Content) {
		return loop.ReasonSameComment, "its author's last comment on this task says the same"
	}
	asMessage := func(c Comment) Message {
		return Message{ID: c.ID, FromAgentID: c.speaker(), ToAgentID: authors[c.ParentID], TaskID: c.TaskID, Answers: c.ParentID, Content: c.Content, SentAt: c.CreatedAt}
	}
	var history []Message
	for _, c := range thread {
		history = append(history, asMessage(c))
	}
	if next.ParentID == "" {
		return "", "" // It answers nobody.
	}
	return MaySay(history, asMessage(next), now)
}

func (m Comment) speaker() string {
	if m.AuthorType == ByHuman {
		return Human
	}
	return m.AuthorID
}

func sameText(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

package board_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// chain is a question and answers to it, turn by turn, a minute apart and the last one a
// minute ago.
func chain(texts ...string) (all []board.Message) {
	for i, text := range texts {
		m := board.Message{ID: strconv.Itoa(i), FromAgentID: "ada", ToAgentID: "bob", MessageType: board.Question, Content: text, TaskID: "tk_1", SentAt: ago(time.Duration(len(texts)-i) * time.Minute)}
		if i%2 == 1 {
			m.FromAgentID, m.ToAgentID = m.ToAgentID, m.FromAgentID
		}
		if i > 0 {
			m.MessageType, m.Answers = board.Answer, strconv.Itoa(i-1)
		}
		all = append(all, m)
	}
	return all
}

func TestAnAnswerToAnAnswerSaysSomethingNewOrIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		said []string
		next string
		want loop.Reason
	}{
		"an answer to a question may say anything": {[]string{"Which port?"}, "Which port?", ""},
		"thanks":                             {[]string{"Which port?", "8080"}, "Thank you, great! Understood.", loop.ReasonNothingNew},
		"what was said":                      {[]string{"Which port?", "8080"}, "The port is 8080.", loop.ReasonNothingNew},
		"what was said before":               {[]string{"Which port does the server use?", "8080", "And for tests?"}, "The server's port", loop.ReasonNothingNew},
		"something new":                      {[]string{"Which port?", "8080"}, "It is taken on CI", ""},
		"a fifth answer":                     {[]string{"a1", "b1", "c1", "d1", "e1"}, "f1", ""},
		"too deep":                           {[]string{"a1", "b1", "c1", "d1", "e1", "f1"}, "g1", loop.ReasonChainDepth},
		"too deep, whatever it says further": {[]string{"a1", "b1", "c1", "d1", "e1", "f1", "g1"}, "h1", loop.ReasonChainDepth},
	} {
		all := chain(append(c.said, c.next)...)
		got, words := board.MaySay(all[:len(c.said)], all[len(c.said)], noon)
		if got != c.want || (got == "") != (words == "") {
			t.Errorf("%s: %q, %q, want %q", name, got, words, c.want)
		}
	}
}

func TestTwoAgentsSayTenThingsAnHourOnOneTopic(t *testing.T) {
	var said []board.Message
	for i := range 10 {
		m := board.Message{ID: strconv.Itoa(i), FromAgentID: "ada", ToAgentID: "bob", TaskID: "tk_1", Content: "w" + strconv.Itoa(i), SentAt: ago(59*time.Minute - time.Duration(i)*time.Minute)}
		if i%3 == 0 {
			m.FromAgentID, m.ToAgentID = "bob", "ada"
		}
		said = append(said, m)
	}
	next := board.Message{FromAgentID: "ada", ToAgentID: "bob", TaskID: "tk_1", Content: "new"}
	if got, words := board.MaySay(said, next, noon); got != loop.ReasonChainRate || words != "@ada and @bob have sent each other 10 messages on this within an hour, and 10 is the most" {
		t.Errorf("message 11: %q, %q", got, words)
	}
	if got, _ := board.MaySay(said, next, noon.Add(time.Minute)); got != "" {
		t.Errorf("when the first is an hour old: %q", got)
	}
	for name, change := range map[string]func(*board.Message){
		"another topic": func(m *board.Message) { m.TaskID = "tk_2" },
		"another agent": func(m *board.Message) { m.ToAgentID = "cyd" },
		"a person":      func(m *board.Message) { m.FromAgentID = board.Human },
	} {
		m := next
		change(&m)
		if got, _ := board.MaySay(said, m, noon); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAChatAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := chain("why?")
		now := noon
		for {
			last := said[len(said)-1]
			next := board.Message{
				ID: strconv.Itoa(len(said)), FromAgentID: last.ToAgentID, ToAgentID: last.FromAgentID, MessageType: board.Answer, TaskID: "tk_1", Answers: last.ID,
				Content: rapid.StringMatching("[a-f]{2}( [a-f]{2}){0,4}").Draw(t, "text"), SentAt: board.At(now),
			}
			if reason, _ := board.MaySay(said, next, now); reason != "" {
				return
			}
			if said = append(said, next); len(said) > board.MostDepth {
				t.Fatalf("a chain of %d messages", len(said))
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second)
		}
	})
}

func TestNoHourHasMoreThanTenMessagesOfTwoAgentsOnOneTopic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var said []board.Message
		now := noon
		for i := range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second)
			m := board.Message{ID: strconv.Itoa(i), FromAgentID: "ada", ToAgentID: "bob", TaskID: "tk_1", Content: strings.Repeat("x", 2+i), SentAt: board.At(now)}
			if reason, _ := board.MaySay(said, m, now); reason == "" {
				said = append(said, m)
			}
		}
		for i, m := range said {
			if i >= 10 && m.SentAt-said[i-10].SentAt < board.Millis(time.Hour.Milliseconds()) {
				t.Fatalf("messages %d to %d are within an hour", i-10, i)
			}
		}
	})
}

func TestACommentThatSaysWhatItsAuthorSaidLastIsNotMade(t *testing.T) {
	comment := func(id, by, text, parent string, at time.Duration) board.Comment {
		return board.Comment{ID: id, TaskID: "tk_1", AuthorID: by, Content: text, ParentID: parent, CreatedAt: ago(at)}
	}
	thread := []board.Comment{comment("c2", "ada", "Still  blocked\n", "", time.Hour), comment("c1", "ada", "Begun", "", 2*time.Hour), comment("c3", "bob", "Why?", "c2", time.Minute)}
	for name, c := range map[string]struct {
		next board.Comment
		want loop.Reason
	}{
		"the same again":           {comment("c4", "ada", "Still blocked", "", 0), loop.ReasonSameComment},
		"what it said before that": {comment("c4", "ada", "Begun", "", 0), ""},
		"another author":           {comment("c4", "bob", "Still blocked", "", 0), ""},
		"another task":             {board.Comment{ID: "c4", TaskID: "tk_2", AuthorID: "ada", Content: "Still blocked"}, ""},
		"an answer with nothing":   {comment("c4", "ada", "Blocked, and why", "c3", 0), loop.ReasonNothingNew},
		"an answer":                {comment("c4", "ada", "The token is missing", "c3", 0), ""},
		"a person":                 {board.Comment{ID: "c4", TaskID: "tk_1", AuthorType: board.ByHuman, AuthorID: "Ada", Content: "why?", ParentID: "c3"}, ""},
	} {
		if got, _ := board.MayComment(thread, c.next, noon); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

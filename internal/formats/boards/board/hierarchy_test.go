package board_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// crew is a chief, an analyst, two leads and three specialists, of whom senior is above
// junior.
func crew() []board.Member {
	return []board.Member{
		{Handle: "chief", Layer: board.Strategic, BoardIDs: []string{"bd_1"}},
		{Handle: "eye", Layer: board.Analyst, BoardIDs: []string{"bd_1"}},
		{Handle: "lead1", Layer: board.Lead, BoardIDs: []string{"bd_1"}, LeadBoardID: "bd_1"},
		{Handle: "lead2", Layer: board.Lead, BoardIDs: []string{"bd_2"}, LeadBoardID: "bd_2"},
		{Handle: "senior", Layer: board.Specialist, BoardIDs: []string{"bd_1"}},
		{Handle: "junior", Layer: board.Specialist, BoardIDs: []string{"bd_2"}, Lead: "senior"},
		{Handle: "free", Layer: board.Specialist, BoardIDs: []string{"bd_3"}},
	}
}

func TestOrdersGoDownAndReportsGoUp(t *testing.T) {
	team := board.Team(crew())
	for _, c := range []struct {
		kind     board.MessageType
		from, to string
		want     loop.Reason
	}{
		{board.Order, "chief", "junior", ""},
		{board.Order, "lead1", "junior", ""},
		{board.Order, "senior", "junior", ""},
		{board.Order, "junior", "senior", loop.ReasonOrderUp},
		{board.Order, "senior", "free", loop.ReasonOrderUp},
		{board.Order, "senior", "lead2", loop.ReasonOrderUp},
		{board.Order, "lead1", "lead2", loop.ReasonOrderUp},
		{board.Order, "lead1", board.Human, loop.ReasonOrderUp},
		{board.Order, board.Human, "chief", ""},
		{board.Report, "junior", "senior", ""},
		{board.Report, "junior", "chief", ""},
		{board.Report, "junior", board.Human, ""},
		{board.Report, "chief", "junior", loop.ReasonReportDown},
		{board.Report, "senior", "free", loop.ReasonReportDown},
		{board.Question, "chief", "junior", ""},
		{board.Question, "junior", "chief", ""},
		{board.Suggestion, "free", "senior", ""},
		{board.Answer, "junior", "chief", ""},
		{board.Question, "junior", "junior", loop.ReasonNotAgent},
		{board.Question, "junior", "gone", loop.ReasonNotAgent},
		{board.Question, "gone", "junior", loop.ReasonNotAgent},
	} {
		got, words := board.MaySend(team, board.Message{MessageType: c.kind, FromAgentID: c.from, ToAgentID: c.to})
		if got != c.want || (got == "") != (words == "") {
			t.Errorf("%s of %s to %s: %q, %q, want %q", c.kind, c.from, c.to, got, words, c.want)
		}
	}
}

func TestOfTwoOrdersThatOfTheHigherLayerCountsAndThenTheEarlier(t *testing.T) {
	team := board.Team(crew())
	order := func(id, from, to string, at time.Duration) board.Message {
		return board.Message{ID: id, MessageType: board.Order, FromAgentID: from, ToAgentID: to, SentAt: ago(at)}
	}
	for name, c := range map[string][2]board.Message{
		"of the higher layer": {order("a", "lead1", "junior", time.Hour), order("b", "chief", "free", 0)},
		"of a person":         {order("a", "chief", "free", time.Hour), order("b", board.Human, "free", 0)},
		"the earlier one":     {order("a", "lead1", "junior", 0), order("b", "lead2", "free", time.Hour)},
	} {
		first, second := board.SortMessages(team, c[:]), board.SortMessages(team, []board.Message{c[1], c[0]})
		if first[0].ID != "b" || second[0].ID != "b" {
			t.Errorf("%s: %s and %s come first, want b", name, first[0].ID, second[0].ID)
		}
	}
}

func TestAMatterGoesUpToThePersonInTheEnd(t *testing.T) {
	team := board.Team(crew())
	for _, c := range []struct {
		who    string
		matter board.Matter
		want   []string
	}{
		{"junior", board.MatterBlocked, []string{"senior", "lead1", "chief", board.Human}},
		{"free", board.MatterNoDocs, []string{"chief", board.Human}},
		{"senior", board.MatterNoDocs, []string{"lead1", "chief", board.Human}},
		{"senior", board.MatterStrategy, []string{"chief", board.Human}},
		{"chief", board.MatterStrategy, []string{board.Human}},
		{"chief", board.MatterBlocked, []string{board.Human}},
		{"junior", board.MatterCritical, []string{board.Human}},
		{"junior", board.MatterTaste, []string{board.Human}},
	} {
		if got := board.Escalate(team, c.who, c.matter); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.who, c.matter, got, c.want)
		}
	}
	if found := team.Check(); len(found) > 0 {
		t.Errorf("the team is wrong: %v", found)
	}
}

func TestAnInboxIsAnsweredFromTheMostPressing(t *testing.T) {
	team := board.Team(crew())
	m := func(id string, kind board.MessageType, from string, at time.Duration) board.Message {
		return board.Message{ID: id, MessageType: kind, FromAgentID: from, ToAgentID: "junior", SentAt: ago(at)}
	}
	inbox := []board.Message{
		m("7", board.Answer, "chief", 9*time.Hour), m("6", board.Suggestion, board.Human, 0), m("5", board.Report, "free", 0), m("4", board.Question, "free", 0), m("3", board.Question, "free", time.Hour),
		m("2", board.Order, "lead1", 9*time.Hour), m("1", board.Order, "chief", 0),
	}
	for i, m := range board.SortMessages(team, inbox) {
		if m.ID != strconv.Itoa(i+1) {
			t.Errorf("place %d has %s", i+1, m.ID)
		}
	}
}

func TestNobodyMayOrderWhoMayOrderThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _, _ := drawScene(t)
		team := board.Team(s.Members)
		for _, a := range s.Members {
			for _, b := range s.Members {
				circle := slices.Contains(team.Chain(a.Handle), b.Handle) && slices.Contains(team.Chain(b.Handle), a.Handle)
				if board.MayOrder(team, a.Handle, b.Handle) && board.MayOrder(team, b.Handle, a.Handle) && !circle {
					t.Fatalf("@%s and @%s may order each other", a.Handle, b.Handle)
				}
			}
			if chain := board.Escalate(team, a.Handle, board.MatterBlocked); chain[len(chain)-1] != board.Human || len(chain) > len(s.Members) {
				t.Fatalf("the chain of @%s is %q", a.Handle, chain)
			}
		}
	})
}

package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
)

// Team returns who reports to whom: to the lead whom an agent names, else to the lead of its
// first board, else to the chief, who is the first of the highest layer that names no lead.
func Team(members []Member) people.Team {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b Member) int { return cmp.Compare(a.Handle, b.Handle) })
	chief, height := "", 0
	for _, m := range sorted {
		if m.Lead == "" && m.Layer.height() > height {
			chief, height = m.Handle, m.Layer.height()
		}
	}
	var list []people.Person
	for _, m := range sorted {
		p := people.Person{ID: m.Handle, Name: m.Name, Role: m.Role, Tier: 2, Layer: string(m.Layer), Lead: m.LeadBoardID != "", Department: m.LeadBoardID, ReportsTo: m.Lead}
		if p.Department == "" && len(m.BoardIDs) > 0 {
			p.Department = m.BoardIDs[0]
		}
		if m.Handle == chief {
			p.Tier = 1
		}
		for _, c := range m.Capabilities {
			p.Capabilities = append(p.Capabilities, strings.Join(c, " "))
		}
		list = append(list, p)
	}
	return people.New(list, chief, Human, nil)
}

// heightOf is greater for whose word counts more: a person's most.
func heightOf(team people.Team, who string) int {
	if who == Human {
		return len(Layers()) + 1
	}
	p, _ := team.Find(who)
	return Layer(p.Layer).height()
}

// MayOrder reports whether one may give another orders: a person may, and so may whoever is
// of a higher layer, or is of the same layer and above in the line of reports.
func MayOrder(team people.Team, from, to string) bool {
	if from == Human {
		return to != Human
	}
	a, b := heightOf(team, from), heightOf(team, to)
	return to != Human && (a > b || a == b && a > 0 && slices.Contains(team.Chain(to), from))
}

// MaySend reports whether a message may be sent, and why not: orders go down and reports go
// up; questions and suggestions go anywhere, and so do answers.
func MaySend(team people.Team, m Message) (loop.Reason, string) {
	for _, who := range []string{m.FromAgentID, m.ToAgentID} {
		if _, known := team.Find(who); who != Human && !known {
			return loop.ReasonNotAgent, "@" + who + " is not an agent of these boards"
		}
	}
	switch {
	case m.FromAgentID == m.ToAgentID:
		return loop.ReasonNotAgent, "it is to the one who sends it"
	case m.MessageType == Order && !MayOrder(team, m.FromAgentID, m.ToAgentID):
		return loop.ReasonOrderUp, fmt.Sprintf("an order goes down only, and %s is not below %s", at(m.ToAgentID), at(m.FromAgentID))
	case m.MessageType == Report && m.ToAgentID != Human && !MayOrder(team, m.ToAgentID, m.FromAgentID):
		return loop.ReasonReportDown, fmt.Sprintf("a report goes up only, and %s is not above %s", at(m.ToAgentID), at(m.FromAgentID))
	}
	return "", ""
}

func at(who string) string {
	if who == Human {
		return "a person"
	}
	return "@" + who
}

func compareOrders(team people.Team, a, b Message) int {
	return cmp.Or(cmp.Compare(heightOf(team, b.FromAgentID), heightOf(team, a.FromAgentID)), cmp.Compare(a.SentAt, b.SentAt), cmp.Compare(a.ID, b.ID))
}

// SortMessages returns the messages of an inbox in the order in which they are answered:
// orders, questions, reports, suggestions, and of these those of the higher layer and the
// earlier ones first.
func SortMessages(team people.Team, inbox []Message) []Message {
	rank := func(m Message) int {
		if i := slices.Index(MessageTypes(), m.MessageType); i >= 0 {
			return i
		}
		return len(MessageTypes()) // An answer asks for nothing.
	}
	return slices.SortedFunc(slices.Values(inbox), func(a, b Message) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareOrders(team, a, b))
	})
}

// Matter is what an agent has to hand over.
type Matter string

// The matters.
const (
	MatterBlocked  Matter = "blocked"       // it cannot go on
	MatterCritical Matter = "critical"      // of security, or all work stands still
	MatterNoDocs   Matter = "documentation" // it lacks documentation
	MatterStrategy Matter = "strategy"      // it is ambiguous what is wanted
	MatterTaste    Matter = "taste"         // it is a matter of vision or taste
)

// Escalate returns who is told of a matter, the first one first: handles, and human last.
// Whoever comes later is told if those before do not solve it.
func Escalate(team people.Team, handle string, matter Matter) []string {
	chain := team.Chain(handle)
	switch matter {
	case MatterBlocked, MatterNoDocs:
	case MatterStrategy:
		if chain = nil; team.Chief != "" && team.Chief != handle {
			chain = []string{team.Chief}
		}
	case MatterCritical, MatterTaste:
		chain = nil
	}
	return append(slices.Clone(chain), Human)
}

// Package people knows who works in an organisation: who reports to whom, who is
// asked for what, and when they work. Task files, rosters and boards read this one table.
//
// It performs no I/O and reads no clock, and it changes nothing that it was given.
package people

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Person is one agent of an organisation.
type Person struct {
	ID           string
	Name         string
	Role         string
	Tier         int    // 1: the chief; 2: everybody else
	Lead         bool   // of the department
	Layer        string // of a board; empty in an organisation of task files
	Department   string
	ReportsTo    string // id, as written; empty: what Superior says follows from the department
	Capabilities []string
	Hours        Hours // the zero Hours: at any time
}

// Hours are the hours of a day at which somebody works, from From to before Until. The
// zero Hours are all of the day. If From is later than Until, they go on past midnight.
type Hours struct {
	From, Until int
	Zone        string // by its name in the time zone database; empty: UTC
}

// Contain reports whether the hours contain a time. The error means that the zone is
// unknown.
func (h Hours) Contain(at time.Time) (bool, error) {
	zone, err := schedule.Zone(h.Zone)
	hour := 0
	if err == nil {
		hour = at.In(zone).Hour()
	}
	return (&loop.TaskLoop{FromHour: h.From, UntilHour: h.Until}).WorksAt(hour), err
}

// Team is an organisation. Make it with New; the zero Team has nobody.
type Team struct {
	People  []Person          // in the order in which they were given
	Chief   string            // id; empty if missing
	Owner   string            // the person who answers for all; empty: it was not said who
	Routing map[string]string // tag to id

	index map[string]int    // of People by id; the first with an id
	leads map[string]string // id of the lead by department
}

// New makes a team. The chief may be somebody who is not among the people; Check says so.
func New(list []Person, chief, owner string, routing map[string]string) Team {
	t := Team{People: list, Chief: chief, Owner: owner, Routing: routing, index: map[string]int{}, leads: map[string]string{}}
	for i, p := range list {
		if _, there := t.index[p.ID]; there {
			continue
		}
		t.index[p.ID] = i
		if _, there := t.leads[p.Department]; p.Lead && !there {
			t.leads[p.Department] = p.ID
		}
	}
	return t
}

// Find returns the person with an id.
func (t Team) Find(id string) (Person, bool) {
	i, ok := t.index[id]
	if !ok {
		return Person{}, false
	}
	return t.People[i], true
}

// IsOwner reports whether a name means the owner and not an agent.
func (t Team) IsOwner(name string) bool {
	_, agent := t.index[name]
	return !agent && (name == "owner" || name == "human" || name != "" && name == t.Owner)
}

// Superior returns whom a person reports to: who is named, else the lead of the department,
// else the chief. It is empty for those who report to the owner. A name that nobody has
// counts as if there was none.
func (t Team) Superior(id string) string {
	p, ok := t.Find(id)
	if !ok {
		return ""
	}
	if _, known := t.index[p.ReportsTo]; known {
		return p.ReportsTo
	}
	if t.IsOwner(p.ReportsTo) || id == t.Chief {
		return ""
	}
	if lead := t.leads[p.Department]; p.Department != "" && lead != "" && lead != id {
		return lead
	}
	if _, known := t.index[t.Chief]; known {
		return t.Chief
	}
	return ""
}

// Chain returns the superiors of a person, the nearest first. The owner, who is above
// them all, is not among them. In a cycle it ends before somebody comes twice.
func (t Team) Chain(id string) []string {
	var chain []string
	for at := t.Superior(id); at != "" && at != id && !slices.Contains(chain, at); at = t.Superior(at) {
		chain = append(chain, at)
	}
	return chain
}

// Reports returns the ids of those who report to a person, sorted.
func (t Team) Reports(id string) []string {
	var ids []string
	for _, other := range slices.Sorted(maps.Keys(t.index)) {
		if t.Superior(other) == id {
			ids = append(ids, other)
		}
	}
	return ids
}

// Route returns who works on something with these tags: the agent of the first tag that
// has one, else the chief. It is empty if there is no chief either.
func (t Team) Route(tags ...string) string {
	for _, tag := range tags {
		if _, known := t.index[t.Routing[tag]]; known {
			return t.Routing[tag]
		}
	}
	if _, known := t.index[t.Chief]; known {
		return t.Chief
	}
	return ""
}

// ProblemKind is what is wrong with an organisation.
type ProblemKind string

// The kinds of problems.
const (
	ProblemCycle     ProblemKind = "cycle"      // people report to each other in a circle
	ProblemUnknown   ProblemKind = "unknown_id" // nobody has an id that is named
	ProblemTwoChiefs ProblemKind = "two_chiefs" // more than one agent is of tier 1
	ProblemSameID    ProblemKind = "same_id"    // two people have one id
	ProblemHours     ProblemKind = "hours"      // the hours are no hours of a day, or their zone is unknown
)

// Problem is one thing that is wrong with an organisation.
type Problem struct {
	Kind    ProblemKind
	Person  string // whose entry is wrong; empty: the organisation's
	Named   string // the id that is wrong, or the tag of a route
	Message string // one line: what is wrong, and the fix
}

// Check returns what is wrong, in the order of the people; of each cycle it returns one
// problem.
func (t Team) Check() []Problem {
	found := t.checkPeople()
	if _, known := t.index[t.Chief]; t.Chief != "" && !known {
		found = append(found, Problem{Kind: ProblemUnknown, Named: t.Chief, Message: fmt.Sprintf("the chief %s is not an agent; make agents/%s, or name another one", t.Chief, t.Chief)})
	}
	for _, tag := range slices.Sorted(maps.Keys(t.Routing)) {
		if to := t.Routing[tag]; t.index == nil || !t.knows(to) {
			found = append(found, Problem{Kind: ProblemUnknown, Named: tag, Message: fmt.Sprintf("the tag %s goes to %s, which is not an agent; the chief gets what has it", tag, cmp.Or(to, "nobody"))})
		}
	}
	return append(found, t.findCycles()...)
}

func (t Team) knows(id string) bool { _, known := t.index[id]; return known }

func (t Team) checkPeople() (found []Problem) {
	chiefs := []string{}
	for i, p := range t.People {
		if t.index[p.ID] != i {
			found = append(found, Problem{Kind: ProblemSameID, Person: p.ID, Named: p.ID, Message: "two agents have the id " + p.ID + "; rename one of them"})
			continue
		}
		if p.Tier == 1 || p.ID == t.Chief {
			chiefs = append(chiefs, p.ID)
		}
		if p.ReportsTo != "" && !t.knows(p.ReportsTo) && !t.IsOwner(p.ReportsTo) {
			found = append(found, Problem{
				Kind: ProblemUnknown, Person: p.ID, Named: p.ReportsTo,
				Message: fmt.Sprintf("%s reports to %s, which is not an agent; name one, or owner", p.ID, p.ReportsTo),
			})
		}
		if _, err := p.Hours.Contain(time.Unix(0, 0)); err != nil || min(p.Hours.From, p.Hours.Until) < 0 || max(p.Hours.From, p.Hours.Until) > 24 {
			found = append(found, Problem{Kind: ProblemHours, Person: p.ID, Message: fmt.Sprintf("the hours of %s are not hours of a day from 0 to 24 in a known time zone", p.ID)})
		}
	}
	if len(chiefs) > 1 {
		found = append(found, Problem{Kind: ProblemTwoChiefs, Person: chiefs[1], Named: chiefs[1], Message: "more than one agent is of tier 1, which only the chief is: " + strings.Join(chiefs, ", ")})
	}
	return found
}

// findCycles returns one problem for each cycle, with the way around it.
func (t Team) findCycles() (found []Problem) {
	done := map[string]bool{}
	for _, start := range slices.Sorted(maps.Keys(t.index)) {
		var way []string
		at := start
		for at != "" && !done[at] && !slices.Contains(way, at) {
			way = append(way, at)
			at = t.Superior(at)
		}
		if i := slices.Index(way, at); i >= 0 {
			cycle := append(slices.Clone(way[i:]), at)
			found = append(found, Problem{Kind: ProblemCycle, Person: at, Named: t.Superior(at), Message: "reports_to goes around in a cycle: " + strings.Join(cycle, " → ")})
		}
		for _, id := range way {
			done[id] = true
		}
	}
	return found
}

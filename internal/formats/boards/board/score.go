package board

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Weights of the terms of a score.
const (
	UrgencyWeight   = 1.0
	ExpertiseWeight = 0.5
	PendingWeight   = 0.05
)

// Weights of the parts of expertise. They add up to 1.
const (
	skillsPart  = 0.5
	rolePart    = 0.3
	historyPart = 0.2
)

// Terms are what a board is worth to an agent now, and why.
type Terms struct {
	BoardID string `json:"boardId"`
	Slug    string `json:"slug"`

	Urgency     float64 `json:"urgency"`               // 0 to 1: the highest of its pending tasks
	UrgencyTask string  `json:"urgencyTask,omitempty"` // id of the task that it is from
	Overdue     bool    `json:"overdue,omitempty"`     // that task is

	Expertise     float64 `json:"expertise"`               // 0 to 1: the highest of its pending tasks
	ExpertiseTask string  `json:"expertiseTask,omitempty"` // id of the task that it is from
	Skills        float64 `json:"skills"`                  // parts of it, each 0 to 1: of the skills that the task needs,
	Role          float64 `json:"role"`                    // of the words of the role,
	History       float64 `json:"history"`                 // and of the done task that is most alike

	Pending int     `json:"pending"` // tasks that wait, and that the agent may take
	Oldest  Millis  `json:"oldest"`  // when the oldest of them was made
	Total   float64 `json:"total"`
}

// String is the sum with all of its terms.
func (t Terms) String() string {
	if t.Pending == 0 {
		return fmt.Sprintf("%s %.3f: no task waits", t.Slug, t.Total)
	}
	urgent, expert := t.UrgencyTask, "no task is in its line"
	if t.Overdue {
		urgent += ", overdue"
	}
	if t.Expertise > 0 {
		expert = fmt.Sprintf("%s: skills %.2f, role %.2f, history %.2f", t.ExpertiseTask, t.Skills, t.Role, t.History)
	}
	return fmt.Sprintf("%s %.3f = %g × urgency %.2f (%s) + %g × expertise %.3f (%s) + %g × %d pending",
		t.Slug, t.Total, UrgencyWeight, t.Urgency, urgent, ExpertiseWeight, t.Expertise, expert, PendingWeight, t.Pending)
}

// urgencyOf is 1 for a task that is overdue, and otherwise what its priority says.
func urgencyOf(t Task, now time.Time) (urgency float64, overdue bool) {
	if t.DueDate != 0 && !now.Before(t.DueDate.Time()) {
		return 1, true
	}
	return float64(1+max(0, slices.Index(Priorities(), t.Priority))) / 4, false
}

// Score says what a board is worth to an agent: of the tasks that wait for nobody else.
// Done are tasks that the agent has completed, of any board; the order of both lists makes
// no difference.
func Score(m Member, b Board, tasks, done []Task, now time.Time) Terms {
	terms := Terms{BoardID: b.ID, Slug: b.Slug}
	past := pastOf(m, done)
	for _, t := range tasks {
		if t.BoardID != b.ID || !t.Status.Waits() || t.AssigneeID != "" && t.AssigneeID != m.Handle {
			continue
		}
		terms.Pending++
		if terms.Oldest == 0 || t.CreatedAt < terms.Oldest {
			terms.Oldest = t.CreatedAt
		}
		if u, overdue := urgencyOf(t, now); u > terms.Urgency || u == terms.Urgency && before(t.ID, terms.UrgencyTask) {
			terms.Urgency, terms.UrgencyTask, terms.Overdue = u, t.ID, overdue
		}
		if e := past.expertise(t); e.Expertise > terms.Expertise || e.Expertise == terms.Expertise && before(t.ID, terms.ExpertiseTask) {
			terms.Expertise, terms.ExpertiseTask = e.Expertise, t.ID
			terms.Skills, terms.Role, terms.History = e.Skills, e.Role, e.History
		}
	}
	terms.Total = round(UrgencyWeight*terms.Urgency + ExpertiseWeight*terms.Expertise + PendingWeight*float64(terms.Pending))
	return terms
}

func before(a, b string) bool { return b == "" || a < b }

// past is what an agent is good at.
type past struct {
	member Member
	skills []map[string]bool // words of each skill
	role   map[string]bool
	done   []map[string]bool // words of each done task
}

func pastOf(m Member, done []Task) past {
	p := past{member: m, role: wordsOf(m.Role)}
	for _, s := range m.Skills {
		if words := wordsOf(s); len(words) > 0 {
			p.skills = append(p.skills, words)
		}
	}
	for _, t := range done {
		p.done = append(p.done, wordsOf(t.text()...))
	}
	return p
}

// text is everything that says what a task is about.
func (t Task) text() []string {
	return append(append([]string{t.Title, t.Description, t.AcceptanceCriteria}, t.Tags...), t.RequiredSkills...)
}

// expertise fills in the terms of one task.
func (p past) expertise(t Task) (e Terms) {
	words := wordsOf(t.text()...)
	if len(t.RequiredSkills) > 0 {
		e.Skills = 1 - float64(len(missingSkills(t, p.member)))/float64(len(t.RequiredSkills))
	} else if slices.ContainsFunc(p.skills, func(s map[string]bool) bool { return share(s, words) == 1 }) {
		e.Skills = 1 // A task that needs no skill may still be about one.
	}
	e.Role = share(p.role, words)
	for _, d := range p.done {
		e.History = max(e.History, alike(d, words))
	}
	e.Skills, e.Role, e.History = round(e.Skills), round(e.Role), round(e.History)
	e.Expertise = round(skillsPart*e.Skills + rolePart*e.Role + historyPart*e.History)
	return e
}

// round keeps four digits, so that sums of the same terms are the same number.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// Route scores the boards of an agent, the best first. Winner is the id of the first if a
// task waits there, and empty if none does anywhere. Of equal boards the one whose oldest
// task has waited longest goes first, and then the first by its slug.
func Route(m Member, boards []Board, tasks, done []Task, now time.Time) (winner string, all []Terms) {
	for _, b := range boards {
		if m.On(b.ID) {
			all = append(all, Score(m, b, tasks, done, now))
		}
	}
	slices.SortFunc(all, func(a, b Terms) int {
		return cmp.Or(
			-compareBool(a.Pending > 0, b.Pending > 0), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Oldest, b.Oldest), cmp.Compare(a.Slug, b.Slug), cmp.Compare(a.BoardID, b.BoardID),
		)
	})
	if len(all) > 0 && all[0].Pending > 0 {
		winner = all[0].BoardID
	}
	return winner, all
}

// compareBool is positive if only a is true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Open returns tasks as routing sees them for an agent: one in progress whose claim is over
// waits for anybody, and the agent's own waits for it.
func Open(tasks []Task, handle string, lapsed map[string]bool) []Task {
	open := slices.Clone(tasks)
	for i, t := range open {
		switch {
		case t.Status != InProgress:
		case lapsed[t.ID]:
			open[i].Status, open[i].AssigneeID = Todo, ""
		case t.AssigneeID == handle:
			open[i].Status = Todo
		}
	}
	return open
}

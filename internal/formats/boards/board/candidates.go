package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
)

// Scene is what an agent's choice of a task of one board depends on. The order of its lists
// makes no difference.
type Scene struct {
	Member    Member
	Mind      Mind
	Board     Board
	Tasks     []Task // of the board, those that are done included
	Members   []Member
	Minds     map[string]Mind // by handle
	Resources []Resource      // of the board
	Messages  []Message       // about tasks of the board: orders and questions, and the answers to these
	Lapsed    map[string]bool // ids of tasks in progress whose claim is over, because its run is
	Now       time.Time
}

// Candidate is a task as an agent sees it.
type Candidate struct {
	Task   Task        `json:"task"`
	Drop   loop.Reason `json:"drop,omitempty"` // why the agent may not take it; empty: it may
	Detail string      `json:"detail"`         // that in words, or what gives it its place
	Gaps   []Gap       `json:"gaps,omitempty"` // if it is not ready

	rank    int // the lowest goes first
	order   Message
	urgency float64
}

// Ranks of candidates.
const (
	rankOwn = iota
	rankOrdered
	rankAssigned
	rankFree
)

// Candidates returns all tasks of the board, in the order in which the agent would take
// them: the one that it has begun, those that it was ordered to do, those that are assigned
// to it, and all others; of these the more urgent, the more important, those to do before
// the backlog, and then by their order and age. Each that it may not take says why.
func (s Scene) Candidates() []Candidate {
	team := Team(s.Members)
	var all []Candidate
	for _, t := range s.Tasks {
		if t.BoardID == s.Board.ID {
			all = append(all, s.candidate(team, t))
		}
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		c := cmp.Compare(a.rank, b.rank)
		if a.rank == rankOrdered && b.rank == rankOrdered {
			c = compareOrders(team, a.order, b.order)
		}
		return cmp.Or(
			c, cmp.Compare(b.urgency, a.urgency), comparePriority(b.Task, a.Task), cmp.Compare(slices.Index(Statuses(), b.Task.Status), slices.Index(Statuses(), a.Task.Status)),
			cmp.Compare(a.Task.Order, b.Task.Order), cmp.Compare(a.Task.CreatedAt, b.Task.CreatedAt), cmp.Compare(a.Task.ID, b.Task.ID),
		)
	})
	return all
}

func comparePriority(a, b Task) int {
	return cmp.Compare(slices.Index(Priorities(), a.Priority), slices.Index(Priorities(), b.Priority))
}

func (s Scene) candidate(team people.Team, t Task) Candidate {
	c := Candidate{Task: t, rank: rankFree}
	c.urgency, _ = urgencyOf(t, s.Now)
	order, ordered := s.order(team, t)
	mine := t.AssigneeID == s.Member.Handle
	switch {
	case t.Status == InProgress && mine:
		c.rank, c.Detail = rankOwn, "it has begun it"
	case ordered && order.ToAgentID == s.Member.Handle:
		c.rank, c.order, c.Detail = rankOrdered, order, at(order.FromAgentID)+" has ordered it"
	case mine:
		c.rank, c.Detail = rankAssigned, "it is assigned to it"
	default:
		c.Detail = fmt.Sprintf("urgency %.2f, priority %s", c.urgency, t.Priority)
	}
	if c.Drop, c.Gaps = "", nil; c.rank != rankOwn {
		c.Gaps = Gaps(t, s.Member, s.Board, s.Resources)
	}
	if drop, detail := s.exclusion(t, order, ordered, c.Gaps); drop != "" {
		c.Drop, c.Detail = drop, detail
	}
	return c
}

// exclusion returns why the agent may not take a task; empty if it may.
func (s Scene) exclusion(t Task, order Message, ordered bool, gaps []Gap) (loop.Reason, string) {
	lapsed := t.Status == InProgress && s.Lapsed[t.ID]
	mine := t.AssigneeID == s.Member.Handle
	cools, why := s.Mind.Cools(s.Now)
	switch {
	case !s.Member.On(s.Board.ID):
		return loop.ReasonNotOnBoard, "@" + s.Member.Handle + " does not work on this board"
	case t.Status == Done:
		return loop.ReasonStepDone, ""
	case !t.Status.Waits() && t.Status != InProgress:
		return loop.ReasonNotWaiting, "it is in " + string(t.Status)
	case t.Status == InProgress && t.AssigneeID != "" && !mine && !lapsed:
		return loop.ReasonStepClaimed, "@" + t.AssigneeID + " works on it"
	case t.Status.Waits() && t.AssigneeID != "" && !mine:
		return loop.ReasonAssigned, "it is assigned to @" + t.AssigneeID
	case mine && t.ExecutionStatus == ExecutionApproval:
		return loop.ReasonApproval, "a command of it waits for a person"
	case s.Member.Dormant:
		return loop.ReasonDormant, "@" + s.Member.Handle + " is dormant"
	case cools:
		return loop.ReasonCoolOff, why
	case ordered && order.ToAgentID != s.Member.Handle:
		return loop.ReasonOrdered, fmt.Sprintf("%s has ordered @%s to do it", at(order.FromAgentID), order.ToAgentID)
	}
	if q, open := s.openQuestion(t.ID); open {
		return loop.ReasonQuestion, fmt.Sprintf("a question of %s to %s has no answer yet", at(q.FromAgentID), at(q.ToAgentID))
	}
	if parent, open := s.openParent(t); open {
		return loop.ReasonParent, parent
	}
	if t.Status == InProgress && mine && !lapsed {
		return "", "" // It has passed what follows.
	}
	if has := s.inHand(t.ID); has != "" {
		return loop.ReasonAgentTask, "@" + s.Member.Handle + " works on " + has + ", and one works on one task at a time"
	}
	if most, limited := s.Board.WIP[InProgress]; limited && t.Status != InProgress {
		if n := s.inColumn(InProgress); n >= most {
			return loop.ReasonColumnFull, fmt.Sprintf("%d tasks are in progress, and %d may be", n, most)
		}
	}
	if len(gaps) > 0 {
		return loop.ReasonNotReady, GapWords(gaps)
	}
	return "", ""
}

// order returns the order that decides who does a task. Orders that nobody may give, and
// those to agents that cannot follow them, do not count.
func (s Scene) order(team people.Team, t Task) (first Message, ok bool) {
	for _, m := range s.Messages {
		if m.MessageType != Order || m.TaskID != t.ID || !MayOrder(team, m.FromAgentID, m.ToAgentID) || !s.follows(m.ToAgentID) {
			continue
		}
		if !ok || compareOrders(team, m, first) < 0 {
			first, ok = m, true
		}
	}
	return first, ok
}

// follows reports whether an agent can follow an order on this board. One that has never
// had a heartbeat has yet to begin.
func (s Scene) follows(handle string) bool {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Handle == handle })
	if i < 0 || s.Members[i].Dormant || !s.Members[i].On(s.Board.ID) {
		return false
	}
	mind := s.Minds[handle]
	return handle == s.Member.Handle || mind.LastHeartbeat == 0 || s.Members[i].Present(mind, s.Now) != Offline
}

// openQuestion returns the first question about a task that nobody has answered.
func (s Scene) openQuestion(taskID string) (first Message, open bool) {
	for _, m := range s.Messages {
		if m.MessageType != Question || m.TaskID != taskID || m.Response != "" {
			continue
		}
		answered := slices.ContainsFunc(s.Messages, func(a Message) bool { return a.MessageType == Answer && a.Answers == m.ID })
		if earlier := cmp.Or(cmp.Compare(m.SentAt, first.SentAt), cmp.Compare(m.ID, first.ID)) < 0; !answered && (!open || earlier) {
			first, open = m, true
		}
	}
	return first, open
}

// openParent says which task has to be done before; it reports false if none has.
func (s Scene) openParent(t Task) (string, bool) {
	i := slices.IndexFunc(s.Tasks, func(p Task) bool { return p.ID == t.ParentTaskID })
	if t.ParentTaskID == "" || i < 0 || s.Tasks[i].Status == Done {
		return "", false
	}
	return fmt.Sprintf("%s has to be done before, and is in %s", t.ParentTaskID, s.Tasks[i].Status), true
}

// inHand returns another task that the agent works on; empty if it has no other. One that
// waits for a person leaves the agent free.
func (s Scene) inHand(taskID string) string {
	has := ""
	for _, t := range s.Tasks {
		busy := t.Status == InProgress && t.AssigneeID == s.Member.Handle && t.ExecutionStatus != ExecutionApproval && !s.Lapsed[t.ID]
		if busy && t.ID != taskID && (has == "" || t.ID < has) {
			has = t.ID
		}
	}
	if now := s.Mind.CurrentTaskID; has == "" && now != taskID {
		if i := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.ID == now }); i < 0 {
			has = now // Of another board.
		}
	}
	return has
}

func (s Scene) inColumn(column Status) int {
	n := 0
	for _, t := range s.Tasks {
		if t.BoardID == s.Board.ID && t.Status == column && !s.Lapsed[t.ID] {
			n++
		}
	}
	return n
}

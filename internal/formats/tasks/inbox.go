package tasks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// triageFrom is the number of pending entries from which on the superior is asked first.
const triageFrom = 10

// topicTriage is that of the question what of a full inbox counts.
const topicTriage = "triage"

// takeIn puts messages into the inbox and makes steps of its pending entries, the critical
// ones first. Of ten or more, only critical ones become steps before the superior has
// answered, or as many cycles have passed as a blocked step waits.
func (s *session) takeIn(ctx context.Context) error {
	waiting, err := s.v.Mail.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		s.outgoing = append(s.outgoing, loop.Change{Kind: loop.ChangeReceive, Delivery: &loop.Delivery{To: d.To, Key: d.Key}})
		if d.Kind == kindAlert && s.wasAlerted(d) {
			continue
		}
		s.inbox.AddPending(taskfile.NewEntry{At: d.Sent, From: d.From, Priority: d.Priority, Kind: d.Kind, Text: d.Text, Tags: d.Tags, Delivery: d.Key})
	}
	pending := s.inbox.Pending()
	pending = slices.DeleteFunc(pending, func(e taskfile.Entry) bool { // An alert asks for nothing, and is not worth a turn.
		return e.Kind == kindAlert && s.inbox.Process(e.ID, s.v.Now, "noted")
	})
	slices.SortStableFunc(pending, func(a, b taskfile.Entry) int { return rank(a.Priority) - rank(b.Priority) })
	held := s.holdForTriage(pending)
	for _, e := range pending {
		if !held || e.Priority == taskfile.PriorityCritical {
			s.makeStep(e)
		}
	}
	if req := strings.TrimSpace(s.v.Run.Request); req != "" {
		from := fromAgent
		if s.v.Run.Requester() == loop.RoleHuman {
			from = fromUser
		}
		s.addStep(taskfile.NewStep{Title: req, Priority: taskfile.PriorityCritical, From: from})
	}
	return nil
}

// wasAlerted reports whether the inbox has an alert of the same sender and day that says the
// same: it would grow with each.
func (s *session) wasAlerted(d loop.Delivery) bool {
	first := readiness.FirstLine(d.Text)
	return slices.ContainsFunc(slices.Concat(s.inbox.Pending(), s.inbox.Processed()), func(e taskfile.Entry) bool {
		return e.Kind == kindAlert && e.From == d.From && readiness.FirstLine(e.Text) == first && e.At.UTC().Format(time.DateOnly) == d.Sent.UTC().Format(time.DateOnly)
	})
}

// kindAlert is that of messages that only tell something.
const kindAlert = "alert"

// makeStep makes a step of an entry, or sends it on: the chief's entries go to whom their
// tags are routed to.
func (s *session) makeStep(e taskfile.Entry) {
	if to := s.routedTo(e.Tags); to != "" && s.me.Chief == s.v.Loop.Name && to != s.v.Loop.Name && e.From != to {
		s.send(loop.Delivery{
			To: to, Key: "route/" + s.v.Loop.Name + "/" + e.ID, Kind: "task", Priority: e.Priority, Tags: e.Tags, Text: fmt.Sprintf("%s\n(%s asks for it)", e.Text, orUnknown(e.From)),
		})
		s.inbox.Process(e.ID, s.v.Now, to+" (by its tags)")
		return
	}
	title, rest, _ := strings.Cut(strings.TrimSpace(e.Text), "\n")
	key := s.addStep(taskfile.NewStep{
		Title: orUnknown(title), Priority: e.Priority, Tags: e.Tags, DependsOn: e.DependsOn, From: orUnknown(e.From), Text: strings.TrimSpace(rest),
	})
	if s.entries == nil {
		s.entries = map[string]taskfile.Entry{}
	}
	s.entries[key] = e
	s.inbox.Process(e.ID, s.v.Now, stepName(key))
}

// addStep adds a step under a number that none had before, also not one that is gone.
func (s *session) addStep(n taskfile.NewStep) string {
	for key := range s.rows {
		if num, err := strconv.Atoi(key[strings.LastIndexByte(key, '-')+1:]); err == nil {
			n.Least = max(n.Least, num+1)
		}
	}
	return s.tasks.Add(n)
}

// routedTo is the agent to which one of the tags is routed; empty: none is.
func (s *session) routedTo(tags []string) string {
	for _, tag := range tags {
		if to := s.me.Routing[strings.ToLower(tag)]; to != "" {
			return to
		}
	}
	return ""
}

// holdForTriage asks the superior, once, what of a full inbox counts, and reports whether
// the entries wait for that.
func (s *session) holdForTriage(pending []taskfile.Entry) bool {
	if len(pending) < triageFrom {
		return false
	}
	superior := s.superior()
	asked := slices.IndexFunc(s.sent, func(d loop.Delivery) bool { return d.Topic == topicTriage })
	since := int64(0)
	if asked >= 0 {
		since, _ = strconv.ParseInt(s.sent[asked].Key[strings.LastIndexByte(s.sent[asked].Key, '#')+1:], 10, 64)
	}
	// A backlog that was gone in between is another one.
	fresh := asked < 0 || s.v.Run.N-since > 4*int64(s.v.Definition.RetryBlockedAfter)
	if !fresh {
		answered := slices.ContainsFunc(s.inbox.Processed(), func(e taskfile.Entry) bool { return e.From == superior && e.At.After(s.sent[asked].Sent) }) ||
			slices.ContainsFunc(pending, func(e taskfile.Entry) bool { return e.From == superior && e.At.After(s.sent[asked].Sent) })
		return !answered && s.v.Run.N-since < int64(s.v.Definition.RetryBlockedAfter)
	}
	var lines []string
	for _, e := range pending[:min(len(pending), 30)] {
		lines = append(lines, fmt.Sprintf("- %s, from %s: %s", e.Priority, orUnknown(e.From), readiness.FirstLine(e.Text)))
	}
	s.send(loop.Delivery{
		To: superior, Topic: topicTriage, Key: fmt.Sprintf("triage/%s#%d", s.v.Loop.Name, s.v.Run.N), Kind: "triage", Priority: taskfile.PriorityHigh,
		Text: fmt.Sprintf("%s has %d pending entries. Which of them count? Until you answer, or %d cycles have passed, only critical ones are taken.\n%s",
			s.v.Loop.Name, len(pending), s.v.Definition.RetryBlockedAfter, strings.Join(lines, "\n")),
	})
	s.remarks = append(s.remarks, fmt.Sprintf("%d entries wait: %s was asked which of them count", len(pending), superior))
	return true
}

// rank orders priorities: the lower goes first.
func rank(priority string) int {
	if at := slices.Index(taskfile.Priorities, priority); at >= 0 {
		return at
	}
	return slices.Index(taskfile.Priorities, taskfile.PriorityMedium)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// stepName is a key as people write it: "Step 7" of step-7.
func stepName(key string) string {
	if n, is := strings.CutPrefix(key, "step-"); is {
		return "Step " + n
	}
	return key
}

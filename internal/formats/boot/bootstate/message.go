package bootstate

import (
	"fmt"
	"strings"
)

// Session is what a commit message says about a session.
type Session struct {
	Brief   string // the first line, without its prefix
	State   string // what changed in the state
	Tasks   string
	Summary string
}

const messagePrefix = "agent: "

// Message writes the commit message of a session. Each part is put on one line; a part
// that is empty says that nothing changed.
func (s Session) Message() string {
	part := func(text, otherwise string) string {
		if text = oneLine(text); text == "" {
			return otherwise
		}
		return text
	}
	return fmt.Sprintf("%s%s\n\n- Updated STATE: %s\n- Updated TODO: %s\n- Session summary: %s\n", messagePrefix,
		shortened(part(s.Brief, "session"), 72-len(messagePrefix)),
		part(s.State, "no changes"), part(s.Tasks, "no changes"), part(s.Summary, "nothing was done"))
}

// ReadMessage reads the message of a commit. It reports false if it is not one of a
// session.
func ReadMessage(text string) (Session, bool) {
	first, rest, _ := strings.Cut(text, "\n")
	brief, ours := strings.CutPrefix(strings.TrimSpace(first), messagePrefix)
	s := Session{Brief: brief}
	for l := range strings.Lines(rest) {
		l = strings.TrimSpace(l)
		for prefix, to := range map[string]*string{
			"- Updated STATE: ": &s.State, "- Updated TODO: ": &s.Tasks, "- Session summary: ": &s.Summary,
		} {
			if value, is := strings.CutPrefix(l, prefix); is {
				*to = value
			}
		}
	}
	return s, ours
}

// DescribeState says in a few words what changed from one state to another; empty if
// nothing but times and hashes did.
func DescribeState(before, after State) string {
	var changes []string
	if a, b := before.Phase(), after.Phase(); a != b {
		changes = append(changes, fmt.Sprintf("currentPhase %s → %s", orNone(string(a)), b))
	}
	if b := after.NextIntent(); before.NextIntent() != b {
		changes = append(changes, "nextIntent "+orNone(shortened(oneLine(b), 60)))
	}
	if n := after.ErrorCount() - before.ErrorCount(); n > 0 {
		changes = append(changes, fmt.Sprintf("%d new in errors", n))
	}
	return strings.Join(changes, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// DescribeTasks says what changed from one list of tasks to another; empty if no status
// did and no task is new.
func DescribeTasks(before, after Todo) string {
	var changes []string
	had := map[string]Task{}
	for _, task := range before.Tasks() {
		had[task.ID] = task
	}
	for _, task := range after.Tasks() {
		switch old, there := had[task.ID]; {
		case !there:
			changes = append(changes, fmt.Sprintf("%s new, %s", task.ID, task.Status))
		case old.Status != task.Status:
			changes = append(changes, fmt.Sprintf("%s %s → %s", task.ID, old.Status, task.Status))
		}
	}
	return someOf(changes)
}

package board

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/rules/shell"
)

// Member is what people say of an agent of boards.
type Member struct {
	Name         string   `json:"name"`
	Handle       string   `json:"handle"` // without the @
	Role         string   `json:"role"`
	Layer        Layer    `json:"layer"`
	Skills       []string `json:"skills"`
	Capabilities []Prefix `json:"capabilities,omitempty"` // commands that it may run beside those that everybody may
	BoardIDs     []string `json:"boardIds"`
	LeadBoardID  string   `json:"leadBoardId,omitempty"` // the board that it leads
	Dormant      bool     `json:"dormant,omitempty"`     // it has no heartbeats
	Lead         string   `json:"lead,omitempty"`        // handle of whom it reports to; empty: what the boards and the layers say
	Interval     string   `json:"interval,omitempty"`    // between two heartbeats; empty: DefaultInterval
	CreatedAt    Millis   `json:"createdAt,omitempty"`
}

// DefaultInterval is the time between two heartbeats of an agent that has no other.
const DefaultInterval = 20 * time.Minute

// Every returns the time between two heartbeats.
func (m Member) Every() time.Duration {
	c, err := schedule.Parse(m.Interval)
	if d, ok := c.Interval(); ok && err == nil {
		return d
	}
	return DefaultInterval
}

// On reports whether the agent works on a board.
func (m Member) On(boardID string) bool { return slices.Contains(m.BoardIDs, boardID) }

// Prefix is the beginning of the commands that are allowed: whole arguments, from the first.
type Prefix []string

// ParsePrefix splits a line as the shell does. What only a shell can know is an error, and
// so is a second command.
func ParsePrefix(line string) (Prefix, error) {
	commands := shell.Commands(line)
	if len(commands) != 1 || slices.Contains(commands[0], "") || strings.ContainsAny(line, "<>|&;") || strings.Contains(strings.Fields(line)[0], "=") {
		return nil, fmt.Errorf("%.60q is not the beginning of one command: write words, as in go test", line)
	}
	return Prefix(commands[0]), nil
}

// UnmarshalJSON reads a list of arguments, or a line for the shell.
func (p *Prefix) UnmarshalJSON(text []byte) error {
	var line string
	if json.Unmarshal(text, &line) == nil && !strings.EqualFold(string(text), "null") {
		parsed, err := ParsePrefix(line)
		*p = parsed
		return err
	}
	var words []string
	if err := json.Unmarshal(text, &words); err != nil {
		return fmt.Errorf("%.60s is not a list of arguments", text)
	}
	*p = words
	return nil
}

// Mind is what the heartbeats of an agent write of it.
type Mind struct {
	Status        Presence `json:"status,omitempty"` // as it was written: read it with Presence
	LastHeartbeat Millis   `json:"lastHeartbeat,omitempty"`
	CurrentTaskID string   `json:"currentTaskId,omitempty"`
	HealthMetrics Health   `json:"healthMetrics"`
	WorkingMemory Memory   `json:"workingMemory"`

	CoolUntil Millis `json:"coolUntil,omitempty"` // it calls no model before
	CoolStep  int    `json:"coolStep,omitempty"`  // how often in a row it has cooled off
	RoutedAt  Millis `json:"routedAt,omitempty"`  // when it last looked at all of its boards
}

// Health is what an agent's work came to.
type Health struct {
	TasksCompleted    int    `json:"tasksCompleted"`
	TasksFailed       int    `json:"tasksFailed"`
	AvgCompletionTime Millis `json:"avgCompletionTime"` // from the claim to the end, of the completed ones
	ContextResets     int    `json:"contextResets"`
	LastErrorAt       Millis `json:"lastErrorAt,omitempty"`
}

// Memory is what an agent knows of its last heartbeats.
type Memory struct {
	LastContext  string   `json:"lastContext,omitempty"`
	CurrentFocus string   `json:"currentFocus,omitempty"`
	RecentTasks  []string `json:"recentTasks,omitempty"` // ids, the oldest first; a ring
	Reflections  []string `json:"reflections,omitempty"` // the oldest first; a ring
	ErrorCount   int      `json:"errorCount"`            // in a row
	UpdatedAt    Millis   `json:"updatedAt,omitempty"`
}

// MostRemembered is how many recent tasks, and how many reflections, an agent keeps.
const MostRemembered = 50

// Remember returns a ring with one more entry; the oldest ones are dropped. An entry that is
// in it already becomes the newest.
func Remember(ring []string, entry string) []string {
	kept := slices.DeleteFunc(slices.Clone(ring), func(s string) bool { return s == entry })
	kept = append(kept, entry)
	return kept[max(0, len(kept)-MostRemembered):]
}

// Reflect adds a reflection.
func (m Mind) Reflect(text string, now time.Time) Mind {
	m.WorkingMemory.Reflections = Remember(m.WorkingMemory.Reflections, text)
	m.WorkingMemory.UpdatedAt = At(now)
	return m
}

// Completed counts a task that is done after some time, and ends what errors have led to.
func (m Mind) Completed(taskID string, took time.Duration, now time.Time) Mind {
	n := int64(m.HealthMetrics.TasksCompleted)
	m.HealthMetrics.AvgCompletionTime = (m.HealthMetrics.AvgCompletionTime*Millis(n) + Millis(max(0, took).Milliseconds())) / Millis(n+1)
	m.HealthMetrics.TasksCompleted++
	m.WorkingMemory.RecentTasks = Remember(m.WorkingMemory.RecentTasks, taskID)
	return m.Succeeded(now)
}

// Failed counts a task that failed.
func (m Mind) Failed(taskID string, now time.Time) Mind {
	m.HealthMetrics.TasksFailed++
	m.WorkingMemory.RecentTasks = Remember(m.WorkingMemory.RecentTasks, taskID)
	m.WorkingMemory.UpdatedAt = At(now)
	return m
}

// An agent cools off after so many errors in a row, at first for firstCool, and then for
// twice as long each time, up to mostCool.
const (
	coolAfter = 3
	firstCool = 30 * time.Minute
	mostCool  = 6 * time.Hour
)

// Erred counts an error, after which the agent may have to cool off.
func (m Mind) Erred(now time.Time) Mind {
	m.WorkingMemory.ErrorCount++
	m.WorkingMemory.UpdatedAt, m.HealthMetrics.LastErrorAt = At(now), At(now)
	if m.WorkingMemory.ErrorCount >= coolAfter {
		pause := mostCool
		if m.CoolStep < 8 {
			pause = min(mostCool, firstCool<<max(0, m.CoolStep))
		}
		m.CoolStep, m.CoolUntil = min(m.CoolStep+1, math.MaxInt32), max(m.CoolUntil, At(now.Add(pause)))
	}
	return m
}

// Succeeded ends what errors have led to: one success is enough.
func (m Mind) Succeeded(now time.Time) Mind {
	m.WorkingMemory.ErrorCount, m.CoolStep, m.CoolUntil = 0, 0, 0
	m.WorkingMemory.UpdatedAt = At(now)
	return m
}

// Cools reports whether the agent calls no model now, and why.
func (m Mind) Cools(now time.Time) (bool, string) {
	if !now.Before(m.CoolUntil.Time()) {
		return false, ""
	}
	return true, fmt.Sprintf("after %d errors in a row it works again at %s", m.WorkingMemory.ErrorCount, m.CoolUntil.Time().Format(time.RFC3339))
}

// fullRouting is how long it counts that an agent has looked at all of its boards.
const fullRouting = 15 * time.Minute

// StandsBy reports whether the agent need not look at its boards: nothing is in its inbox,
// and it looked at them a short time ago.
func (m Mind) StandsBy(inbox int, now time.Time) (bool, string) {
	since := now.Sub(m.RoutedAt.Time())
	if inbox > 0 || m.RoutedAt == 0 || since < 0 || since >= fullRouting {
		return false, ""
	}
	return true, fmt.Sprintf("its inbox is empty, and it looked at its boards %s ago, which counts for %s", since.Truncate(time.Second), shortDuration(fullRouting))
}

// Present returns what the agent is doing. One whose last heartbeat is older than two
// intervals is offline, whatever it wrote.
func (m Member) Present(mind Mind, now time.Time) Presence {
	if mind.LastHeartbeat == 0 || mind.Status == "" || now.Sub(mind.LastHeartbeat.Time()) > 2*m.Every() {
		return Offline
	}
	return mind.Status
}

// Backoff is the pause before try n, from 1, of a call that failed: from zero to 1 s before
// the first, to twice as long before each next one, and to 30 s at most. Draw is from 0 to
// below 1.
func Backoff(n int, draw float64) time.Duration {
	most := 30 * time.Second
	if n < 6 {
		most = min(most, time.Second<<max(0, n-1))
	}
	return time.Duration(min(max(0, draw), 1) * float64(most))
}

// shortDuration is a duration without zero parts, such as 15m.
func shortDuration(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Package memory says what of a run is remembered, when it counts, and which of it fits a
// goal. Commands that ran and passed are remembered by themselves. What an agent proposes
// counts only when a person approves it, or when two runs that are independent of it and of
// each other have proposed the same.
//
// It gives nothing that does not count to anybody, never changes what a person has
// forgotten, and reads no clock.
package memory

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of what is remembered.
const (
	MostText      = 1000 // bytes of an entry
	MostProposals = 5    // of one run
	MostOpen      = 100  // proposals of one loop that nobody has confirmed; later ones are dropped

	// NeededConfirmations is how many runs have to propose the same again before it counts.
	NeededConfirmations = 2

	mostSources = 8 // that are kept of an entry; it is not confirmed by more agents than that
)

// Lesson is something that a run learned: that a command passed or did not, or what its
// agent proposed.
type Lesson struct {
	Kind   loop.MemoryKind
	Text   string
	Passed bool // of a command
	Known  bool // of a command: it was not run again, because it had passed on the same tree before
	By     loop.MemorySource
}

// entry is what would be remembered of a lesson, for one loop or for all.
func (l Lesson) entry(loopID string) loop.Memory {
	return loop.Memory{Kind: l.Kind, Text: l.Text, LoopID: loopID}
}

// digests are those of the entries that the lesson may be about.
func (l Lesson) digests() []string {
	if l.Kind == loop.MemoryCommand {
		return []string{l.entry("").Digest()}
	}
	return []string{l.entry(l.By.LoopID).Digest(), l.entry("").Digest()}
}

// Learn returns the entries that change because of lessons, which say different things,
// and new ones, without a number. Known are those that have any of the lessons' digests. At
// most room proposals are new.
func Learn(known []loop.Memory, lessons []Lesson, room int) []loop.Memory {
	var changed []loop.Memory
	for _, l := range lessons {
		digests := l.digests()
		about := func(m loop.Memory) bool { return slices.Contains(digests, m.Digest()) }
		i := slices.IndexFunc(known, func(m loop.Memory) bool { return about(m) && m.State != loop.MemoryForgotten })
		switch {
		case i >= 0:
			if after, differs := learn(known[i], l); differs {
				changed = append(changed, after)
			}
		case slices.ContainsFunc(known, about): // A person has forgotten it.
		case l.Kind != loop.MemoryCommand && room > 0:
			room--
			changed = append(changed, begin(l, loop.MemoryProposed, 0))
		case l.Kind == loop.MemoryCommand && l.Passed:
			changed = append(changed, begin(l, loop.MemoryActive, 1))
		}
	}
	return changed
}

// begin makes a new entry for every loop of the workspace.
func begin(l Lesson, state loop.MemoryState, confirmed int) loop.Memory {
	m := l.entry("")
	m.State, m.Confirmed, m.Sources, m.Last, m.Created, m.Seen = state, confirmed, []loop.MemorySource{l.By}, l.By, l.By.At, l.By.At
	return m
}

// learn is what becomes of an entry that is not forgotten, and whether that differs.
func learn(m loop.Memory, l Lesson) (loop.Memory, bool) {
	if m.Kind == loop.MemoryCommand {
		if l.Known {
			return m, false
		}
		if !l.Passed {
			m.Failed++
			return m, true
		}
		if !slices.ContainsFunc(m.Sources, func(s loop.MemorySource) bool { return sameMaker(s, l.By) }) {
			m.Sources = withSource(m.Sources, l.By)
		}
		m.Confirmed, m.Failed, m.Last, m.Seen = m.Confirmed+1, 0, l.By, l.By.At
		return m, true
	}
	switch independent := IsIndependent(m, l.By); {
	case independent && len(m.Sources) < mostSources:
		m.Sources, m.Confirmed = withSource(m.Sources, l.By), m.Confirmed+1
		if m.Confirmed >= NeededConfirmations {
			m.State = loop.MemoryActive
		}
	case m.State == loop.MemoryProposed || m.Last.RunID == l.By.RunID:
		return m, false // Who repeats oneself confirms nothing.
	}
	m.Last, m.Seen = l.By, l.By.At
	return m, true
}

// IsIndependent reports whether a run can confirm an entry: it is none of the runs that
// the entry is from, and has another loop or another agent than each of them.
func IsIndependent(m loop.Memory, by loop.MemorySource) bool {
	return !slices.ContainsFunc(m.Sources, func(s loop.MemorySource) bool { return s.RunID == by.RunID || sameMaker(s, by) })
}

func sameMaker(a, b loop.MemorySource) bool { return a.LoopID == b.LoopID && a.Agent == b.Agent }

// withSource does not write into a list that others may have.
func withSource(sources []loop.MemorySource, s loop.MemorySource) []loop.MemorySource {
	if len(sources) >= mostSources {
		return sources
	}
	return append(sources[:len(sources):len(sources)], s)
}

// Confidence is how much an entry is worth, from 0 to 100: it grows with what confirmed
// it, a person's word most of all, and halves with each run in which its command did not
// pass since it last did.
func Confidence(m loop.Memory) int {
	const personsWord = 8 // as much as so many confirmations
	weight := m.Confirmed
	switch {
	case m.State == loop.MemoryForgotten:
		return 0
	case m.Word != (loop.MemoryWord{}):
		weight += personsWord
	}
	return 100 * (weight + 1) / (weight + 3) >> min(m.Failed, 7)
}

// Clean is a text as it is remembered: on one line unless it is a command, and without
// what cannot be stored. Of one that is too long, the end is left out; a command without its
// end is another command, and is not remembered: then it is empty.
func Clean(kind loop.MemoryKind, text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
	if kind == loop.MemoryCommand {
		if len(text) > MostText {
			return ""
		}
		return text
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= MostText {
		return text
	}
	cut := MostText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

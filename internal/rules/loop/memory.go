package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// MemoryKind says what an entry of a workspace's memory is about.
type MemoryKind string

// Kinds of entries.
const (
	MemoryCommand MemoryKind = "command" // a command line that ran and passed
	MemoryFact    MemoryKind = "fact"    // how something is
	MemoryPitfall MemoryKind = "pitfall" // what goes wrong, and what to do instead
)

// MemoryState says whether an entry counts.
type MemoryState string

// States of entries. Only active ones are ever given to an agent.
const (
	MemoryProposed  MemoryState = "proposed"  // an agent says so, and nobody has confirmed it
	MemoryActive    MemoryState = "active"    // it counts
	MemoryForgotten MemoryState = "forgotten" // a person does not want it; only a person brings it back
)

// Memory is one entry of what was learned in a workspace.
type Memory struct {
	N         int64          `json:"n"` // in its workspace, from 1, with gaps; 0: it has none yet
	Kind      MemoryKind     `json:"kind"`
	Text      string         `json:"text"`
	LoopID    string         `json:"loop_id,omitempty"` // the only loop that it is for; empty: every loop of the workspace
	Loop      string         `json:"loop,omitempty"`    // its name
	State     MemoryState    `json:"state"`
	Confirmed int            `json:"confirmed"`        // runs in which the command passed, or others that proposed the same text, beside the first
	Failed    int            `json:"failed,omitempty"` // runs in which the command did not pass, since it last did
	Sources   []MemorySource `json:"sources"`          // the oldest first, one of each loop and agent
	Last      MemorySource   `json:"last,omitzero"`    // the newest that confirmed it
	Word      MemoryWord     `json:"word,omitzero"`    // the newest of a person about it
	Created   time.Time      `json:"created"`
	Seen      time.Time      `json:"last_confirmed"` // when it was last confirmed, or made
}

// MemorySource is a run that an entry comes from, or that confirmed it.
type MemorySource struct {
	RunID  string    `json:"run_id"`
	LoopID string    `json:"loop_id"`
	Run    string    `json:"run"` // LOOP#N
	Agent  string    `json:"agent,omitempty"`
	Gate   string    `json:"gate,omitempty"`   // that passed
	Commit string    `json:"commit,omitempty"` // on which it passed, or from which the run started
	At     time.Time `json:"at"`
}

// MemoryWord is what a person last said of an entry: its state says what that was.
type MemoryWord struct {
	By Actor     `json:"by"`
	At time.Time `json:"at"`
}

// Digest is the same for entries that say the same for the same loop. Facts and pitfalls
// say the same whatever their case, white space and closing dots; a command is what it is,
// and never says the same as a fact.
func (m Memory) Digest() string {
	kind, text := m.Kind, m.Text
	if kind != MemoryCommand {
		kind, text = MemoryFact, strings.TrimRight(strings.Join(strings.Fields(strings.ToLower(text)), " "), ".;! ")
	}
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + m.LoopID + "\x00" + text))
	return hex.EncodeToString(sum[:16])
}

// ProposedBy is the id of the loop whose run proposed the entry; empty if none did.
func (m Memory) ProposedBy() string {
	if m.Kind == MemoryCommand || len(m.Sources) == 0 {
		return ""
	}
	return m.Sources[0].LoopID
}

package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
)

// Names of the files in which a loop of the protocol spine keeps its memory, in a folder of
// its own in .loops.
const (
	StateFile = "STATE.md"
	LogFile   = "run-log.md"
)

// IsStateFile reports whether a path of a workspace is that of such a file.
func IsStateFile(name string) bool {
	dir, file := path.Split(name)
	return (file == StateFile || file == LogFile) && path.Dir(path.Clean(dir)) == ".loops"
}

// AgentsDir is the folder of agents with task files, each in a folder of its own.
const AgentsDir = "agents"

// IsMemoryFile reports whether a path of a workspace is that of a file in which a loop keeps
// what it knows: work does not depend on it.
func IsMemoryFile(name string) bool {
	if IsStateFile(name) {
		return true
	}
	dir, file := path.Split(name)
	switch file {
	case "TASKS.md", "INBOX.md", "HEARTBEAT.md", "CONTEXT.md":
		return path.Dir(path.Clean(dir)) == AgentsDir
	}
	return false
}

// Inputs are everything that the result of a step depends on. A settled step is not
// worked on again while its inputs are the same.
type Inputs struct {
	BaseTree   string // without the files of IsStateFile
	Definition string // digest
	Memory     string // the part of the protocol's memory that the step depends on
	Sensed     string
}

// PerStep returns the inputs without those that all steps of a run share.
func (i Inputs) PerStep() Inputs { return Inputs{Memory: i.Memory, Sensed: i.Sensed} }

// Digest is the SHA-256 of the inputs, in hex.
func (i Inputs) Digest() string {
	body, err := json.Marshal(i)
	if err != nil {
		panic("loop: inputs do not marshal: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

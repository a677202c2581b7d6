package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Inputs are what the result of a step depends on. A step that was settled is not
// worked again while its inputs are the same.
type Inputs struct {
	BaseTree   string
	Definition string // digest
	Memory     string // of the protocol: what of it the step depends on
	Sensed     string
}

// PerStep are the inputs without those that a run has once for all of its steps.
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

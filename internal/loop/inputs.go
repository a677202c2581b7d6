package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Inputs are everything that the result of a step depends on. A settled step is not
// worked on again while its inputs are the same.
type Inputs struct {
	BaseTree   string
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

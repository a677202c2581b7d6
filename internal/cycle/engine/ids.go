package engine

import (
	"crypto/sha256"
	"encoding/hex"
)

// StepID derives the id of a step from its loop and key, so that the same item
// is the same step whoever sees it first.
func StepID(loopID, key string) string {
	sum := sha256.Sum256([]byte(loopID + "\x00" + key))
	return "st_" + hex.EncodeToString(sum[:8])
}

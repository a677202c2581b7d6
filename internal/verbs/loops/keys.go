package loops

import (
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// LeastScore is the lowest score of a ready loop, unless its operator asks for another.
const LeastScore = readiness.LeastScore

// SeverityError is the severity of a Finding that keeps a loop from running.
const SeverityError = readiness.SeverityError

// ExplainedKey is the explanation of a key of a definition, schema pawl.key/v1.
type ExplainedKey struct {
	Schema string `json:"schema"`
	definition.Field

	Text string `json:"-"` // the same for people
}

// ExplainKey explains a key. The error for an unknown key is a *loop.Fault that
// suggests a similar one.
func ExplainKey(name string) (ExplainedKey, error) {
	text, err := definition.ExplainKey(name)
	field, _ := definition.LookupField(name)
	return ExplainedKey{Schema: "pawl.key/v1", Field: field, Text: text}, err
}

// Keys lists the keys of a definition.
func Keys() []definition.Field { return definition.Fields() }

// ExplainKeys explains each key in one line, for people.
func ExplainKeys() string { return definition.ExplainAll() }

// InvariantName is a name or a function that an invariant may use.
type InvariantName = invariant.Name

// InvariantNames lists everything of which an invariant may be made.
func InvariantNames() []InvariantName { return invariant.Names() }

// Schemas lists the names of the formats that have a JSON schema.
func Schemas() []string { return definition.SchemaNames() }

// Schema returns the JSON schema of a format. An unknown name is a *loop.Fault.
func Schema(name string) ([]byte, error) { return definition.Schema(name) }

// CustomPattern is the pattern of a loop for which the catalogue has none.
const CustomPattern = pattern.Custom

// Patterns lists the catalogue of patterns.
func Patterns() []pattern.Pattern { return pattern.All() }

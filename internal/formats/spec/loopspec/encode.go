package loopspec

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Encode writes a spec in its one form: all fields in the order of the format, with two
// spaces for each level, and a newline at the end. Decode reads it as the same spec.
func Encode(s Spec) []byte {
	if s.Gates == nil {
		s.Gates = []loop.Gate{}
	}
	if s.Guardrails == nil {
		s.Guardrails = []string{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		// A Spec holds texts, numbers and lists of them only.
		panic("loopspec: a spec does not marshal: " + err.Error())
	}
	return b.Bytes()
}

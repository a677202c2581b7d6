package loopspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Adopt returns a spec of another program as one that can be validated, with a note for
// each change. An invariant that is a command becomes a command gate, and a guardrail
// that fits no phrase becomes a note. Nothing else is guessed.
func Adopt(s Spec, m Machine) (Spec, []Finding) {
	s = s.clone().WithDefaults()
	var notes []Finding
	note := func(path, format string, args ...any) {
		notes = append(notes, Finding{Path: path, Note: true, Message: messageOf(format, args...)})
	}
	for i, g := range s.Gates {
		if g.Kind == loop.GateInvariant && m.IsCommand != nil && m.IsCommand(g.Check) {
			s.Gates[i].Kind = loop.GateCommand
			note(fmt.Sprintf("gates[%d].kind", i), "%s is a command, not an expression: the gate is a %s now", readiness.Quote(GateText(g.Check)), loop.GateCommand)
		}
	}
	for i, text := range s.Guardrails {
		var p phraseParser
		p.guardrails([]string{text})
		if isBlank(text) || !Refused(p.findings) {
			continue
		}
		s.Guardrails[i] = "note: " + strings.TrimSpace(text)
		note(fmt.Sprintf("guardrails[%d]", i), "%s fits no phrase: it is a note now, which is not enforced", readiness.Quote(text))
	}
	s.Guardrails = slices.DeleteFunc(s.Guardrails, isBlank)
	return s, notes
}

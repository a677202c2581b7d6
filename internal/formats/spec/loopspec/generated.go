package loopspec

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Reasons why what a model has generated is not used.
const (
	ParseFailed  = "parse-failed"  // it is not the JSON of a spec
	SchemaFailed = "schema-failed" // it is, and what it says is refused
)

// Generated returns the spec that a model's reply holds: the JSON of a spec and nothing
// else, perhaps in a code fence. What only the runtime may say is taken from the task:
// its ids and its times are not the model's. If the reply is not used, the spec is that
// of the skeleton for the task, and reason and findings say why.
func Generated(reply string, task Task, m Machine) (s Spec, reason string, findings []Finding) {
	doc, findings := Decode([]byte(withoutFence(reply)))
	if len(findings) > 0 {
		return fillSkeleton(task).WithDefaults(), ParseFailed, findings
	}
	s = doc.Spec.WithDefaults()
	s.ID, s.ParentID, s.ChildIDs, s.CreatedAt, s.UpdatedAt = "", "", nil, 0, 0
	s.AgentID = task.AgentID
	findings = doc.Locate(append(Validate(s, m), unnamed(s, m)...))
	if Refused(findings) {
		return fillSkeleton(task).WithDefaults(), SchemaFailed, findings
	}
	return s, "", findings
}

// unnamed refuses the commands of a spec that a model has made up.
func unnamed(s Spec, m Machine) (findings []Finding) {
	if m.Named == nil {
		return nil
	}
	for path, line := range s.Commands() {
		if !m.Named(line) {
			findings = append(findings, Finding{Path: path, Message: messageOf("no memory and no file has %s; say it, if it is right", readiness.Quote(line))})
		}
	}
	return findings
}

// Commands returns the commands that a spec starts, each with the path of its field, in no
// order.
func (s Spec) Commands() map[string]string {
	all := map[string]string{}
	for i, g := range s.Gates {
		if g.Kind == loop.GateCommand {
			all[fmt.Sprintf("gates[%d].check", i)] = GateText(g.Check)
		}
	}
	rules, _ := s.Rules()
	if rules.StateSource.Command != "" {
		all["stateSource"] = rules.StateSource.Command
	}
	if e := rules.Trigger.Event; e.Kind == loop.OnCommand {
		all["trigger.on"] = e.What
	}
	return all
}

// withoutFence removes one code fence around a whole text.
func withoutFence(text string) string {
	text = strings.TrimSpace(text)
	inner, opens := strings.CutPrefix(text, "```")
	inner, closes := strings.CutSuffix(inner, "```")
	language, body, lines := strings.Cut(inner, "\n")
	if !opens || !closes || !lines || strings.ContainsAny(language, " `{") {
		return text
	}
	return body
}

package loopspec

import "strings"

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
	findings = doc.Locate(Validate(s, m))
	if Refused(findings) {
		return fillSkeleton(task).WithDefaults(), SchemaFailed, findings
	}
	return s, "", findings
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

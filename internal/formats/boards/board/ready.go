package board

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Rule is a rule of readiness. Scripts match on it.
type Rule string

// The rules of readiness.
const (
	RuleDescribed  Rule = "described"  // the task has a description or acceptance criteria
	RuleSkilled    Rule = "skilled"    // the agent has the skills that the task needs
	RuleDocumented Rule = "documented" // the board has an SOP or documentation, or needs none
)

// Gap is one thing that a task lacks.
type Gap struct {
	Rule  Rule   `json:"rule"`
	Words string `json:"words"`
}

// Gaps returns what a task lacks for an agent to begin it; nothing if it is ready.
func Gaps(t Task, m Member, b Board, resources []Resource) (gaps []Gap) {
	if strings.TrimSpace(t.Description) == "" && strings.TrimSpace(t.AcceptanceCriteria) == "" {
		gaps = append(gaps, Gap{RuleDescribed, "it has neither a description nor acceptance criteria"})
	}
	if missing := missingSkills(t, m); len(missing) > 0 {
		gaps = append(gaps, Gap{RuleSkilled, "@" + m.Handle + " lacks " + strings.Join(missing, ", ")})
	}
	documents := slices.ContainsFunc(resources, func(r Resource) bool {
		return r.BoardID == b.ID && (r.Category == SOP || r.Category == Documentation)
	})
	if !documents && !b.Waived {
		gaps = append(gaps, Gap{RuleDocumented, "its board has no SOP and no documentation"})
	}
	return gaps
}

// missingSkills are those that a task needs and an agent does not have, as the task has them.
func missingSkills(t Task, m Member) (missing []string) {
	for _, need := range t.RequiredSkills {
		if !slices.ContainsFunc(m.Skills, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), strings.TrimSpace(need)) }) {
			missing = append(missing, need)
		}
	}
	return missing
}

// Flags returns the gaps that the lead of the board has to close: all but skills that
// another agent of the board has.
func Flags(t Task, gaps []Gap, members []Member) []Gap {
	able := slices.ContainsFunc(members, func(m Member) bool { return m.On(t.BoardID) && !m.Dormant && len(missingSkills(t, m)) == 0 })
	return slices.DeleteFunc(slices.Clone(gaps), func(g Gap) bool { return g.Rule == RuleSkilled && able })
}

// GapWords are gaps in one line.
func GapWords(gaps []Gap) string {
	var words []string
	for _, g := range gaps {
		words = append(words, g.Words)
	}
	return strings.Join(words, "; ")
}

// Digest is the same for a task as long as nobody has changed what it asks for, and for its
// gaps as long as they are the same: a lead is asked again only when it is another one.
func Digest(t Task, gaps []Gap) string {
	text, err := json.Marshal([]any{t.Title, t.Description, t.AcceptanceCriteria, t.RequiredSkills, t.Tags, t.DueDate, t.Priority, gaps})
	if err != nil {
		panic("board: a task does not marshal: " + err.Error()) // Nothing of it can fail.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

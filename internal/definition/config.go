package definition

import (
	"cmp"
	"slices"

	"github.com/pawl-run/pawl/internal/readiness"
	"github.com/pawl-run/pawl/internal/schedule"
)

// Config is what the document says for the keys of the format, for
// readiness.Check and readiness.DoctorRows.
func (d *Document) Config() readiness.Config {
	c := readiness.Config{
		Name: d.scalarValue("name"), Pattern: d.scalarValue("pattern"), Tier: d.scalarValue("tier"), Cadence: d.scalarValue("cadence"),
		Goal: d.scalarValue("goal"), Escalation: d.scalarValue("escalation"), KillSwitch: d.scalarValue("kill_switch"),
		BudgetTokens: d.scalarValue("budget_tokens"), PermissionMode: d.scalarValue("permission_mode"), Verify: d.scalarValue("verify"),
		Guard: d.scalarValue("guard"), Worktree: d.scalarValue("worktree"), LandVia: d.scalarValue("land_via"),
		Scope: d.List("scope"), ScopeAt: d.scalarValue("scope"),
	}
	if text := filledText(c.Cadence); text != "" {
		if _, err := schedule.ParseFor(text, filledText(c.Name)); err != nil {
			c.CadenceProblem = err.Error()
		}
	}
	return c
}

// Check judges the document without running it. The verdict is about the keys
// of the format. The second list is everything else, in the order of the file,
// and does not change the score; the Kind of each finding says what it does
// change:
//
//   - KindOwn: an error in one of pawl's own keys, which is wrong or which this
//     version refuses, and any key that has two values. The loop is not ready.
//   - KindUnknown: a key that nobody reads, with what was probably meant. Under
//     --strict the loop is not ready.
//   - KindNote: no say in readiness. A repeated key, a key without effect, and
//     as errors what only a run refuses in the keys of the format, like a scope
//     of the whole tree.
//
// The name of the directory is not compared, and of a list of bad items in scope
// the verdict has the first.
func (d *Document) Check() (readiness.Verdict, []readiness.Finding) {
	c := d.convert("")
	slices.SortStableFunc(c.more, byPlace)
	return c.verdict, c.more
}

func (d *Document) scalarValue(key string) readiness.Value {
	v, _ := d.Scalar(key)
	return v
}

// filledText is the text that a person has written, not a placeholder.
func filledText(v readiness.Value) string {
	if !readiness.IsFilled(v.Text) {
		return ""
	}
	return v.Text
}

// kindOf says what a finding outside the check means for readiness.
func kindOf(severity, key string) readiness.Kind {
	switch {
	case !slices.Contains(knownKeys, key):
		return readiness.KindUnknown
	case severity == readiness.SeverityError && !slices.Contains(seedKeys, key):
		return readiness.KindOwn
	}
	return readiness.KindNote
}

func byPlace(a, b readiness.Finding) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

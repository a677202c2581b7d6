package definition

import (
	"cmp"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Config returns the values of the keys of the format, for readiness.Check and
// readiness.DoctorRows.
func (d *Document) Config() readiness.Config {
	c := readiness.Config{
		Name: d.scalarValue("name"), Pattern: d.scalarValue("pattern"), Tier: d.scalarValue("tier"), Cadence: d.scalarValue("cadence"),
		Goal: d.scalarValue("goal"), Escalation: d.scalarValue("escalation"), KillSwitch: d.scalarValue("kill_switch"),
		BudgetTokens: d.scalarValue("budget_tokens"), PermissionMode: d.scalarValue("permission_mode"), Verify: d.scalarValue("verify"),
		Guard: d.scalarValue("guard"), Worktree: d.scalarValue("worktree"), LandVia: d.scalarValue("land_via"),
		Scope: d.List("scope"), ScopeAt: d.scalarValue("scope"),
	}
	for _, key := range d.optional {
		if d.findEntry(key) == nil {
			c.Optional = append(c.Optional, key)
		}
	}
	if text := filledText(c.Cadence); text != "" {
		if _, err := schedule.ParseFor(text, filledText(c.Name)); err != nil {
			c.CadenceProblem = err.Error()
		}
	}
	return c
}

// Check judges the document. The verdict is about the keys of the format. The list has
// all other findings, in the order of the file. They do not change the score; their Kind
// says what they change:
//
//   - KindOwn: an error in one of pawl's own keys, which is wrong or which this
//     version refuses, and any key that has two values. The loop is not ready.
//   - KindUnknown: an unknown key, with the key that was probably meant. With --strict
//     the loop is not ready.
//   - KindNote: it does not change readiness. A repeated key, a key without effect, and,
//     as errors, values of keys of the format that only a run refuses, like a scope of
//     the whole tree.
//
// The name of the directory is not compared. If scope has several bad items, the verdict
// has only the first.
func (d *Document) Check() (readiness.Verdict, []readiness.Finding) {
	c := d.convert("")
	slices.SortStableFunc(c.more, byPlace)
	return c.verdict, c.more
}

func (d *Document) scalarValue(key string) readiness.Value {
	v, _ := d.Scalar(key)
	return v
}

// filledText returns the text of a value; empty if it is a placeholder.
func filledText(v readiness.Value) string {
	if !readiness.IsFilled(v.Text) {
		return ""
	}
	return v.Text
}

// kindOf returns the kind of a finding outside the check.
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

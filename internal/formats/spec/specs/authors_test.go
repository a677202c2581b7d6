package specs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

func TestWhoWroteGoalAndFlagsOfASpecIsInItsDefinition(t *testing.T) {
	agent := loop.Actor{Who: "agent of Ann", Role: loop.RoleAgent, From: "mcp"}
	for name, c := range map[string]struct {
		makes  loop.Actor
		goal   string // of the new revision, by a person
		goalBy loop.Role
	}{
		"a person's":                        {verbtest.Ann, "", ""},
		"an agent's":                        {agent, "", loop.RoleAgent},
		"an agent's, edited beside it":      {agent, "The tests pass.", loop.RoleAgent},
		"an agent's, that a person rewrote": {agent, "The tests pass at night.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(verbtest.New(t))
			document := func(goal string) string { return contract(func(s *loopspec.Spec) { s.Goal = goal }) }
			v := must[specs.View](t)(r.Create(t.Context(), c.makes, specs.CreateRequest{Document: document("The tests pass."), File: "x.json"}))
			if c.goal != "" {
				must[specs.View](t)(r.Edit(t.Context(), verbtest.Ann, specs.EditRequest{Spec: v.Spec.ID, Document: document(c.goal), File: "x.json"}))
			}
			must[specs.View](t)(r.Flag(t.Context(), agent, v.Spec.ID, "# Rules"))
			v = must[specs.View](t)(r.Flag(t.Context(), verbtest.Ann, v.Spec.ID, "it is long"))
			d, _, err := r.Workspace.Definition(t.Context(), v.Spec.ID)
			if err != nil {
				t.Fatal(err)
			}
			if d.GoalBy != c.goalBy {
				t.Errorf("the goal is recorded as that of %q, want %q", d.GoalBy, c.goalBy)
			}
			if !slices.Equal(d.Claims, []string{"# Rules"}) || !slices.Equal(v.Claims, d.Claims) || !slices.Equal(d.Rubric, v.Rubric.Criteria) ||
				!slices.ContainsFunc(d.Rubric, func(c string) bool { return strings.Contains(c, "it is long") }) ||
				slices.ContainsFunc(d.Rubric, func(c string) bool { return strings.Contains(c, "# Rules") }) {
				t.Errorf("criteria %q, claims %q", d.Rubric, d.Claims)
			}
		})
	}
}

package specs_test

import (
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// TestAnAgentStepsWhatAPersonOrATemplateMade: what it flags accepts nothing that was not accepted.
func TestAnAgentStepsWhatAPersonOrATemplateMade(t *testing.T) {
	r := newRig(verbtest.New(t))
	agent := loop.Actor{Who: "bot", Role: loop.RoleAgent, From: "mcp"}
	accepted := func(id string) bool {
		_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: id, By: agent})
		return !errors.Is(err, loop.ErrUnaccepted)
	}
	person := r.create(nil).Spec.ID
	made, err := r.Create(t.Context(), agent, specs.CreateRequest{Fill: specs.Fill{Goal: "It says two.", Agent: "@doer"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{person, made.Spec.ID} {
		if !accepted(id) {
			t.Errorf("%s is not accepted", id)
		}
		if _, err := r.Flag(t.Context(), agent, id, "it ends with a line"); err != nil {
			t.Fatal(err)
		}
		if !accepted(id) {
			t.Errorf("%s is not accepted after an agent has flagged something", id)
		}
	}
	// The verbs refuse an agent to edit a spec; what comes to that all the same is not accepted.
	edit := contract(func(s *loopspec.Spec) { s.Goal = "It says something else." })
	if _, err := r.Edit(t.Context(), agent, specs.EditRequest{Spec: person, Document: edit, File: "spec.json"}); err != nil {
		t.Fatal(err)
	}
	if accepted(person) {
		t.Error("what an agent has edited is accepted")
	}
	if _, err := r.Flag(t.Context(), agent, person, "it begins with a letter"); err != nil {
		t.Fatal(err)
	}
	if accepted(person) {
		t.Error("what an agent has edited is accepted because it flagged something")
	}
	if _, err := r.Flag(t.Context(), verbtest.Ann, person, "it has one word"); err != nil {
		t.Fatal(err)
	}
	if !accepted(person) {
		t.Error("what a person has changed is not accepted")
	}
}

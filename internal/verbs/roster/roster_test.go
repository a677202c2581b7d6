package roster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

func TestWhatIsSetOfAnAgentAtTheSameTimeAllStands(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		entries := roster.Roster{Store: r.Store, Profiles: []agent.Profile{command.Driver{}.Profile()}, Now: r.Workspace.Now, NewID: func(string) string { return "ag_1" }}
		line := "true"
		if _, err := entries.Create(t.Context(), "@ada", roster.Change{Command: &line}); err != nil {
			t.Fatal(err)
		}
		for round := range 10 {
			value := fmt.Sprint("v", round)
			var sets []func() error
			for _, c := range []roster.Change{{Model: &value}, {Role: &value}, {Board: &value}, {Command: &value}, {Skills: []string{value}}} {
				sets = append(sets, func() error {
					_, err := entries.Set(t.Context(), "@ada", c)
					return err
				})
			}
			verbtest.RunTogether(t, sets...)
			a, err := entries.Find(t.Context(), "ada")
			if err != nil || !slices.Equal([]string{a.Model, a.Role, a.Board, a.Command}, slices.Repeat([]string{value}, 4)) || !slices.Equal(a.Skills, []string{value}) {
				t.Fatalf("after all were set to %s: %+v, %v", value, a, err)
			}
		}
	})
}

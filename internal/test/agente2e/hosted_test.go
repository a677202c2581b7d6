//go:build agents && linux

package agente2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// searches are the programs' own tools behind which the vendor searches. Programs
// that are not listed have none.
var searches = map[string]string{"claude": "WebSearch", "codex": "web_search", "gemini": "google_web_search", "acp gemini": "google_web_search"}

// searching is a fixture whose model wants to search before it does its work.
func searching(t *testing.T, s subject, keys ...string) *fixture {
	t.Helper()
	return newFixture(t, s, func(v *fixture) fakemodel.Script {
		return fakemodel.Script{Turns: []fakemodel.Turn{
			fakemodel.Tool(searches[s.name], `{"query":"what is two"}`),
			fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"),
			fakemodel.Say("The value is two now."),
		}}
	}, keys...)
}

// TestAttack081NoProgramAsksItsVendorForToolsThatTheDefinitionDoesNotName looks at
// what the programs send by themselves: nothing may have to be refused.
func TestAttack081NoProgramAsksItsVendorForToolsThatTheDefinitionDoesNotName(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := searching(t, s)
			run, _ := v.run()
			if len(v.model.Turns()) == 0 {
				t.Fatalf("the model was not asked: %s %s\n%s", run.Outcome, run.Detail, v.logs())
			}
			for _, e := range v.model.Log() {
				if len(e.Hosted) > 0 {
					t.Errorf("the vendor was asked for %v", e.Hosted)
				}
				if i := slices.Index(e.Tools, searches[s.name]); searches[s.name] != "" && i >= 0 {
					t.Errorf("the model is offered %s", e.Tools[i])
				}
			}
			if logs := v.logs(); strings.Contains(logs, "model_tool") || strings.Contains(logs, "left_out") {
				t.Errorf("pawl had to refuse something:\n%s", logs)
			}
		})
	}
}

func TestAProgramSearchesWhereTheDefinitionNamesIt(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		if searches[s.name] == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := searching(t, s, "model_tools: [web_search]")
			run, _ := v.run()
			asked := slices.ContainsFunc(v.model.Log(), func(e fakemodel.Entry) bool { return len(e.Hosted) > 0 })
			if !asked || strings.Contains(v.logs(), "model_tool:") {
				t.Errorf("the vendor was asked to search: %t; %s %s\n%s\n%s", asked, run.Outcome, run.Detail, v.logs(), v.said())
			}
		})
	}
}

package api_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func TestEachVerbHasAToolOrAReasonWhyNot(t *testing.T) {
	asked := map[string]string{}
	names := map[string]bool{}
	for _, tool := range api.Tools() {
		if names[tool.Name] || len(tool.Name) > 40 || tool.Does == "" || !slices.Contains(verb.ToolGroups(), tool.Group) {
			t.Errorf("tool %q of group %q does %q", tool.Name, tool.Group, tool.Does)
		}
		names[tool.Name] = true
		if tool.Lists() != (tool.Schema != "") {
			t.Errorf("%s lists: %t, and the schema of its pages is %q", tool.Name, tool.Lists(), tool.Schema)
		}
		for _, v := range tool.Verbs {
			asked[v.Name] = tool.Name
			if why := v.RefusesAgents(); why != "" {
				t.Errorf("%s asks for %s, which agents may not: %s", tool.Name, v.Name, why)
			}
		}
	}
	for _, v := range api.Verbs() {
		if own := v.AsTool(); own != nil && !names[own.Name] {
			t.Errorf("the tool %s of %s is not listed", own.Name, v.Name)
		}
		why := cmp.Or(v.WhyNoTool, v.Hidden)
		if v.Writes && why == "" {
			why = v.RefusesAgents()
		}
		if (asked[v.Name] == "") != (why != "") {
			t.Errorf("%s has the tool %q, and the reason why it has none is %q", v.Name, asked[v.Name], why)
		}
	}
}

package definition

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsBrokenIsRefusedAtItsPlace(t *testing.T) {
	gate := func(fields string) string { return setting(specSample, "gates", `[{`+fields+`}]`) }
	task := func(field, value string) string {
		one := setting(`{"id": "a", "title": "t", "status": "done", "priority": "low"}`, field, value)
		return setting(todoSample, "tasks", "["+one+"]")
	}
	for name, c := range map[string]struct{ schema, text, want string }{
		"no goal":                         {"spec", without(specSample, "goal"), "/goal"},
		"a goal of white space":           {"spec", setting(specSample, "goal", `" "`), "/goal"},
		"another id":                      {"spec", setting(specSample, "id", `"lp_ABC"`), "/id"},
		"another type of loop":            {"spec", setting(specSample, "loopType", `"random"`), "/loopType"},
		"a trigger as text":               {"spec", setting(specSample, "trigger", `"manual"`), "/trigger"},
		"another trigger":                 {"spec", setting(specSample, "trigger", `{"type": "cron"}`), "/trigger/type"},
		"an event without a name":         {"spec", setting(specSample, "trigger", `{"type": "event"}`), "/trigger/on"},
		"an event of no known kind":       {"spec", setting(specSample, "trigger", `{"type": "event", "on": "push"}`), "/trigger/on"},
		"an event of a loop's nothing":    {"spec", setting(specSample, "trigger", `{"type": "event", "on": "loop:ci"}`), "/trigger/on"},
		"a source in plain words":         {"spec", setting(specSample, "stateSource", `"the tests"`), "/stateSource"},
		"a source of empty backticks":     {"spec", setting(specSample, "stateSource", "\"` `\""), "/stateSource"},
		"another kind of gate":            {"spec", gate(`"name": "g", "kind": "vote", "check": "x"`), "/gates/0/kind"},
		"a gate without a check":          {"spec", gate(`"name": "g", "kind": "command"`), "/gates/0/check"},
		"a gate without a name":           {"spec", gate(`"kind": "command", "check": "x"`), "/gates/0/name"},
		"a reviewer on a command gate":    {"spec", gate(`"name": "g", "kind": "command", "check": "x", "reviewer": {"agent": "a", "model": "m"}`), "/gates/0/kind"},
		"a reviewer without a model":      {"spec", gate(`"name": "g", "kind": "reviewer", "check": "x", "reviewer": {"agent": "a"}`), "/gates/0/reviewer/model"},
		"no budget":                       {"spec", without(specSample, "budget"), "/budget"},
		"a budget without tokens":         {"spec", setting(specSample, "budget", `{"maxWallClockMs": 1}`), "/budget/maxTokens"},
		"a budget of nothing":             {"spec", setting(specSample, "budget", `{"maxTokens": 0, "maxWallClockMs": 1}`), "/budget/maxTokens"},
		"a fraction of an iteration":      {"spec", setting(specSample, "budget", `{"maxIterations": 1.5, "maxTokens": 1, "maxWallClockMs": 1}`), "/budget/maxIterations"},
		"items as text":                   {"spec", setting(specSample, "budget", `{"maxTokens": 1, "maxWallClockMs": 1, "maxItems": "9"}`), "/budget/maxItems"},
		"one guardrail as text":           {"spec", setting(specSample, "guardrails", `"no deploy"`), "/guardrails"},
		"another role":                    {"spec", setting(specSample, "role", `"boss"`), "/role"},
		"another concurrency":             {"spec", setting(specSample, "concurrency", `"both"`), "/concurrency"},
		"a child that is not a loop":      {"spec", setting(specSample, "childIds", `["x"]`), "/childIds/0"},
		"a time as text":                  {"spec", setting(specSample, "createdAt", `"now"`), "/createdAt"},
		"a list of specs":                 {"spec", "[]", ""},
		"no phase":                        {"state", without(stateSample, "currentPhase"), "/currentPhase"},
		"the phase of an older version":   {"state", setting(stateSample, "phase", `"idle"`), "/phase"},
		"a comment of the template":       {"state", setting(stateSample, "_comment", `"fill"`), "/_comment"},
		"an unknown phase":                {"state", setting(stateSample, "currentPhase", `"wip"`), "/currentPhase"},
		"a version of two numbers":        {"state", setting(stateSample, "version", `"1.0"`), "/version"},
		"a version to be filled":          {"state", setting(stateSample, "version", `"{{VERSION}}"`), "/version"},
		"a day without a time":            {"state", setting(stateSample, "lastUpdated", `"2026-09-03"`), "/lastUpdated"},
		"a commit in capitals":            {"state", setting(stateSample, "lastCommitSha", `"1A2B3C4"`), "/lastCommitSha"},
		"a commit of eight digits":        {"state", setting(stateSample, "lastCommitSha", `"1a2b3c4d"`), "/lastCommitSha"},
		"an error without a time":         {"state", setting(stateSample, "errors", `[{"message": "m"}]`), "/errors/0/timestamp"},
		"an error half recoverable":       {"state", setting(stateSample, "errors", `[{"timestamp": "t", "message": "m", "recoverable": "no"}]`), "/errors/0/recoverable"},
		"a list of metadata":              {"state", setting(stateSample, "metadata", `[]`), "/metadata"},
		"no tasks":                        {"todo", `{"version": "1.0.0"}`, "/tasks"},
		"instructions of the template":    {"todo", setting(todoSample, "_instructions", `""`), "/_instructions"},
		"a task with a field of its own":  {"todo", task("owner", `"me"`), "/tasks/0/owner"},
		"an id with a space":              {"todo", task("id", `"a b"`), "/tasks/0/id"},
		"an empty title":                  {"todo", task("title", `""`), "/tasks/0/title"},
		"a title without end":             {"todo", task("title", `"`+strings.Repeat("é", 201)+`"`), "/tasks/0/title"},
		"a status of another format":      {"todo", task("status", `"in_progress"`), "/tasks/0/status"},
		"a priority of another format":    {"todo", task("priority", `"urgent"`), "/tasks/0/priority"},
		"a dependency that is not an id":  {"todo", task("dependencies", `["a", "b c"]`), "/tasks/0/dependencies/1"},
		"a completion that is a number":   {"todo", task("completedAt", `1`), "/tasks/0/completedAt"},
		"a long title of a task":          {"boards", `{"tasks": [{"boardId": "b", "title": "` + strings.Repeat("é", 201) + `"}]}`, "/tasks/0/title"},
		"an unknown column":               {"boards", `{"tasks": [{"boardId": "b", "title": "t", "status": "doing"}]}`, "/tasks/0/status"},
		"an agent without a board":        {"boards", `{"agents": [{"handle": "ada", "boardIds": []}]}`, "/agents/0/boardIds"},
		"a credential itself":             {"boards", `{"resources": [{"boardId": "b", "title": "t", "category": "credential", "content": "abc"}]}`, "/resources/0/content"},
		"a limit of no column":            {"boards", `{"boards": [{"name": "n", "wip": {"doing": 1}}]}`, "/boards/0/wip/doing"},
		"an organisation's unknown key":   {"org", `{"ownr": "Ada"}`, "/ownr"},
		"a department of members alone":   {"org", `{"departments": {"a": ["x"]}}`, "/departments/a"},
		"a chief without a name":          {"org", `{"chief": ""}`, "/chief"},
		"hours of no day":                 {"org", `{"hours": [9, 25]}`, "/hours"},
		"an interval of no rank":          {"org", `{"intervals": {"boss": "5m"}}`, "/intervals/boss"},
		"no retry":                        {"org", `{"max_retries_per_step": 0}`, "/max_retries_per_step"},
		"an unknown outcome":              {"report", `{"outcome": "success"}`, "/outcome"},
		"blocked by nothing":              {"report", `{"outcome": "blocked"}`, "/reason"},
		"blocked by white space":          {"report", `{"outcome": "blocked", "reason": " "}`, "/reason"},
		"a readiness above all":           {"report", `{"readiness": 101}`, "/readiness"},
		"a readiness below nothing":       {"report", `{"readiness": -1}`, "/readiness"},
		"a readiness in words":            {"report", `{"readiness": "95"}`, "/readiness"},
		"findings as one text":            {"report", `{"items": "one"}`, "/items"},
		"a priority list of numbers":      {"report", `{"state": {"priority": [1]}}`, "/state/priority/0"},
		"a message as text":               {"report", `{"messages": ["hello"]}`, "/messages/0"},
		"a command as text":               {"report", `{"commands": ["ls"]}`, "/commands/0"},
		"a command without a program":     {"report", `{"commands": [{"argv": []}]}`, "/commands/0/argv"},
		"to go on with nothing":           {"report", `{"outcome": "continue"}`, "/commands"},
		"no change in words":              {"report", `{"no_change": "yes"}`, "/no_change"},
		"an event without a number":       {"events", without(eventSample, "seq"), "/seq"},
		"an event before the first":       {"events", setting(eventSample, "seq", `0`), "/seq"},
		"an event at no time":             {"events", setting(eventSample, "at", `"now"`), "/at"},
		"a phase with an underscore":      {"events", setting(eventSample, "phase", `"kill_switch"`), "/phase"},
		"an unknown kind":                 {"events", setting(eventSample, "kind", `"log"`), "/kind"},
		"a text that is an object":        {"events", setting(eventSample, "text", `{}`), "/text"},
		"a definition that is a list":     {"config", "[]", ""},
		"a definition without a name":     {"config", configJSON(t, with(configA, "name", "")), "/name"},
		"a placeholder for a tier":        {"config", configJSON(t, with(configA, "tier", ` "<fill: tier>"`)), "/tier"},
		"a goal of quoted white space":    {"config", configJSON(t, with(configA, "goal", ` " "`)), "/goal"},
		"an empty scope":                  {"config", configJSON(t, with(configA, "scope", " []")), "/scope"},
		"the whole tree":                  {"config", configJSON(t, with(configA, "scope", ` ["src/**", "**/*"]`)), "/scope"},
		"the whole tree alone":            {"config", configJSON(t, with(configA, "scope", ` "*"`)), "/scope"},
		"a scope outside of the tree":     {"config", configJSON(t, with(configA, "scope", ` ["src/../../x"]`)), "/scope"},
		"an exclusion":                    {"config", configJSON(t, with(configA, "scope", ` ["!src"]`)), "/scope"},
		"the interactive mode":            {"config", configJSON(t, with(configA, "permission_mode", " default")), "/permission_mode"},
		"no gate at L2":                   {"config", configJSON(t, with(configB, "verify", "")), "/verify"},
		"a gate of white space at L2":     {"config", configJSON(t, with(configB, "verify", ` " "`)), "/verify"},
		"no guard at L2":                  {"config", configJSON(t, with(configB, "guard", "")), "/guard"},
		"no copy at L2":                   {"config", configJSON(t, with(configB, "worktree", " false")), "/worktree"},
		"a copy at L2 in another word":    {"config", configJSON(t, with(configB, "worktree", ` "yes"`)), "/worktree"},
		"no sandbox at L3":                {"config", configJSON(t, with(with(configB, "tier", " L3"), "sandbox", " none")), "/sandbox"},
		"a budget in scientific notation": {"config", configJSON(t, with(configA, "budget_tokens", ` "2e5"`)), "/budget_tokens"},
		"a budget with underscores":       {"config", configJSON(t, with(configA, "budget_tokens", ` "200_000"`)), "/budget_tokens"},
		"a definition's budget of zero":   {"config", configJSON(t, with(configA, "budget_tokens", " 0")), "/budget_tokens"},
		"a count below one":               {"config", configJSON(t, with(configA, "max_items", " -1")), "/max_items"},
		"a duration without a unit":       {"config", configJSON(t, with(configA, "max_step_timeout", " 600")), "/max_step_timeout"},
		"a duration in other words":       {"config", configJSON(t, with(configA, "max_wall_clock", " 5 minutes")), "/max_wall_clock"},
		"a policy of the other key":       {"config", configJSON(t, with(configA, "on_failure", " log_and_skip")), "/on_failure"},
		"an unknown sandbox":              {"config", configJSON(t, with(configA, "sandbox", " docker")), "/sandbox"},
		"an unknown protocol":             {"config", configJSON(t, with(configA, "protocol", " spin")), "/protocol"},
		"a variable with its value":       {"config", configJSON(t, with(configA, "env", " [CI=1]")), "/env"},
		"nested keys for a text":          {"config", configJSON(t, with(configA, "model", "\n  a: b")), "/model"},
		"a key that is not honoured":      {"config", configJSON(t, with(configA, "provider", " bedrock")), "/provider"},
		"another value than the default":  {"config", configJSON(t, with(configA, "include_dirty", " true")), "/include_dirty"},
	} {
		t.Run(name, func(t *testing.T) {
			err := compiled(t, c.schema).Validate(decoded(t, c.text))
			if err == nil {
				t.Fatalf("%s is valid, want it refused at %q", c.text, c.want)
			}
			got := places(err)
			elsewhere := func(at string) bool { return at != c.want && !strings.HasPrefix(at, c.want+"/") }
			if len(got) == 0 || slices.ContainsFunc(got, elsewhere) {
				t.Errorf("refused at %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

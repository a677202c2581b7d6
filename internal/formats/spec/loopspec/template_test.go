package loopspec

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// task is one that every template can be filled with.
func task() Task {
	return Task{
		Goal: "It is better.", AgentID: "fixer", Test: "go test ./...", TypeCheck: "tsc --noEmit", Lint: "golangci-lint run", Coverage: "./coverage.sh",
		Source: "curl -s http://127.0.0.1/feed",
	}
}

func fill(t *testing.T, id string, task Task) Spec {
	t.Helper()
	s, err := FromTemplate(id, task)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shapeOf is what the format's table of templates says of a spec.
func shapeOf(s Spec) string {
	var gates []string
	for _, g := range s.Gates {
		gates = append(gates, fmt.Sprintf("%s %s", g.Name, g.Kind))
	}
	return strings.Join([]string{
		string(s.LoopType) + ", " + string(s.Trigger.Type), strings.Join(gates, ", "), strings.Join(s.Guardrails, "; "), s.StateSource, s.GiveUp, s.HumanGate, string(s.Role),
	}, "\n")
}

// worker is the rest of the shape of a template that repairs, with what it senses.
func worker(source string) string {
	return "edits limited to /src and /tests; no force-push; no deploy\n" + source + "\nsame test 3×\nopen a PR, do not merge\nworker"
}

func TestTheTemplatesOfTheFormat(t *testing.T) {
	for id, want := range map[string]string{
		"": "deterministic, manual\ngoal_met reviewer\nno destructive actions; prepare output, do not commit\ndiff\nsame gate 3×\n" +
			"hand the result to a human\nstandalone",
		"keep-tests-green": "deterministic, manual\ntests_pass command, typecheck command\nedits limited to /src and /tests; no force-push; no deploy\ntest output\n" +
			"same test 3×\nopen a PR, do not merge\nworker",
		"research-monitor": "nondeterministic, schedule\nfindings_reviewed reviewer\nno destructive actions; digest only, no outside notification\n" +
			"`curl -s http://127.0.0.1/feed`\n3 iterations without new findings → pause and report\nhand a digest to a human\nmonitor",
		"coverage-ratchet": "deterministic, manual\ntests_pass command, coverage command, coverage_rises invariant\n" + worker("test output"),
		"lint-debt":        "deterministic, manual\ntests_pass command, lint_findings command, fewer_lint_findings invariant\n" + worker("`golangci-lint run`"),
		"type-check-debt":  "deterministic, manual\ntests_pass command, type_errors command, fewer_type_errors invariant\n" + worker("`tsc --noEmit`"),
	} {
		s := fill(t, id, task())
		if diff := cmp.Diff(want, shapeOf(s)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", id, diff)
		}
		if s.ErrorPolicy != "retry once w/ backoff, then pause + log" || s.Budget != (Budget{8, 400_000, 2_700_000, 0}) || s.Concurrency != Sequential {
			t.Errorf("%q: %+v", id, s)
		}
	}
	plain := task()
	plain.TypeCheck, plain.Source = "", ""
	if s := fill(t, "keep-tests-green", plain); len(s.Gates) != 1 || s.Gates[0].Check != "`go test ./...`" {
		t.Errorf("without a type check its gates are %+v", s.Gates)
	}
	if s := fill(t, "research-monitor", plain); s.StateSource != "memory" {
		t.Errorf("without a source it senses %s", s.StateSource)
	}
	plain.Paths = []string{"/pkg"}
	if s := fill(t, "keep-tests-green", plain); s.Guardrails[0] != "edits limited to /pkg" {
		t.Errorf("guardrails %q", s.Guardrails)
	}
	plain.Paths = []string{"/a", "/b", "/c"}
	if s := fill(t, "keep-tests-green", plain); s.Guardrails[0] != "edits limited to /a, /b and /c" {
		t.Errorf("guardrails %q", s.Guardrails)
	}
	plain.Paths = []string{"/pkg", "/cmd"}
	if s := fill(t, "keep-tests-green", plain); s.Guardrails[0] != "edits limited to /pkg and /cmd" {
		t.Errorf("guardrails %q", s.Guardrails)
	}
}

func TestEachTemplateMakesASpecThatIsNotRefused(t *testing.T) {
	for _, template := range Templates {
		s := fill(t, template.ID, task())
		findings := Validate(s, programs("go", "tsc", "golangci-lint", "./coverage.sh"))
		if Refused(findings) {
			t.Errorf("%s: %v", template.ID, findings)
		}
		doc, wrong := Decode(Encode(s))
		if len(wrong) > 0 || !cmp.Equal(doc.Spec, s) {
			t.Errorf("%s: %v\n%s", template.ID, wrong, cmp.Diff(s, doc.Spec))
		}
		if template.What == "" || s.ID != "" || s.AgentID != "fixer" || s.Goal != "It is better." {
			t.Errorf("%s: %q makes %+v", template.ID, template.What, s)
		}
		for _, g := range s.Gates {
			if g.Kind != loop.GateReviewer && (!strings.HasPrefix(g.Check, "`") || strings.Count(g.Check, "`") != 2) {
				t.Errorf("%s: the check of %s is %s, want it in backticks", template.ID, g.Name, g.Check)
			}
		}
	}
}

func TestTheInvariantsOfTheRatchets(t *testing.T) {
	const share, base = `float(trim(last(split(trim(output("coverage")), "\n"))))`, `float(trim(last(split(trim(base.output("coverage")), "\n"))))`
	for id, want := range map[string]string{
		"coverage-ratchet": share + " > " + base + " || " + share + " == 100",
		"lint-debt":        `int(trim(output("lint_findings"))) < int(trim(base.output("lint_findings"))) || int(trim(output("lint_findings"))) == 0`,
		"type-check-debt":  `int(trim(output("type_errors"))) < int(trim(base.output("type_errors"))) || int(trim(output("type_errors"))) == 0`,
	} {
		own := task()
		own.Goal = ""
		s := fill(t, id, own)
		if got := GateText(s.Gates[2].Check); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
		if tests := fill(t, "keep-tests-green", own); s.Goal == tests.Goal || s.Goal == "" {
			t.Errorf("%s has the goal %q, want one of its own", id, s.Goal)
		}
	}
}

func TestATemplateSaysWhatItNeeds(t *testing.T) {
	for _, template := range Templates {
		empty := Task{Goal: "x", AgentID: "fixer"}
		if _, err := FromTemplate(template.ID, empty); (err != nil) != (len(template.Needs) > 0) {
			t.Errorf("%s needs %q, and without any command: %v", template.ID, template.Needs, err)
		}
	}
	for want, c := range map[string]struct {
		id   string
		task Task
	}{
		"the template lint-debt needs a lint command": {"lint-debt", Task{AgentID: "a", Goal: "x", Test: "go test"}},
		"the test command has a backtick":             {"keep-tests-green", Task{AgentID: "a", Goal: "x", Test: "test `pwd`"}},
		"a spec needs an agent and a goal":            {"", Task{AgentID: "a"}},
		"there is no template 'keep-test-green'":      {"keep-test-green", task()},
	} {
		_, err := FromTemplate(c.id, c.task)
		fault, ok := errors.AsType[*loop.Fault](err)
		if !ok || !strings.Contains(err.Error(), want) || fault.Fix == "" {
			t.Errorf("%q: %v, want %s", c.id, err, want)
		}
	}
	_, err := FromTemplate("keep-test-green", task())
	if fault, _ := errors.AsType[*loop.Fault](err); !strings.Contains(fault.Fix, "did you mean keep-tests-green? there are: skeleton") || !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("the fix is %q", fault.Fix)
	}
	if s, err := FromTemplate("keep-tests-green", Task{AgentID: "a", Test: "go test"}); err != nil || s.Goal == "" {
		t.Errorf("a template with a goal of its own: %v, %+v", err, s)
	}
}

// TestTheCountOfADebtIsThatOfItsLines runs the gates of the two debts with programs that
// find things.
func TestTheCountOfADebtIsThatOfItsLines(t *testing.T) {
	for _, c := range []struct {
		command  string
		lint     string // what the lint gate prints; empty: it fails
		typeErrs string
	}{
		{"true", "0", "0"},
		{"echo a.go:1: bad; false", "1", "1"},
		{"printf 'a\\nb\\n\\nc\\n' >&2; exit 1", "3", "3"},
		{"printf '%s\\n' '%d 100% \\n'", "1", "1"},
		{"echo a; exit 2", "", "1"},
		{"echo crash; exit 3", "", ""},
		{"no-such-linter", "", ""},
	} {
		filled := task()
		filled.Lint, filled.TypeCheck = "sh -c "+quoted(c.command), "sh -c "+quoted(c.command)
		for id, want := range map[string]string{"lint-debt": c.lint, "type-check-debt": c.typeErrs} {
			s := fill(t, id, filled)
			i := slices.IndexFunc(s.Gates, func(g loop.Gate) bool {
				return strings.HasSuffix(g.Name, "_findings") || strings.HasSuffix(g.Name, "_errors")
			})
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", GateText(s.Gates[i].Check)).CombinedOutput()
			if got := strings.TrimSpace(string(out)); (err != nil) != (want == "") || want != "" && got != want {
				t.Errorf("%s of %q: %q %v, want %q", id, c.command, got, err, want)
			}
		}
	}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

package loopspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Task is what a template is filled with. Commands are lines for the shell without
// backticks; one that is empty is not known.
type Task struct {
	Goal    string // empty: the template's own, where it has one
	AgentID string
	Paths   []string // that may be changed; empty: /src and /tests

	Test      string // runs the tests
	TypeCheck string
	Lint      string
	Coverage  string // prints the covered share in percent, a number alone on its last line
	Source    string // prints what a monitor looks at; empty: memory
}

// Template makes specs of one shape.
type Template struct {
	ID    string
	What  string   // what its specs do
	Needs []string // the commands of a Task that it cannot do without

	fill func(Task) Spec
}

// Skeleton is the id of the template that is used if none is named.
const Skeleton = "skeleton"

// Templates are all of them.
var Templates = []Template{
	{ID: Skeleton, What: "a goal that a reviewer judges, ready to fill", fill: fillSkeleton},
	{ID: "keep-tests-green", What: "repairs until the project's tests pass", Needs: []string{needTest}, fill: fillTests},
	{ID: "research-monitor", What: "looks at a source again and again, and gathers findings", fill: fillResearch},
	{ID: "coverage-ratchet", What: "adds tests; the covered share rises each time", Needs: []string{needTest, needCoverage}, fill: fillCoverage},
	{ID: "lint-debt", What: "removes findings of the linter; their number falls each time", Needs: []string{needTest, needLint}, fill: fillLint},
	{ID: "type-check-debt", What: "removes errors of the type checker; their number falls each time", Needs: []string{needTest, needTypeCheck}, fill: fillTypes},
}

// What a template may need.
const (
	needTest      = "test command"
	needCoverage  = "coverage command"
	needLint      = "lint command"
	needTypeCheck = "type-check command"
)

// FromTemplate returns the spec of a template, without an id. The fault names the
// templates that there are, or what the task lacks.
func FromTemplate(id string, t Task) (Spec, error) {
	if id == "" {
		id = Skeleton
	}
	var ids []string
	for _, template := range Templates {
		if template.ID == id {
			return template.make(t)
		}
		ids = append(ids, template.ID)
	}
	return Spec{}, &loop.Fault{Exit: loop.ExitNotFound, What: "there is no template " + readiness.Quote(id), Fix: readiness.Suggest(id, ids), Err: loop.ErrNotFound}
}

func (t Template) make(task Task) (Spec, error) {
	commands := []struct{ what, line, flag string }{
		{needTest, task.Test, "test"},
		{needCoverage, task.Coverage, "coverage"},
		{needLint, task.Lint, "lint"},
		{needTypeCheck, task.TypeCheck, "typecheck"},
		{"source command", task.Source, "source"},
	}
	for _, c := range commands {
		if slices.Contains(t.Needs, c.what) && isBlank(c.line) {
			return Spec{}, &loop.Fault{
				Exit: loop.ExitUsage, What: "the template " + t.ID + " needs a " + c.what, Why: "none is known for this project", Fix: "say it with --" + c.flag + " COMMAND, or use the template " + Skeleton,
			}
		}
	}
	for _, c := range commands {
		if strings.Contains(c.line, "`") {
			return Spec{}, &loop.Fault{
				Exit: loop.ExitUsage, What: "the " + c.what + " has a backtick", Why: "gates have their commands in backticks", Fix: "write $(…) instead",
			}
		}
	}
	s := t.fill(task)
	if isBlank(task.AgentID) || isBlank(s.Goal) {
		return Spec{}, &loop.Fault{Exit: loop.ExitUsage, What: "a spec needs an agent and a goal", Fix: "say both"}
	}
	return s.WithDefaults(), nil
}

// Texts that several templates share.
const (
	noDestructiveActions = "no destructive actions"
	openPullRequest      = "open a PR, do not merge"
	sameTest             = "same test 3×"
	sameGate             = "same gate 3×"
)

func fillSkeleton(t Task) Spec {
	return Spec{
		AgentID: t.AgentID, Goal: t.Goal, LoopType: loop.Deterministic, Trigger: Trigger{Type: TriggerManual},
		StateSource: "diff", GiveUp: sameGate, Role: RoleStandalone,
		Gates:      []loop.Gate{{Name: "goal_met", Kind: loop.GateReviewer, Check: "The goal is met: " + t.Goal}},
		Guardrails: []string{noDestructiveActions, "prepare output, do not commit"},
		HumanGate:  "hand the result to a human",
	}
}

func fillTests(t Task) Spec {
	s := Spec{
		AgentID: t.AgentID, Goal: orText(t.Goal, "The project's tests pass."), LoopType: loop.Deterministic, Trigger: Trigger{Type: TriggerManual},
		StateSource: "test output", GiveUp: sameTest, Role: RoleWorker,
		Gates:      []loop.Gate{commandGate("tests_pass", t.Test)},
		Guardrails: []string{EditsLimited(t.Paths), "no force-push", "no deploy"},
		HumanGate:  openPullRequest,
	}
	if !isBlank(t.TypeCheck) {
		s.Gates = append(s.Gates, commandGate("typecheck", t.TypeCheck))
	}
	return s
}

func fillResearch(t Task) Spec {
	s := Spec{
		AgentID: t.AgentID, Goal: t.Goal, LoopType: loop.Nondeterministic, Trigger: Trigger{Type: TriggerSchedule},
		StateSource: "memory", GiveUp: "3 iterations without new findings → pause and report", Role: RoleMonitor,
		Gates: []loop.Gate{{
			Name: "findings_reviewed", Kind: loop.GateReviewer, Check: "Each finding is relevant to the goal, grounded in what was sensed, and not a duplicate of an earlier one.",
		}},
		Guardrails: []string{noDestructiveActions, "digest only, no outside notification"},
		HumanGate:  "hand a digest to a human",
	}
	if !isBlank(t.Source) {
		s.StateSource = "`" + strings.TrimSpace(t.Source) + "`"
	}
	return s
}

func fillCoverage(t Task) Spec {
	const share = `float(trim(last(split(trim(%soutput("coverage")), "\n"))))`
	s := fillTests(t)
	s.Goal = orText(t.Goal, "More of the code is covered by tests that would fail if it were wrong.")
	s.Gates = append(s.Gates[:1:1], commandGate("coverage", t.Coverage), loop.Gate{
		Name: "coverage_rises", Kind: loop.GateInvariant, Check: fmt.Sprintf("`%s > %s || %s == 100`", fmt.Sprintf(share, ""), fmt.Sprintf(share, "base."), fmt.Sprintf(share, "")),
	})
	return s
}

func fillLint(t Task) Spec {
	return fillDebt(t, "The linter finds less: the causes are mended, and nothing is switched off.", "lint_findings", t.Lint, 1)
}

func fillTypes(t Task) Spec {
	return fillDebt(t, "The type checker finds fewer errors: the types are right, and nothing is switched off.", "type_errors", t.TypeCheck, 2)
}

// countFindings is how a line begins that counts what another command prints.
const countFindings = "found=$("

// fillDebt makes a spec that is done when a command that prints one line for each
// finding prints fewer of them than on the base, or none. An exit status above most means that
// the command did not work, so that its lines do not count.
func fillDebt(t Task, goal, name, command string, most int) Spec {
	s := fillTests(t)
	s.Goal = orText(t.Goal, goal)
	count := fmt.Sprintf(countFindings+`%s 2>&1); [ $? -le %d ] || { printf '%%s\n' "$found"; exit 1; }; printf '%%s' "$found" | grep -c . || true`,
		strings.TrimSpace(command), most)
	s.Gates = append(s.Gates[:1:1], commandGate(name, count), loop.Gate{
		Name: "fewer_" + name, Kind: loop.GateInvariant,
		Check: fmt.Sprintf("`int(trim(output(%[1]q))) < int(trim(base.output(%[1]q))) || int(trim(output(%[1]q))) == 0`", name),
	})
	s.StateSource = "`" + strings.TrimSpace(command) + "`"
	return s
}

func commandGate(name, command string) loop.Gate {
	return loop.Gate{Name: name, Kind: loop.GateCommand, Check: "`" + strings.TrimSpace(command) + "`"}
}

// EditsLimited is the guardrail that allows changes of these paths; of none: /src and /tests.
func EditsLimited(paths []string) string {
	if len(paths) == 0 {
		paths = []string{"/src", "/tests"}
	}
	last := len(paths) - 1
	if last == 0 {
		return "edits limited to " + paths[0]
	}
	return "edits limited to " + strings.Join(paths[:last], ", ") + " and " + paths[last]
}

func orText(text, byDefault string) string {
	if isBlank(text) {
		return byDefault
	}
	return text
}

package loop_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/drawn"
)

// things lists what the table speaks about, in its order.
func things() []string {
	var all []string
	for _, t := range loop.Transitions {
		if !slices.Contains(all, t.Thing) {
			all = append(all, t.Thing)
		}
	}
	return all
}

// states lists the states of a thing in the order in which the table names
// them, without the empty one before the first.
func states(thing string) []string {
	var all []string
	for _, t := range loop.Transitions {
		for _, s := range []string{t.From, t.To} {
			if t.Thing == thing && s != "" && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func TestEveryStateIsReachedFromNothing(t *testing.T) {
	for _, thing := range things() {
		reached := map[string]bool{"": true}
		for range loop.Transitions { // a chain is at most as long as the table
			for _, tr := range loop.Transitions {
				if tr.Thing == thing && reached[tr.From] {
					reached[tr.To] = true
				}
			}
		}
		for _, s := range states(thing) {
			if !reached[s] {
				t.Errorf("no chain of transitions makes a %s %s", thing, s)
			}
		}
	}
}

func TestNothingReturnsToTheTimeBeforeItsFirstState(t *testing.T) {
	for _, tr := range loop.Transitions {
		if tr.To == "" {
			t.Errorf("%s %s changes to no state", tr.Thing, tr.From)
		}
	}
}

func TestTheTableNamesExactlyTheDeclaredStates(t *testing.T) {
	types := map[string]string{
		"run": "RunState", "step": "StepState", "effect": "EffectState", "approval": "ApprovalState",
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), slices.Sorted(slices.Values(things()))); diff != "" {
		t.Errorf("things (-want +got):\n%s", diff)
	}
	for thing, typ := range types {
		want := constants(t, "state.go", typ)
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(states(thing)))); diff != "" {
			t.Errorf("states of %s (-declared +in the table):\n%s", thing, diff)
		}
	}
}

// constants reads the values of all constants of a string type, sorted.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, decl := range parsed.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			if name, ok := value.Type.(*ast.Ident); !ok || name.Name != typ {
				continue
			}
			text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return values
}

func TestNoTransitionIsListedTwiceOrWithoutItsCause(t *testing.T) {
	seen := map[string]bool{}
	for _, tr := range loop.Transitions {
		if key := fmt.Sprint(tr.Thing, " ", tr.From, " → ", tr.To); seen[key] {
			t.Errorf("%s is listed twice", key)
		} else {
			seen[key] = true
		}
		if tr.When == "" {
			t.Errorf("%s %s → %s says no cause", tr.Thing, tr.From, tr.To)
		}
	}
}

func TestAnAnsweredApprovalAndAnEndedRunAreFinal(t *testing.T) {
	for _, tr := range loop.Transitions {
		final := tr.Thing == "approval" && tr.From != "" && tr.From != string(loop.ApprovalOpen) && tr.From != string(loop.ApprovalLanding) ||
			tr.Thing == "run" && tr.From == string(loop.RunEnded)
		if final {
			t.Errorf("%s %s may still become %s", tr.Thing, tr.From, tr.To)
		}
	}
}

func TestMayAndSourcesSayWhatTheTableSays(t *testing.T) {
	listed := map[[3]string]bool{}
	for _, tr := range loop.Transitions {
		listed[[3]string{tr.Thing, tr.From, tr.To}] = true
	}
	// States of one thing asked for another are among the draws.
	words := []string{"", "no such state"}
	for _, thing := range things() {
		words = append(words, states(thing)...)
	}
	rapid.Check(t, func(t *rapid.T) {
		thing := rapid.SampledFrom(append(things(), "", "loop")).Draw(t, "thing")
		from := rapid.SampledFrom(words).Draw(t, "from")
		to := rapid.SampledFrom(words).Draw(t, "to")
		want := listed[[3]string{thing, from, to}]
		if got := loop.MayChange(thing, from, to); got != want {
			t.Fatalf("May(%q, %q, %q) = %v, the table says %v", thing, from, to, got, want)
		}
		if got := slices.Contains(loop.SourceStates(thing, to), from); got != (want && from != "") {
			t.Fatalf("Sources(%q, %q) has %q: %v, the table says %v", thing, to, from, got, want)
		}
	})
}

func TestTheStatesDocumentIsDrawnFromTheTable(t *testing.T) {
	drawn.File(t, "../../../docs/dev/states.md", statesDocument())
}

func statesDocument() string {
	var b strings.Builder
	b.WriteString(`# States

<!-- Drawn from loop.Transitions by internal/rules/loop/states_test.go. Change the table, then run make generate -->

Every row is in one of these states and makes only these changes; the store refuses all others.
`)
	for _, thing := range things() {
		fmt.Fprintf(&b, "\n## %s\n\n```mermaid\nstateDiagram-v2\n", thing)
		var rows strings.Builder
		for _, tr := range loop.Transitions {
			if tr.Thing != thing {
				continue
			}
			from := tr.From
			if from == "" {
				from = "[*]"
			}
			fmt.Fprintf(&b, "    %s --> %s\n", from, tr.To)
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", orDash(tr.From), tr.To, tr.When)
		}
		for _, s := range final(thing) {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
		fmt.Fprintf(&b, "```\n\n| from | to | when |\n|---|---|---|\n%s", rows.String())
	}
	return b.String()
}

func orDash(state string) string {
	if state == "" {
		return "–"
	}
	return state
}

// final lists the states that nothing leaves.
func final(thing string) []string {
	return slices.DeleteFunc(states(thing), func(s string) bool {
		return slices.ContainsFunc(loop.Transitions, func(tr loop.Transition) bool {
			return tr.Thing == thing && tr.From == s && tr.To != s
		})
	})
}

func TestAPersonMayWriteAnythingOfAStepThatNobodyWorksOn(t *testing.T) {
	for _, from := range append(states("step"), "") {
		for _, to := range []loop.StepState{loop.StepOpen, loop.StepBlocked} {
			if from := loop.StepState(from); from != to && !loop.StepMayBecome(from, to) {
				t.Errorf("a step that is %q may not become %q, whatever a person writes", from, to)
			}
		}
	}
}

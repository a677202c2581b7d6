package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func ids(mutants []bug) []int {
	var all []int
	for _, m := range mutants {
		all = append(all, m.ID)
	}
	return all
}

// field is many mutants of two packages.
func field() []bug {
	var all []bug
	for i := range 400 {
		op := []string{opConstant, opConstant, opConstant, opDelete}[i%4]
		all = append(all, bug{ID: i + 1, Group: []string{"plan", "store"}[i/200], Op: op, Text: fmt.Sprint(i)})
	}
	return all
}

func TestASampleIsTheSameForTheSameSeed(t *testing.T) {
	one, two := sample(field(), named, 20, 7), sample(field(), named, 20, 7)
	if !slices.Equal(ids(one), ids(two)) {
		t.Errorf("two samples with one seed: %v and %v", ids(one), ids(two))
	}
	if other := sample(field(), named, 20, 8); slices.Equal(ids(one), ids(other)) {
		t.Error("another seed chooses the same")
	}
}

// edited is a field in which one function has other mutants than before, so that
// all behind it have other numbers and the operators other counts.
func edited(all []bug, function string, mutants ...bug) []bug {
	var now []bug
	for _, m := range all {
		if m.Func == function {
			now = append(now, mutants...)
			mutants = nil
			continue
		}
		now = append(now, m)
	}
	for i := range now {
		now[i].ID = i + 1
	}
	return now
}

// drawn are the keys of a sample.
func drawn(all []bug, in string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range sample(all, named, 20, 7) {
		if m.Group == in {
			keys[m.key()] = true
		}
	}
	return keys
}

func TestAChangeOfOneFunctionMovesNothingInOthers(t *testing.T) {
	all := field()
	for i := range all {
		all[i].Func = fmt.Sprint("f", i/10)
	}
	before := drawn(all, "store")
	for i := 20; i < 40; i++ {
		function := fmt.Sprint("f", i)
		removed := 0
		for _, m := range all {
			if m.Func == function && before[m.key()] {
				removed++
			}
		}
		fresh := []bug{
			{Group: "store", Func: function, Op: opDelete, Text: "x()", After: "(nothing)"},
			{Group: "store", Func: function, Op: opConstant, Text: "y := 1", After: "1+1"},
		}
		now := edited(all, function, fresh...)
		if plan := drawn(now, "plan"); !maps.Equal(plan, drawn(all, "plan")) {
			t.Errorf("%s is of store, and its change moves the sample of plan", function)
		}
		added, gone := 0, 0
		after := drawn(now, "store")
		for _, m := range now {
			if m.Func != function && after[m.key()] && !before[m.key()] {
				added++
			}
			if m.Func != function && before[m.key()] && !after[m.key()] {
				gone++
			}
		}
		if added > removed || gone > len(fresh) {
			t.Errorf("%s: %d of other functions are new in the place of %d, and %d made place for %d", function, added, removed, gone, len(fresh))
		}
	}
}

func TestAFunctionThatMovesToAnotherFileKeepsItsPartOfTheSample(t *testing.T) {
	all := field()
	before := sample(all, named, 20, 7)
	for i := range all {
		all[i].File, all[i].Line = "internal/record/store/other.go", all[i].Line+100
	}
	if after := sample(all, named, 20, 7); !slices.Equal(ids(before), ids(after)) {
		t.Errorf("the sample is %v after the move, was %v", ids(after), ids(before))
	}
}

func TestASampleOfOnePackageIsThatPackagesPartOfTheWhole(t *testing.T) {
	whole := slices.DeleteFunc(sample(field(), named, 20, 7), func(m bug) bool { return m.Group != "store" })
	if alone := sample(field(), []string{"store"}, 20, 7); !slices.Equal(ids(whole), ids(alone)) {
		t.Errorf("alone %v, of the whole %v", ids(alone), ids(whole))
	}
}

func TestASampleHasSoManyOfEachPackageAndEveryOperator(t *testing.T) {
	count := map[string]int{}
	for _, m := range sample(field(), named, 20, 1) {
		count[m.Group]++
		count[m.Op]++
	}
	for _, what := range []string{"plan", "store", opDelete, opConstant} {
		if count[what] != 20 {
			t.Errorf("%d of %s, want 20", count[what], what)
		}
	}
}

func TestWithoutANumberEveryMutantIsChosenOnce(t *testing.T) {
	got := ids(sample(field(), named, 0, 1))
	if slices.Sort(got); !slices.Equal(got, ids(field())) {
		t.Errorf("%d are chosen, want each of 400 once", len(got))
	}
}

func TestAnArgumentHoldsWhereverItsLineMoves(t *testing.T) {
	const list = "# words\n\ninternal/rules/plan/a.go f\nconstant\nx := 1\n1+1\nNobody reads x after this.\n"
	arguments, err := readArguments(list)
	if err != nil {
		t.Fatal(err)
	}
	mutants := []bug{
		{ID: 1, File: "internal/rules/plan/a.go", Line: 9, Func: "f", Op: opConstant, Text: "x := 1", After: "1+1"},
		{ID: 2, File: "internal/rules/plan/a.go", Line: 9, Func: "f", Op: opConstant, Text: "x := 1", After: "1-1"},
		{ID: 3, File: "internal/rules/plan/a.go", Line: 9, Func: "g", Op: opConstant, Text: "x := 1", After: "1+1"},
	}
	for _, line := range []int{9, 90} {
		mutants[0].Line = line
		reasons, err := argue(arguments, mutants)
		if err != nil || len(reasons) != 1 || reasons[1] != "Nobody reads x after this." {
			t.Errorf("line %d: reasons %v, %v; want one for the first", line, reasons, err)
		}
	}
}

func TestAnArgumentThatMeetsNothingIsAnError(t *testing.T) {
	arguments := []argument{{place: "internal/rules/plan/a.go f", op: opConstant, text: "x := 1", after: "1+1", line: 3}}
	_, err := argue(arguments, []bug{{ID: 1, File: "internal/rules/plan/a.go", Func: "f", Op: opConstant, Text: "x := 2", After: "1+1"}})
	if err == nil || !strings.Contains(err.Error(), "argued.txt:3: no mutant is") {
		t.Errorf("argue = %v, want an error that names the entry", err)
	}
}

func TestAnArgumentForTheSecondOfTwoThatAreAlikeIsNotOneForTheFirst(t *testing.T) {
	alike := bug{ID: 1, File: "internal/rules/plan/a.go", Func: "f", Op: opConstant, Text: `return "", ""`, After: `"mutant"`}
	second := alike
	second.ID, second.Nth = 2, 1
	arguments, err := readArguments(second.entry() + "Nobody reads the second.\n")
	if err != nil {
		t.Fatal(err)
	}
	if reasons, err := argue(arguments, []bug{alike, second}); err != nil || reasons[1] != "" || reasons[2] == "" {
		t.Errorf("argue = %v, %v, want a reason for the second only", reasons, err)
	}
}

func TestAnArgumentNeedsAReason(t *testing.T) {
	for name, list := range map[string]string{
		"no reason":    "internal/rules/plan/a.go f\nconstant\nx := 1\n1+1\n",
		"a word or so": "internal/rules/plan/a.go f\nconstant\nx := 1\n1+1\nequivalent\n",
	} {
		if _, err := readArguments(list); err == nil || !strings.Contains(err.Error(), "the reason in a sentence") {
			t.Errorf("%s: readArguments = %v, want an error", name, err)
		}
	}
}

func TestTheEntryThatIsPrintedForASurvivorMeetsIt(t *testing.T) {
	m := bug{ID: 4, File: "internal/rules/plan/a.go", Func: "(*T).f", Op: opDelete, Text: "x()", After: "(nothing)"}
	arguments, err := readArguments(m.entry() + "The call changes nothing here.\n")
	if err != nil {
		t.Fatal(err)
	}
	if reasons, err := argue(arguments, []bug{m}); err != nil || reasons[4] == "" {
		t.Errorf("argue = %v, %v", reasons, err)
	}
}

func TestAPackageIsPoorBelowNinetyPercent(t *testing.T) {
	verdicts := func(states ...string) []verdict {
		var all []verdict
		for i, state := range states {
			all = append(all, verdict{bug: bug{ID: i, Group: "plan"}, State: state})
		}
		return all
	}
	nine := slices.Repeat([]string{caught}, 9)
	cases := map[string]struct {
		states []string
		poor   bool
	}{
		"nine of ten":                  {append(slices.Clone(nine), survived), false},
		"one that nothing reaches":     {append(slices.Clone(nine), survived, unreached), true},
		"one that took too long":       {append(slices.Clone(nine), survived, cut), true},
		"equivalent ones do not count": {append(slices.Clone(nine), survived, equivalent, equivalent), false},
		"a hung one is not caught":     {append(slices.Clone(nine), survived, hung), true},
	}
	for name, c := range cases {
		var out strings.Builder
		if poor := report(&out, []string{"plan"}, verdicts(c.states...)); (poor != nil) != c.poor {
			t.Errorf("%s: poor = %v, want %v\n%s", name, poor, c.poor, out.String())
		}
	}
}

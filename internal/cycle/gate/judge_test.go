package gate_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestAnExitStatusIsBelievedUnlessTheOutputContradictsIt(t *testing.T) {
	go3, none := tests("go", 3, 0, 1), tests("go", 0, 0, 0)
	for name, c := range map[string]struct {
		tests, base *loop.TestCounts
		exit        int
		pass        bool
		note        string
	}{
		"tests reported":                      {&go3, nil, 0, true, ""},
		"as many as on the base":              {&go3, new(tests("go", 2, 1, 0)), 0, true, ""},
		"more than on the base":               {&go3, new(tests("go", 1, 0, 9)), 0, true, ""},
		"the base had none":                   {&go3, &none, 0, true, ""},
		"fewer than on the base":              {&go3, new(tests("go", 4, 0, 0)), 0, false, "fewer tests reported than on the base: 3, not 4"},
		"what failed on the base is gone":     {&go3, new(tests("go", 3, 1, 0)), 0, false, "fewer tests reported than on the base: 3, not 4"},
		"one more is skipped":                 {new(tests("go", 2, 0, 2)), &go3, 0, false, "fewer tests reported than on the base: 2, not 3"},
		"none ran":                            {&none, nil, 0, false, "no tests reported"},
		"none ran, on the base neither":       {&none, &none, 0, false, "no tests reported"},
		"all were skipped":                    {new(tests("go", 0, 0, 2)), nil, 0, false, "no tests reported (2 skipped)"},
		"one failed all the same":             {new(tests("go", 2, 1, 0)), nil, 0, false, "its output says that 1 of 3 tests failed, in spite of exit status 0"},
		"nothing was ever counted":            {nil, nil, 0, true, ""},
		"nothing is counted any more":         {nil, &go3, 0, false, "fewer tests reported than on the base: none could be counted, not 3"},
		"nothing to count, none on the base":  {nil, &none, 0, true, ""},
		"it failed by its exit status":        {&go3, nil, 1, false, ""},
		"it failed, and fewer ran":            {&go3, new(tests("go", 9, 0, 0)), 1, false, ""},
		"another runner with as many":         {new(tests("vitest", 3, 0, 0)), new(tests("mocha", 3, 0, 0)), 0, true, ""},
		"another runner with fewer":           {new(tests("vitest", 2, 0, 0)), new(tests("mocha", 3, 0, 0)), 0, false, "fewer tests reported than on the base: 2, not 3"},
		"one of two runners is gone, counted": {new(tests("go", 3, 0, 0)), new(tests("go+node", 5, 0, 0)), 0, false, "fewer tests reported than on the base: 3, not 5"},
	} {
		t.Run(name, func(t *testing.T) {
			in := loop.GateResult{Name: "verify", Exit: c.exit, Pass: c.exit == 0, Tests: c.tests}
			want := in
			want.Pass, want.Note, want.Base = c.pass, c.note, c.base
			if diff := cmp.Diff(want, gate.Judge(in, c.base)); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountsNeverMakeAGatePass(t *testing.T) {
	counts := rapid.Custom(func(t *rapid.T) *loop.TestCounts {
		if rapid.Bool().Draw(t, "nothing") {
			return nil
		}
		n := rapid.IntRange(0, 3)
		return new(tests("go", n.Draw(t, "passed"), n.Draw(t, "failed"), n.Draw(t, "skipped")))
	})
	rapid.Check(t, func(t *rapid.T) {
		in := loop.GateResult{Pass: rapid.Bool().Draw(t, "pass"), Tests: counts.Draw(t, "tests")}
		base := counts.Draw(t, "base")
		got := gate.Judge(in, base)
		if got.Pass && !in.Pass {
			t.Fatalf("%+v became a pass", in)
		}
		if got.Pass && got.Tests != nil && (got.Tests.Failed > 0 || got.Tests.Passed == 0) {
			t.Fatalf("%+v passed", *got.Tests)
		}
		if got.Pass && base != nil && base.Ran() > 0 && (got.Tests == nil || got.Tests.Ran() < base.Ran()) {
			t.Fatalf("%+v passed against %+v", got.Tests, *base)
		}
		if in.Pass && !got.Pass && got.Note == "" {
			t.Fatal("it failed and does not say why")
		}
		if diff := cmp.Diff(got, gate.Judge(got, base)); diff != "" {
			t.Fatalf("judged twice (-once +twice):\n%s", diff)
		}
	})
}

package main

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

// verdict is what became of a mutant.
type verdict struct {
	bug
	State   string
	By      string        // the test that caught it
	Reached []string      // the tests that reach it
	Ran     int           // how many of them were run
	Took    time.Duration // of all runs
	Used    time.Duration // by their processors
	Reason  string        // why it is equivalent
	hangs   int           // how often tests were given up
}

// mostHangs is how often tests of a mutant may hang before it is given up. A test that
// hangs catches nothing: whoever breaks the code sees no failure that says what is wrong.
const mostHangs = 3

// The states of a verdict.
const (
	caught     = "caught"
	hung       = "made tests hang" // and none that ended failed
	unreached  = "not reached"     // by no test in a way that makes a difference
	survived   = "survived"
	cut        = "not caught in time"
	equivalent = "equivalent"
)

// missed reports whether the mutant counts as not caught.
func (v verdict) missed() bool {
	return v.State == survived || v.State == unreached || v.State == cut || v.State == hung
}

// hunter runs the tests that reach a mutant.
type hunter struct {
	*runner
	suites []*suite
	limit  time.Duration    // of processor time for one mutant; 0 is none
	alike  map[string][]int // the mutants of each function, by ID
	tests  []int            // how many tests reach each mutant, by ID
}

func newHunter(r *runner, suites []*suite, all []bug, limit time.Duration) *hunter {
	h := &hunter{runner: r, suites: suites, limit: limit, alike: map[string][]int{}, tests: make([]int, mutant.Capacity)}
	for _, m := range all {
		h.alike[m.function()] = append(h.alike[m.function()], m.ID)
		for _, s := range suites {
			for _, t := range s.Tests {
				if t.reaches(m.ID) {
					h.tests[m.ID]++
				}
			}
		}
	}
	return h
}

// function names the function that the mutant is in; outside of one, the file.
func (m bug) function() string { return m.File + " " + m.Func }

// batch is tests of one suite that share a process.
type batch struct {
	suite  *suite
	names  []string
	normal time.Duration // of the process, without a mutant
}

// hunt returns the verdict on one mutant.
func (h *hunter) hunt(ctx context.Context, m bug) (verdict, error) {
	v := verdict{bug: m}
	batches := h.batches(m)
	for _, b := range batches {
		for _, name := range b.names {
			v.Reached = append(v.Reached, b.suite.Name+"."+name)
		}
	}
	if len(batches) == 0 {
		v.State = unreached
		return v, nil
	}
	for len(batches) > 0 {
		if v.hangs == mostHangs {
			break
		}
		if h.limit > 0 && v.Used > h.limit {
			v.State = cut
			return v, nil
		}
		b := batches[0]
		o, err := h.start(ctx, b.suite.binary, mutant.LimitOf(m.ID), patience(b.normal),
			"-test.v", "-test.failfast", "-test.run", "^("+strings.Join(b.names, "|")+")$")
		if err != nil {
			return v, err
		}
		v.Took, v.Used = v.Took+o.took, v.Used+o.used
		v.Ran += len(b.names)
		if o.passed {
			batches = batches[1:]
			continue
		}
		if o.hung && !failed.MatchString(o.said) {
			v.hangs++
			if batches[0].names = o.unfinished(b.names); len(batches[0].names) == 0 {
				batches = batches[1:]
			}
			continue
		}
		// A test that fails without the mutant too says nothing about it.
		by := o.culprit()
		if i := slices.Index(b.names, by); i >= 0 {
			again, err := h.start(ctx, b.suite.binary, mutant.LimitOf(0), patience(b.normal), "-test.run", "^"+by+"$")
			if err != nil {
				return v, err
			}
			if !again.passed {
				if batches[0].names = slices.Delete(slices.Clone(b.names), i, i+1); len(batches[0].names) == 0 {
					batches = batches[1:]
				}
				continue
			}
		}
		v.State, v.By = caught, b.suite.Name+"."+by
		return v, nil
	}
	if v.State = survived; v.hangs > 0 {
		v.State = hung
	}
	return v, nil
}

// patience is how long tests may take before they count as hung, on a machine
// that has become much slower since they were measured.
func patience(normal time.Duration) time.Duration { return 20*time.Second + 6*normal }

// batches are the tests that reach the mutant, what is cheap first. Those of its
// own package come earlier, because they catch most. Behind the quick tests come
// those that go where few others go in the mutant's function: they are made for
// what is special there, while the others only pass through.
func (h *hunter) batches(m bug) []batch {
	var all []batch
	weight := func(b batch) time.Duration {
		if path.Dir(m.File) == "internal/"+b.suite.Name {
			return b.normal / 8
		}
		return b.normal
	}
	for _, s := range h.suites {
		var tests []test
		for _, t := range s.Tests {
			if t.Broken == "" && t.reaches(m.ID) {
				tests = append(tests, t)
			}
		}
		slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.Took, b.Took) })
		for most := s.Start + 2*time.Second; len(tests) > 0; most = min(4*most, time.Minute) {
			b := batch{suite: s, normal: s.Start}
			for len(tests) > 0 && (b.names == nil || b.normal+tests[0].Took <= most) {
				b.names, b.normal = append(b.names, tests[0].Name), b.normal+tests[0].Took
				tests = tests[1:]
			}
			if all = append(all, b); most == s.Start+2*time.Second {
				h.rareFirst(m, tests)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b batch) int { return cmp.Compare(weight(a), weight(b)) })
	return all
}

// rareFirst orders tests by how rare what they reach in the mutant's function is,
// for the time that they take.
func (h *hunter) rareFirst(m bug, tests []test) {
	worth := map[string]float64{}
	for _, t := range tests {
		for _, id := range h.alike[m.function()] {
			if t.reaches(id) {
				worth[t.Name] += 1 / float64(h.tests[id])
			}
		}
		worth[t.Name] /= (t.Took + 500*time.Millisecond).Seconds()
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(worth[b.Name], worth[a.Name]) })
}

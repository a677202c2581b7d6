package main

import (
	"cmp"
	"context"
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
	Reason  string        // why it is equivalent
}

// The states of a verdict.
const (
	caught     = "caught"
	hung       = "caught (hung)"
	unreached  = "not reached"
	survived   = "survived"
	cut        = "not caught in time"
	equivalent = "equivalent"
)

// missed reports whether the mutant counts as not caught.
func (v verdict) missed() bool {
	return v.State == survived || v.State == unreached || v.State == cut
}

// hunter runs the tests that reach a mutant.
type hunter struct {
	*runner
	suites []*suite
	limit  time.Duration // of test time for one mutant; 0 is none
}

// candidate is a test that reaches the mutant.
type candidate struct {
	suite *suite
	test  test
	own   bool // it is a test of the mutant's own package
}

// band is how long a test takes, roughly: those of one band share a process.
func (c candidate) band() int {
	for i, most := range []time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second, 15 * time.Second} {
		if c.test.Took <= most {
			return i
		}
	}
	return 9
}

// hunt returns the verdict on one mutant.
func (h *hunter) hunt(ctx context.Context, m bug) (verdict, error) {
	v := verdict{bug: m}
	candidates := h.candidates(m)
	for _, c := range candidates {
		v.Reached = append(v.Reached, c.suite.Name+"."+c.test.Name)
	}
	if len(candidates) == 0 {
		v.State = unreached
		return v, nil
	}
	for len(candidates) > 0 {
		if h.limit > 0 && v.Took > h.limit {
			v.State = cut
			return v, nil
		}
		// The next process: neighbours of one binary and one band.
		n, normal := 0, time.Duration(0)
		for ; n < len(candidates) && candidates[n].suite == candidates[0].suite && candidates[n].band() == candidates[0].band(); n++ {
			if normal += candidates[n].test.Took; normal > 20*time.Second {
				n++
				break
			}
		}
		batch := candidates[:n]
		candidates = candidates[n:]
		o, err := h.try(ctx, m, batch, normal)
		if err != nil {
			return v, err
		}
		v.Took += o.took
		v.Ran += n
		if o.passed {
			continue
		}
		// A test that fails without the mutant too says nothing about it.
		by := o.culprit()
		if i := slices.IndexFunc(batch, func(c candidate) bool { return c.test.Name == by }); i >= 0 {
			again, err := h.start(ctx, batch[i].suite.binary, mutant.LimitOf(0), patience(batch[i].test.Took), "-test.run", "^"+by+"$")
			if err != nil {
				return v, err
			}
			if !again.passed {
				candidates = append(slices.Delete(slices.Clone(batch), i, i+1), candidates...)
				continue
			}
		}
		v.State, v.By = caught, batch[0].suite.Name+"."+by
		if o.hung {
			v.State = hung
		}
		return v, nil
	}
	v.State = survived
	return v, nil
}

// patience is how long tests may take before they count as hung, on a machine
// that has become much slower since they were measured.
func patience(normal time.Duration) time.Duration { return 20*time.Second + 6*normal }

func (h *hunter) try(ctx context.Context, m bug, batch []candidate, normal time.Duration) (outcome, error) {
	var names []string
	for _, c := range batch {
		names = append(names, c.test.Name)
	}
	return h.start(ctx, batch[0].suite.binary, mutant.LimitOf(m.ID), patience(normal),
		"-test.v", "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
}

// candidates are the tests that reach the mutant: the fast ones first, of its
// own package before others.
func (h *hunter) candidates(m bug) []candidate {
	var all []candidate
	for _, s := range h.suites {
		own := strings.HasPrefix(m.File, "internal/"+s.Name+"/") && !strings.Contains(strings.TrimPrefix(m.File, "internal/"+s.Name+"/"), "/")
		for _, t := range s.Tests {
			if t.Broken == "" && t.reaches(m.ID) {
				all = append(all, candidate{s, t, own})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.own != b.own && a.band() < 3 && b.band() < 3 {
			if a.own {
				return -1
			}
			return 1
		}
		return cmp.Or(a.band()-b.band(), strings.Compare(a.suite.Name, b.suite.Name), cmp.Compare(a.test.Took, b.test.Took))
	})
	return all
}

package runenv

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestTheCopyOfTheGuardIsMadeWhileVerifyRunsAndIsAnother(t *testing.T) {
	for what, more := range map[string]bool{"it passes": true, "it fails": false} {
		s := newEnv(t, loop.Definition{Verify: "true", Guard: "test -e a.txt", Sandbox: "full"}, map[string]string{"a.txt": "one\n"})
		places := map[string]bool{}
		err := s.Judge(t.Context(), s.head(t), false, func(g Gate, place func() (Place, error)) (bool, error) {
			at, err := place()
			if err != nil {
				return false, err
			}
			places[at.files] = true
			for wait := 0; g.Check().Name == "verify" && len(s.trees(t)) < 2; wait++ {
				if wait == 3000 {
					t.Fatalf("%s: only %v while verify runs", what, s.trees(t))
				}
				time.Sleep(10 * time.Millisecond)
			}
			return more, nil
		})
		if err != nil || more && len(places) != 2 {
			t.Errorf("%s: the gates worked in %v, %v", what, places, err)
		}
		if left := s.trees(t); len(left) > 0 {
			t.Errorf("%s: copies stay behind: %v", what, left)
		}
	}
}

func TestAThirdGateGetsACleanCopyLikeTheOthers(t *testing.T) {
	for _, tier := range []string{"full", "none"} {
		s := newEnv(t, loop.Definition{Sandbox: tier}, map[string]string{"a.txt": "one\n"})
		s.GatesOf = func(loop.Definition) (gates []Gate) {
			for _, name := range []string{"one", "two", "three", "four"} {
				gates = append(gates, gate.Command{Name: name, Line: "test ! -e left && : >left"})
			}
			return gates
		}
		want := map[string]bool{"one": true, "two": true, "three": true, "four": true}
		if diff := cmp.Diff(want, s.judged(t)); diff != "" {
			t.Errorf("%s: passed (-want +got):\n%s", tier, diff)
		}
		if left := s.trees(t); len(left) > 0 {
			t.Errorf("%s: copies stay behind: %v", tier, left)
		}
	}
}

func TestAGateThatAsksForNoPlaceGetsNoCopy(t *testing.T) {
	for name, c := range map[string]struct {
		needs map[string]bool
		more  bool
	}{
		"none asks":                       {nil, true},
		"the first asks":                  {map[string]bool{"one": true}, true},
		"the last asks":                   {map[string]bool{"three": true}, true},
		"the first asks, and is the last": {map[string]bool{"one": true}, false},
		"the first and the last ask":      {map[string]bool{"one": true, "three": true}, true},
	} {
		for _, tier := range []string{"full", "none"} {
			s := newEnv(t, loop.Definition{Sandbox: tier}, map[string]string{"a.txt": "one\n"})
			s.GatesOf = func(loop.Definition) []Gate {
				return []Gate{gate.Command{Name: "one", Line: "true"}, gate.Command{Name: "two", Line: "test -e a.txt"}, gate.Command{Name: "three", Line: "true # again"}}
			}
			got := map[string]bool{}
			err := s.Judge(t.Context(), s.head(t), false, func(g Gate, place func() (Place, error)) (bool, error) {
				if !c.needs[g.Check().Name] {
					return c.more, nil
				}
				at, err := place()
				if err != nil {
					return false, err
				}
				res, err := s.RunGate(t.Context(), g, at, nil, io.Discard)
				got[g.Check().Name] = res.Pass
				return c.more, err
			})
			want := map[string]bool{}
			for name := range c.needs {
				want[name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: passed (-want +got), %v:\n%s", name, tier, err, diff)
			}
			if left := s.trees(t); len(left) > 0 {
				t.Errorf("%s, %s: copies stay behind: %v", name, tier, left)
			}
		}
	}
}

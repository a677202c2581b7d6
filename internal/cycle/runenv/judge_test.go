package runenv

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// judged runs all gates of a definition on its head.
func (s Env) judged(t *testing.T) map[string]bool {
	t.Helper()
	passed := map[string]bool{}
	err := s.Judge(t.Context(), s.head(t), false, func(g Gate, place func() (Place, error)) (bool, error) {
		at, err := place()
		if err != nil {
			return false, err
		}
		res, err := s.RunGate(t.Context(), g, at, nil, io.Discard)
		passed[g.Check().Name] = res.Pass
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return passed
}

func TestNoGateSeesWhatAnotherOneLeft(t *testing.T) {
	s := newEnv(t, loop.Definition{
		Verify: "echo junk > a.txt && mkdir built && echo x > built/out", Guard: "test $(cat a.txt) = one && test ! -e built",
	}, map[string]string{"a.txt": "one\n", ".gitignore": "built/\n"})
	if diff := cmp.Diff(map[string]bool{"verify": true, "guard": true}, s.judged(t)); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	if left := s.trees(t); len(left) > 0 {
		t.Errorf("copies stay behind: %v", left)
	}
}

func TestJudgingEndsWithTheFirstGateThatAsksForNoMore(t *testing.T) {
	s := newEnv(t, loop.Definition{Verify: "true", Guard: "test -e a.txt"}, map[string]string{"a.txt": "one\n"})
	stop := errors.New("stop")
	for name, c := range map[string]struct{ err error }{"it has seen enough": {}, "it failed": {stop}} {
		var asked []string
		err := s.Judge(t.Context(), s.head(t), false, func(g Gate, place func() (Place, error)) (bool, error) {
			asked = append(asked, g.Check().Name)
			_, err := place()
			return false, errors.Join(err, c.err)
		})
		if !errors.Is(err, c.err) || len(asked) != 1 {
			t.Errorf("%s: asked %v, %v", name, asked, err)
		}
		if left := s.trees(t); len(left) > 0 {
			t.Errorf("%s: copies stay behind: %v", name, left)
		}
	}
}

func TestACommandThatAnEarlierGateRunsNeedsNoCopyAhead(t *testing.T) {
	gates := []Gate{gate.Command{Name: "verify", Line: "true"}, gate.Command{Name: "guard", Line: "true"}, gate.Command{Name: "lint", Line: "false"}}
	for i, want := range []bool{true, false, true, false} {
		if got := needsCopy(gates, i); got != want {
			t.Errorf("needsCopy of gate %d = %v, want %v", i, got, want)
		}
	}
}

func TestEachTryOfAFlakyGateGetsItsOwnPlace(t *testing.T) {
	s := newEnv(t, loop.Definition{Verify: "mkdir tried && exit 1", Flaky: "2 of 3"}, map[string]string{"a.txt": "one\n"})
	var places []string
	err := s.Judge(t.Context(), s.head(t), false, func(g Gate, place func() (Place, error)) (bool, error) {
		at, err := place()
		if err != nil {
			return false, err
		}
		_, err = s.RunGate(t.Context(), g, at, func(ctx context.Context) (Place, error) {
			fresh, err := s.Copy(ctx, ForRetry, s.head(t))
			if err != nil {
				return Place{}, err
			}
			defer func() { _ = fresh.Leave() }()
			places = append(places, fresh.Dir)
			return s.GatePlace(ctx, fresh, false)
		}, io.Discard)
		return true, err
	})
	if err != nil || len(places) == 0 {
		t.Errorf("judged with %d fresh places, %v", len(places), err)
	}
}

func TestARuleThatIsNoneIsSaidWithItsKey(t *testing.T) {
	s := newEnv(t, loop.Definition{Verify: "true", Flaky: "often"}, map[string]string{"a.txt": "one\n"})
	_, err := s.RunGate(t.Context(), gate.Command{Name: "verify", Line: "true"}, Place{}, nil, io.Discard)
	if err == nil || err.Error()[:5] != "flaky" {
		t.Errorf("RunGate = %v, want an error that names flaky", err)
	}
}

//go:build unix

package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

func TestARuleForFlakyGatesIsReadOrRefused(t *testing.T) {
	for text, want := range map[string]gate.Rule{
		"": {}, "  ": {}, "2 of 3": {Need: 2, Of: 3}, " 1  of\t10 ": {Need: 1, Of: 10}, "1 of 1": {Need: 1, Of: 1}, "3 of 3": {Need: 3, Of: 3},
	} {
		if got, err := gate.ParseRule(text); got != want || err != nil {
			t.Errorf("ParseRule(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"2", "2/3", "2 in 3", "2 of", "of", "0 of 3", "4 of 3", "1 of 11", "-1 of 3", "+1 of 3", "2 of 3 tries", "two of three", "2 OF 3"} {
		if got, err := gate.ParseRule(text); err == nil || got != (gate.Rule{}) || !strings.Contains(err.Error(), text) {
			t.Errorf("ParseRule(%q) = %v, %v, want an error that quotes it", text, got, err)
		}
	}
}

func TestARuleReadsAsItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 10).Draw(t, "of")
		r := gate.Rule{Need: rapid.IntRange(1, of).Draw(t, "need"), Of: of}
		if got, err := gate.ParseRule(r.String()); got != r || err != nil {
			t.Fatalf("ParseRule(%q) = %v, %v", r, got, err)
		}
	})
}

// scripted passes or fails as each letter says, p or f.
type scripted struct {
	script string
	tries  int
}

func (s *scripted) Run(context.Context, proc.Spec) (proc.Result, error) {
	exit := map[byte]int{'p': 0, 'f': 1, 'm': 127}[s.script[s.tries]]
	s.tries++
	return proc.Result{Exit: exit, Ended: proc.Exited, Took: time.Second}, nil
}

func TestAFlakyGateIsTriedUntilItsRuleIsDecided(t *testing.T) {
	for name, c := range map[string]struct {
		rule  gate.Rule
		tries string // offered
		used  int
		pass  bool
	}{
		"two passes are enough":             {gate.Rule{Need: 2, Of: 3}, "ppf", 2, true},
		"two passes with a failure between": {gate.Rule{Need: 2, Of: 3}, "pfp", 3, true},
		"a failure first":                   {gate.Rule{Need: 2, Of: 3}, "fpp", 3, true},
		"two failures decide":               {gate.Rule{Need: 2, Of: 3}, "ffp", 2, false},
		"the last one decides":              {gate.Rule{Need: 2, Of: 3}, "fpf", 3, false},
		"one of three":                      {gate.Rule{Need: 1, Of: 3}, "ffp", 3, true},
		"three of three":                    {gate.Rule{Need: 3, Of: 3}, "pfp", 2, false},
		"one of one":                        {gate.Rule{Need: 1, Of: 1}, "f", 1, false},
		"a missing program stays missing":   {gate.Rule{Need: 1, Of: 3}, "mpp", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			exec := &scripted{script: c.tries}
			cmd := command(t, "true")
			cmd.Rule = c.rule
			g, err := runJob(t.Context(), on(exec, cmd))
			if err != nil || g.Pass != c.pass || exec.tries != c.used {
				t.Fatalf("pass %v after %d tries, %v, want %v after %d", g.Pass, exec.tries, err, c.pass, c.used)
			}
			if len(g.Tries) != c.used || g.Took != time.Duration(c.used)*time.Second {
				t.Errorf("tries %+v in %s, want all %d", g.Tries, g.Took, c.used)
			}
			for i, try := range g.Tries {
				if try.Pass != (c.tries[i] == 'p') || try.Took != time.Second || try.Pass != (try.Exit == 0) {
					t.Errorf("try %d = %+v, want %c", i+1, try, c.tries[i])
				}
			}
		})
	}
}

func TestARuleIsMetByExactlyTheTriesThatItNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 10).Draw(t, "of")
		need := rapid.IntRange(1, of).Draw(t, "need")
		script := rapid.StringOfN(rapid.RuneFrom([]rune("pf")), of, of, -1).Draw(t, "tries")
		g, err := runJob(context.Background(), on(&scripted{script: script}, newJob("true", gate.Input{Rule: gate.Rule{Need: need, Of: of}})))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Count(script, "p") >= need; g.Pass != want {
			t.Fatalf("%d of %d on %s: pass %v", need, of, script, g.Pass)
		}
		passed := 0
		for _, try := range g.Tries[:len(g.Tries)-1] {
			if try.Pass {
				passed++
			}
		}
		if failed := len(g.Tries) - 1 - passed; passed >= need || failed > of-need {
			t.Fatalf("%d of %d on %s: tried on after it was decided: %+v", need, of, script, g.Tries)
		}
	})
}

func TestAGateWithoutARuleIsTriedOnce(t *testing.T) {
	exec := &scripted{script: "fp"}
	g, err := runJob(t.Context(), on(exec, command(t, "true")))
	if err != nil || g.Pass || exec.tries != 1 || g.Tries != nil {
		t.Errorf("%+v after %d tries, %v, want one failure and no list", g, exec.tries, err)
	}
}

func TestEachTryAfterTheFirstGetsAFreshFolder(t *testing.T) {
	c := command(t, "cat left 2>/dev/null; echo mark >left; exit 1")
	var folders []string
	c.Rule = gate.Rule{Need: 1, Of: 3}
	c.Fresh = func(context.Context) (gate.Place, error) {
		folders = append(folders, t.TempDir())
		return gate.Place{Exec: proc.Tree{}, Dir: folders[len(folders)-1]}, nil
	}
	if g := run(t, c); g.Evidence != "" || len(g.Tries) != 3 {
		t.Errorf("result = %+v, want three tries that found nothing", g)
	}
	if len(folders) != 2 || slices.Contains(folders, c.Dir) {
		t.Errorf("folders = %v, want two new ones", folders)
	}
	lost := errors.New("the disk is full")
	c.Fresh = func(context.Context) (gate.Place, error) { return gate.Place{}, lost }
	if _, err := runJob(t.Context(), on(proc.Tree{}, c)); !errors.Is(err, lost) {
		t.Errorf("Run = %v, want the cause", err)
	}
}

func TestATryThatRanNoTestsIsNoPass(t *testing.T) {
	c := command(t, "[ -e second ] && echo '3 passed in 0.1s' || echo 'no tests ran in 0.1s'; : >second")
	c.Rule = gate.Rule{Need: 1, Of: 2}
	g := run(t, c)
	if !g.Pass || len(g.Tries) != 2 || g.Tries[0].Pass || g.Tries[0].Exit != 0 || g.Tests == nil || g.Tests.Passed != 3 {
		t.Errorf("result = %+v, want a pass by the second try", g)
	}
}

func TestACanceledRunIsNotTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := command(t, "echo x >>tries; echo started; sleep 60")
	c.Rule = gate.Rule{Need: 1, Of: 5}
	c.Output = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	g, err := runJob(ctx, on(proc.Tree{}, c))
	if err != nil || g.Pass || len(g.Tries) != 1 {
		t.Errorf("result = %+v, %v, want one try", g, err)
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, "tries")); string(b) != "x\n" {
		t.Errorf("tried %q, %v", b, err)
	}
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of what is remembered of attempts.
const (
	mostTrees    = 20
	mostTests    = 200
	mostFindings = 2000
)

// remember adds an attempt to what was tried before, as far as the rules ask for it.
// A pass ends every row of failures; findings stay known for the next round.
func remember(t loop.Tried, a Attempt, rules []loop.GiveUpRule) loop.Tried {
	asks := func(r loop.Repeat) bool {
		return slices.ContainsFunc(rules, func(g loop.GiveUpRule) bool { return g.Repeat == r })
	}
	if asks(loop.RepeatFindings) && a.Gate != AgentGate {
		t.Found, t.Barren = rememberFindings(t.Found, t.Barren, a.Found)
	}
	switch {
	case a.Verdict != loop.VerdictFail:
		return loop.Tried{Found: t.Found, Barren: t.Barren}
	case a.Gate == AgentGate:
		return t // No gate has failed.
	}
	failed := a.failedGates()
	t.Gates = maps.Clone(t.Gates)
	for name := range t.Gates {
		if slices.Contains(a.Passed, name) || len(a.Failed) == 0 && name != a.Gate {
			delete(t.Gates, name)
		}
	}
	for _, name := range failed {
		s := t.Gates[name]
		if s.Failed++; s.Tree != a.Tree {
			s.SameTree = 0
		}
		s.Tree, s.SameTree = a.Tree, s.SameTree+1
		if t.Gates == nil {
			t.Gates = map[string]loop.Streak{}
		}
		t.Gates[name] = s
	}
	if asks(loop.RepeatTest) {
		tests := a.Tests
		if len(tests) == 0 {
			tests = failed
		}
		again := map[string]int{}
		for _, name := range tests[:min(len(tests), mostTests)] {
			again[name] = t.Tests[name] + 1
		}
		t.Tests = again
	}
	if asks(loop.RepeatTree) {
		t.Trees, t.Back = rememberTree(t.Trees, t.Back, a.Tree)
	}
	return t
}

// rememberTree adds a tree that failed. Back is how many attempts in a row came back to
// a tree of the list that was not its last; one that leaves the tree as it is says nothing.
func rememberTree(trees []string, back int, tree string) ([]string, int) {
	at := slices.Index(trees, tree)
	switch {
	case tree == "", at >= 0 && at == len(trees)-1:
		return trees, back
	case at >= 0:
		return append(slices.Concat(trees[:at], trees[at+1:]), tree), back + 1
	}
	trees = append(slices.Clone(trees), tree)
	return trees[max(0, len(trees)-mostTrees):], 0
}

// rememberFindings adds the findings of a report. Barren is how many reports in a row
// had no new one.
func rememberFindings(known []string, barren int, found []string) ([]string, int) {
	fresh := slices.Clone(known)
	for _, text := range found {
		sum := sha256.Sum256([]byte(strings.ToLower(strings.Join(strings.Fields(text), " "))))
		if digest := hex.EncodeToString(sum[:8]); !slices.Contains(fresh, digest) {
			fresh = append(fresh, digest)
		}
	}
	if len(fresh) == len(known) {
		return known, barren + 1
	}
	return fresh[max(0, len(fresh)-mostFindings):], 0
}

// failedGates are the gates that failed, by name.
func (a Attempt) failedGates() []string {
	if len(a.Failed) > 0 {
		return a.Failed
	}
	return []string{a.Gate}
}

// givenUp is a rule that is met.
type givenUp struct {
	rule   loop.GiveUpRule
	reason loop.Reason
	words  string
}

// metRule returns the first rule that is met after an attempt; nil if none is.
func metRule(t loop.Tried, a Attempt, rules []loop.GiveUpRule) *givenUp {
	for _, r := range rules {
		var g givenUp
		switch r.Repeat {
		case loop.RepeatGateAndTree, loop.RepeatGate:
			for _, name := range a.failedGates() {
				times, where := t.Gates[name].Failed, ""
				if r.Repeat == loop.RepeatGateAndTree {
					times, where = t.Gates[name].SameTree, " on the same tree"
				}
				if times >= r.Times {
					g = givenUp{r, loop.ReasonGiveUp, fmt.Sprintf("%s failed %d times in a row%s: %s", name, times, where, a.Words)}
					break
				}
			}
		case loop.RepeatTest:
			for _, name := range slices.Sorted(maps.Keys(t.Tests)) {
				if times := t.Tests[name]; times >= r.Times {
					g = givenUp{r, loop.ReasonSameTest, fmt.Sprintf("%s failed %d times in a row: %s", name, times, a.Words)}
					if len(a.Tests) == 0 { // Without names of tests it is the gate.
						g.reason = loop.ReasonGiveUp
					}
					break
				}
			}
		case loop.RepeatTree:
			if t.Back >= r.Times {
				g = givenUp{r, loop.ReasonOscillates, fmt.Sprintf("%d attempts in a row came back to a tree that had failed before: %s", t.Back, a.Words)}
			}
		case loop.RepeatFindings:
			if t.Barren >= r.Times {
				g = givenUp{r, loop.ReasonNoFindings, fmt.Sprintf("%d reports in a row had no new finding", t.Barren)}
			}
		}
		failed := a.Verdict == loop.VerdictFail && a.Gate != AgentGate
		if g.reason != "" && (failed || r.Repeat == loop.RepeatFindings) {
			return &g
		}
	}
	return nil
}

// giveUp settles a step by a rule that is met.
func (s *Settlement) giveUp(g givenUp) {
	s.Outcome, s.Reason, s.Detail, s.Again = loop.OutcomeGaveUp, g.reason, g.words, false
	s.Report = g.rule.Then != loop.ThenStop && g.rule.Then != loop.ThenPause || g.rule.Report
	if g.rule.Then != loop.ThenPause {
		s.Step.State, s.Step.Tried.GaveUp = loop.StepEscalated, g.reason
		return
	}
	s.Step.State, s.Halt = loop.StepFailed, true
	s.Step.Tried = loop.Tried{Found: s.Step.Tried.Found} // Whoever resumes it wants it tried as often again.
}

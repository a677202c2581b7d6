package plan_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func said(name string, kind loop.GateKind, verdict loop.Verdict) loop.GateResult {
	res := loop.GateResult{Name: name, Kind: kind, Pass: verdict == loop.VerdictPass, Pending: verdict == loop.VerdictPending}
	if res.Pending {
		res.Note = "there is no critic"
	}
	return res
}

func TestGatesTogetherMakeOneVerdict(t *testing.T) {
	const pass, fail, pending = loop.VerdictPass, loop.VerdictFail, loop.VerdictPending
	const command, invariant, reviewer = loop.GateCommand, loop.GateInvariant, loop.GateReviewer
	type results []loop.GateResult
	cases := map[string]struct {
		t       loop.Determinism
		gates   results
		want    loop.Verdict
		decided string
		why     string
	}{
		"no type, no gate":                    {"", nil, pass, "", ""},
		"deterministic, no gate":              {loop.Deterministic, nil, pending, "", "there is no gate"},
		"nondeterministic, no gate":           {loop.Nondeterministic, nil, pending, "", "there is no gate"},
		"a command":                           {loop.Deterministic, results{said("t", command, pass)}, pass, "", ""},
		"an invariant":                        {loop.Deterministic, results{said("t", invariant, pass)}, pass, "", ""},
		"deterministic, a reviewer alone":     {loop.Deterministic, results{said("r", reviewer, pass)}, pending, "", "no command and no invariant"},
		"deterministic, a reviewer objects":   {loop.Deterministic, results{said("t", command, pass), said("r", reviewer, fail)}, fail, "r", ""},
		"deterministic, a reviewer agrees":    {loop.Deterministic, results{said("t", command, pass), said("r", reviewer, pass)}, pass, "", ""},
		"nondeterministic, a reviewer":        {loop.Nondeterministic, results{said("r", reviewer, pass)}, pass, "", ""},
		"nondeterministic, a command alone":   {loop.Nondeterministic, results{said("t", command, pass)}, pending, "", "no reviewer has judged it"},
		"nondeterministic, a command objects": {loop.Nondeterministic, results{said("t", command, fail), said("r", reviewer, pass)}, fail, "t", ""},
		"nobody reviews":                      {loop.Deterministic, results{said("t", command, pass), said("r", reviewer, pending)}, pending, "r", "r: there is no critic"},
		"a failure outweighs what is pending": {loop.Deterministic, results{said("r", reviewer, pending), said("t", command, fail)}, fail, "t", ""},
		"the first that failed decided":       {"", results{said("a", command, pass), said("b", command, fail), said("c", invariant, fail)}, fail, "b", ""},
		"the first that is pending decided":   {"", results{said("a", reviewer, pending), said("b", reviewer, pending)}, pending, "a", "a: there is no critic"},
		"no type, a reviewer alone":           {"", results{said("r", reviewer, pass)}, pass, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, decided, why := plan.Judge(c.t, c.gates)
			if v != c.want || decided != c.decided || !strings.Contains(why, c.why) || (why == "") != (v != pending) {
				t.Errorf("verdict %s by %q, %q; want %s by %q, %q", v, decided, why, c.want, c.decided, c.why)
			}
		})
	}
}

func TestNothingMakesAPassOfAGateThatDidNotPass(t *testing.T) {
	results := rapid.SliceOf(rapid.Custom(func(t *rapid.T) loop.GateResult {
		return said(rapid.StringMatching("[a-z]{3}").Draw(t, "name"),
			rapid.SampledFrom([]loop.GateKind{loop.GateCommand, loop.GateInvariant, loop.GateReviewer}).Draw(t, "kind"),
			rapid.SampledFrom([]loop.Verdict{loop.VerdictPass, loop.VerdictPass, loop.VerdictFail, loop.VerdictPending}).Draw(t, "verdict"))
	}))
	rapid.Check(t, func(t *rapid.T) {
		all := results.Draw(t, "results")
		v, _, _ := plan.Judge(rapid.SampledFrom([]loop.Determinism{"", loop.Deterministic, loop.Nondeterministic}).Draw(t, "type"), all)
		want := loop.VerdictPass
		for _, res := range all {
			switch {
			case !res.Pass && !res.Pending:
				want = loop.VerdictFail
			case res.Pending && want == loop.VerdictPass:
				want = loop.VerdictPending
			}
		}
		if v != want && (want != loop.VerdictPass || v != loop.VerdictPending) {
			t.Errorf("verdict %s, want %s", v, want)
		}
	})
}

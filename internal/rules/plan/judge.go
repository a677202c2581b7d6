package plan

import "github.com/pawl-run/pawl/internal/rules/loop"

// Judge makes one verdict of what gates said of a tree: any failure fails, anything
// undecided leaves it to a human, else it passes. Decided is the first gate with that
// verdict; empty: none. Why says why a human decides.
//
// What a pass needs depends on the type. Where it is deterministic, a command or an
// invariant: a reviewer alone is never enough. Where it is not, a reviewer. Without a
// type, no gate is needed.
func Judge(t loop.Determinism, results []loop.GateResult) (v loop.Verdict, decided, why string) {
	measured, reviewed := false, false
	for _, res := range results {
		switch {
		case res.Pending:
			if v == "" {
				v, decided, why = loop.VerdictPending, res.Name, res.Name+": "+res.Note
			}
		case !res.Pass:
			return loop.VerdictFail, firstFailed(results), ""
		case res.Kind == loop.GateReviewer:
			reviewed = true
		default:
			measured = true
		}
	}
	switch {
	case v != "":
		return v, decided, why
	case t != "" && len(results) == 0:
		return loop.VerdictPending, "", "there is no gate"
	case t == loop.Deterministic && !measured:
		return loop.VerdictPending, "", "no command and no invariant says that the goal is met"
	case t == loop.Nondeterministic && !reviewed:
		return loop.VerdictPending, "", "no reviewer has judged it"
	}
	return loop.VerdictPass, "", ""
}

func firstFailed(results []loop.GateResult) string {
	for _, res := range results {
		if !res.Pass && !res.Pending {
			return res.Name
		}
	}
	return ""
}

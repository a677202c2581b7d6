package effect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAYesConsistsOfWhatWasAskedForAndNothingElse(t *testing.T) {
	now := time.Date(2026, 9, 3, 14, 0, 0, 0, time.FixedZone("", 7200))
	args := func(more ...string) map[string]string {
		all := map[string]string{
			effect.ArgBranch: "pawl/l/1", effect.ArgCommit: "c", effect.ArgBase: "main", effect.ArgOnto: "b", effect.ArgTree: "t",
			effect.ArgWhen: "2026-09-03T12:00:00Z",
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	action := loop.Action{Kind: loop.ActionLand, Branch: "pawl/l/1", Commit: "c", Base: "main", Onto: "b"}
	merge, pull, silent := action, action, action
	merge.Merge = true
	pull.Kind, pull.Remote, pull.Why = loop.ActionPullRequest, "origin", " mend it\n\nbecause\n"
	silent.Kind, silent.Remote = loop.ActionPullRequest, "origin"
	keep := action
	keep.Kind = loop.ActionKeep
	for name, c := range map[string]struct {
		action loop.Action
		want   []loop.EffectRequest
	}{
		"a branch that stays as it is": {keep, nil},
		"a landing":                    {action, []loop.EffectRequest{{Kind: effect.KindLand, Key: "ap_1/land", Args: args()}}},
		"a merge": {merge, []loop.EffectRequest{{Kind: effect.KindLand, Key: "ap_1/land", Args: args(
			effect.ArgMerge, "true", effect.ArgMessage, "Land pawl/l/1\n\nPawl-Approval: ap_1\nPawl-Tree: t\n")}}},
		"a pull request": {pull, []loop.EffectRequest{
			{Kind: effect.KindPush, Key: "ap_1/push", Args: args(effect.ArgRemote, "origin")},
			{Kind: effect.KindPullRequest, Key: "ap_1/pull_request", Args: args(
				effect.ArgRemote, "origin", effect.ArgTitle, "mend it", effect.ArgBody, "because\n\nPawl-Approval: ap_1\nPawl-Tree: t")},
		}},
		"one without a word": {silent, []loop.EffectRequest{
			{Kind: effect.KindPush, Key: "ap_1/push", Args: args(effect.ArgRemote, "origin")},
			{Kind: effect.KindPullRequest, Key: "ap_1/pull_request", Args: args(
				effect.ArgRemote, "origin", effect.ArgTitle, "pawl/l/1", effect.ArgBody, "Pawl-Approval: ap_1\nPawl-Tree: t")},
		}},
	} {
		if diff := cmp.Diff(c.want, effect.RequestsFor(loop.Approval{ID: "ap_1", Tree: "t", Action: c.action}, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFlagsAreOneToALine(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "one": {"one"}, "one\ntwo": {"one", "two"}} {
		if diff := cmp.Diff(want, effect.ProposalFlags(loop.Effect{Args: map[string]string{effect.ArgFlags: text}})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

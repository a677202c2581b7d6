package engine

import (
	"maps"
	"strings"

	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/loop"
)

// pullRequestEffects are the two steps of an approved pull request. The second
// builds on the first, and neither is repeated blindly.
func pullRequestEffects(a loop.Approval, args map[string]string) []loop.EffectRequest {
	args[effect.ArgRemote] = a.Action.Remote
	title, body, _ := strings.Cut(strings.TrimSpace(a.Action.Why), "\n")
	if title == "" {
		title = a.Action.Branch
	}
	pull := maps.Clone(args)
	pull[effect.ArgTitle] = title
	pull[effect.ArgBody] = strings.TrimSpace(body + "\n\nPawl-Approval: " + a.ID + "\nPawl-Tree: " + a.Tree)
	return []loop.EffectRequest{
		{Kind: effect.KindPush, Key: a.ID + "/push", Args: args},
		{Kind: effect.KindPullRequest, Key: a.ID + "/pull_request", Args: pull},
	}
}

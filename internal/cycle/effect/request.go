package effect

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// RequestsFor returns the effects of an approved landing, push or pull request. A yes to anything else has none.
func RequestsFor(a loop.Approval, now time.Time) []loop.EffectRequest {
	args := map[string]string{
		ArgBranch: a.Action.Branch, ArgCommit: a.Action.Commit, ArgBase: a.Action.Base, ArgOnto: a.Action.Onto,
		ArgTree: a.Tree, ArgWhen: now.UTC().Format(time.RFC3339),
	}
	if a.State == loop.ApprovalLanding {
		args[ArgApproval] = a.ID
	}
	switch a.Action.Kind {
	case loop.ActionPullRequest:
		return pullRequests(a, args)
	case loop.ActionPush:
		args[ArgRemote] = a.Action.Remote
		return []loop.EffectRequest{{Kind: KindBranchPush, Key: a.ID + "/push", Args: args}}
	case loop.ActionLand:
		if a.Action.Merge {
			args[ArgMerge] = "true"
			args[ArgMessage] = fmt.Sprintf("Land %s\n\nPawl-Approval: %s\nPawl-Tree: %s\n", a.Action.Branch, a.ID, a.Tree)
		}
		return []loop.EffectRequest{{Kind: KindLand, Key: a.ID + "/land", Args: args}}
	}
	return nil
}

// Retries are requests for effects that were tried before, by a run of that id: they look
// first whether an earlier try has arrived.
func Retries(requests []loop.EffectRequest, runID string) []loop.EffectRequest {
	for i := range requests {
		requests[i].Key += "/" + runID
		requests[i].Args[ArgRetry] = "true"
	}
	return requests
}

// pullRequests returns the two steps of an approved pull request. The second
// depends on the first, and neither is repeated blindly.
func pullRequests(a loop.Approval, args map[string]string) []loop.EffectRequest {
	args[ArgRemote] = a.Action.Remote
	title, body, _ := strings.Cut(strings.TrimSpace(a.Action.Why), "\n")
	if title == "" {
		title = a.Action.Branch
	}
	pull := maps.Clone(args)
	pull[ArgTitle] = title
	pull[ArgBody] = strings.TrimSpace(body + "\n\nPawl-Approval: " + a.ID + "\nPawl-Tree: " + a.Tree)
	return []loop.EffectRequest{
		{Kind: KindPush, Key: a.ID + "/push", Args: args},
		{Kind: KindPullRequest, Key: a.ID + "/pull_request", Args: pull},
	}
}

// ProposalFlags returns what a person should know before a proposal lands, from
// the arguments of its effect.
func ProposalFlags(e loop.Effect) []string {
	if e.Args[ArgFlags] == "" {
		return nil
	}
	return strings.Split(e.Args[ArgFlags], "\n")
}

// EncodeStack writes the proposals that another one builds on as an argument of its effect.
func EncodeStack(stack []loop.Lower) string {
	body, err := json.Marshal(stack)
	if err != nil {
		panic("effect: a stack does not marshal: " + err.Error())
	}
	return string(body)
}

// ProposalStack reads the proposals that the one of an effect builds on.
func ProposalStack(e loop.Effect) (stack []loop.Lower) {
	if text := e.Args[ArgStack]; text != "" {
		if err := json.Unmarshal([]byte(text), &stack); err != nil {
			panic("effect: the stack of effect " + e.Key + " is not JSON: " + err.Error())
		}
	}
	return stack
}

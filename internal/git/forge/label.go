package forge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// askTimeout bounds a question that is asked before every run.
const askTimeout = 4900 * time.Millisecond

var errSlow = errors.New("the code host did not answer in time")

// LabelState says whether the label is set.
type LabelState string

// The states. The caller decides what an unknown state means.
const (
	LabelSet     LabelState = "set"
	LabelNotSet  LabelState = "not_set"
	LabelUnknown LabelState = "unknown" // the host could not be asked
)

// labelQuery asks for everything that can have the label, in one request.
const labelQuery = `query($owner: String!, $name: String!, $label: String!) {
  repository(owner: $owner, name: $name) {
    url
    repositoryTopics(first: 100) { nodes { topic { name } } }
    issues(first: 1, states: OPEN, labels: [$label]) { nodes { url } }
    pullRequests(first: 1, states: OPEN, labels: [$label]) { nodes { url } }
  }
}`

type labelAnswer struct {
	Data struct {
		Repository *struct {
			URL    string `json:"url"`
			Topics *struct {
				Nodes []struct {
					Topic struct {
						Name string `json:"name"`
					} `json:"topic"`
				} `json:"nodes"`
			} `json:"repositoryTopics"`
			Issues *carriers `json:"issues"`
			Pulls  *carriers `json:"pullRequests"`
		} `json:"repository"`
	} `json:"data"`
	Errors []struct {
		Message string `json:"message"`
	} `json:"errors"`
}

type carriers struct {
	Nodes []struct {
		URL string `json:"url"`
	} `json:"nodes"`
}

// FindPauseLabel reports whether the repository, or any of its open issues and
// pull requests, has loop.PauseLabel, and the URL of what has it. It takes at
// most five seconds. The error is not nil exactly if the state is LabelUnknown,
// and says why.
func (g GH) FindPauseLabel(ctx context.Context, repo Repository) (answer LabelState, on string, err error) {
	if err := repo.validate(); err != nil {
		return LabelUnknown, "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSlow)
	defer cancel()
	var found labelAnswer
	err = g.runDecoding(ctx, &found, "api", "graphql", "--hostname="+repo.Host,
		"--raw-field=query="+labelQuery, "--raw-field=owner="+repo.Owner, "--raw-field=name="+repo.Name, "--raw-field=label="+loop.PauseLabel)
	if err == nil {
		answer, on, err = found.labelState()
	}
	if err != nil {
		return LabelUnknown, "", fmt.Errorf("ask for the label %s on %s: %w", loop.PauseLabel, repo, err)
	}
	return answer, on, nil
}

// labelState returns LabelUnknown if a field is missing, never LabelNotSet.
func (l labelAnswer) labelState() (LabelState, string, error) {
	r := l.Data.Repository
	if len(l.Errors) > 0 || r == nil || r.Topics == nil || r.Issues == nil || r.Pulls == nil {
		return LabelUnknown, "", &loop.Fault{
			Exit: loop.ExitError, What: "the code host gave half an answer",
			Fix: "see that the login of gh may read the repository: {1}", Actions: []loop.Command{loop.HostCommand("gh", "auth", "status")},
		}
	}
	for _, n := range r.Topics.Nodes {
		if n.Topic.Name == loop.PauseLabel {
			return LabelSet, r.URL, nil
		}
	}
	for _, c := range []*carriers{r.Issues, r.Pulls} {
		if len(c.Nodes) > 0 {
			return LabelSet, c.Nodes[0].URL, nil
		}
	}
	return LabelNotSet, "", nil
}

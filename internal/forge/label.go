package forge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// askFor bounds a question that comes before every run.
const askFor = 4900 * time.Millisecond

var errSlow = errors.New("the code host did not answer in time")

// Label says whether the label is set.
type Label string

// The answers. What an unknown answer means is the caller's to decide.
const (
	LabelSet     Label = "set"
	LabelNotSet  Label = "not_set"
	LabelUnknown Label = "unknown" // it could not be asked
)

// query asks for everything that can carry the label at once.
const query = `query($owner: String!, $name: String!, $label: String!) {
  repository(owner: $owner, name: $name) {
    url
    repositoryTopics(first: 100) { nodes { topic { name } } }
    issues(first: 1, states: OPEN, labels: [$label]) { nodes { url } }
    pullRequests(first: 1, states: OPEN, labels: [$label]) { nodes { url } }
  }
}`

type labelled struct {
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

// Labels reports whether the repository, or any of its open issues and pull
// requests, carries loop.PauseLabel, and the address of what does. It takes no
// longer than five seconds. The error is not nil exactly if the answer is LabelUnknown,
// and then says why.
func (g GH) Labels(ctx context.Context, repo Repository) (answer Label, on string, err error) {
	if err := repo.check(); err != nil {
		return LabelUnknown, "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askFor, errSlow)
	defer cancel()
	var found labelled
	err = g.ask(ctx, &found, "api", "graphql", "--hostname="+repo.Host,
		"--raw-field=query="+query, "--raw-field=owner="+repo.Owner, "--raw-field=name="+repo.Name, "--raw-field=label="+loop.PauseLabel)
	if err == nil {
		answer, on, err = found.answer()
	}
	if err != nil {
		return LabelUnknown, "", fmt.Errorf("ask for the label %s on %s: %w", loop.PauseLabel, repo, err)
	}
	return answer, on, nil
}

// answer is strict: a field that is missing is no "not set".
func (l labelled) answer() (Label, string, error) {
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

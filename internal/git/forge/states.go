package forge

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// PullRequestStates returns the states of pull requests of a repository by their
// URLs: Open, Closed or Merged. It asks once for all of them and takes at most
// five seconds. A URL of another repository is an error.
func (g GH) PullRequestStates(ctx context.Context, repo Repository, addresses []string) (map[string]string, error) {
	if err := repo.validate(); err != nil {
		return nil, err
	}
	query, err := statesQuery(repo, addresses)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSlow)
	defer cancel()
	var found struct {
		Data struct {
			Repository map[string]*struct {
				State string `json:"state"`
			} `json:"repository"`
		} `json:"data"`
	}
	err = g.runDecoding(ctx, &found, "api", "graphql", "--hostname="+repo.Host,
		"--raw-field=query="+query, "--raw-field=owner="+repo.Owner, "--raw-field=name="+repo.Name)
	if err != nil {
		return nil, fmt.Errorf("ask for pull requests of %s: %w", repo, err)
	}
	states := map[string]string{}
	for i, address := range addresses {
		pr := found.Data.Repository[pullAlias(i)]
		if pr == nil || pr.State != Open && pr.State != Closed && pr.State != Merged {
			return nil, &loop.Fault{
				Exit: loop.ExitError, What: "the code host does not say whether " + address + " is open",
				Fix: "see that the login of gh may read the repository: {1}", Actions: []loop.Command{loop.HostCommand("gh", "auth", "status")},
			}
		}
		states[address] = pr.State
	}
	return states, nil
}

// statesQuery names each pull request by its number, so that the answer does not
// depend on the number of others.
func statesQuery(repo Repository, addresses []string) (string, error) {
	var b strings.Builder
	b.WriteString("query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) {")
	for i, address := range addresses {
		n, ok := pullNumber(repo, address)
		if !ok {
			return "", fmt.Errorf("%.200q is not a pull request of %s", address, repo)
		}
		fmt.Fprintf(&b, " %s: pullRequest(number: %d) { state }", pullAlias(i), n)
	}
	b.WriteString(" } }")
	return b.String(), nil
}

func pullAlias(i int) string { return fmt.Sprintf("p%d", i) }

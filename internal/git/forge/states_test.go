//go:build unix

package forge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const pullAddress = "https://github.com/pawl-run/pawl/pull/"

func TestStatesAsksOnceForAllPullRequests(t *testing.T) {
	gh := newFakeGH(t, map[string]string{"api-graphql": `{"data":{"repository":{"p0":{"state":"OPEN"},"p1":{"state":"MERGED"},"p2":{"state":"CLOSED"}}}}`})
	got, err := gh.PullRequestStates(t.Context(), repo, []string{pullAddress + "7", pullAddress + "12", pullAddress + "9"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{pullAddress + "7": Open, pullAddress + "12": Merged, pullAddress + "9": Closed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	calls := gh.calls(t)
	if len(calls) != 1 {
		t.Fatalf("gh was asked %d times, want once: %q", len(calls), calls)
	}
	asked := strings.Join(calls[0], " ")
	for _, part := range []string{"--hostname=github.com", "owner=pawl-run", "name=pawl", "p0: pullRequest(number: 7) { state }", "p1: pullRequest(number: 12)", "p2: pullRequest(number: 9)"} {
		if !strings.Contains(asked, part) {
			t.Errorf("the question lacks %q: %s", part, asked)
		}
	}
}

func TestWhatBecameOfAPullRequestIsNeverGuessed(t *testing.T) {
	for name, answer := range map[string]map[string]string{
		"it is null":        {"api-graphql": `{"data":{"repository":{"p0":null}}}`},
		"it is missing":     {"api-graphql": `{"data":{"repository":{}}}`},
		"no repository":     {"api-graphql": `{"data":{"repository":null}}`},
		"an unknown state":  {"api-graphql": `{"data":{"repository":{"p0":{"state":"DRAFT"}}}}`},
		"not JSON":          {"api-graphql": `<html>`},
		"no login":          {"api-graphql.exit": "4"},
		"the host is down":  {"api-graphql.exit": "1", "api-graphql.err": "could not connect"},
		"errors and status": {"api-graphql.exit": "1", "api-graphql": `{"data":{"repository":{"p0":{"state":"OPEN"}}},"errors":[{"message":"x"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			states, err := newFakeGH(t, answer).PullRequestStates(t.Context(), repo, []string{pullAddress + "7"})
			if err == nil || states != nil {
				t.Errorf("States = %v, %v, want an error", states, err)
			}
		})
	}
	gh := newFakeGH(t, nil)
	for _, address := range []string{"", "https://github.com/other/repo/pull/7", pullAddress, pullAddress + "x", pullAddress + "7) { state } x(number: 1"} {
		if _, err := gh.PullRequestStates(t.Context(), repo, []string{address}); err == nil {
			t.Errorf("%q was asked for", address)
		}
	}
	if _, err := gh.PullRequestStates(t.Context(), Repository{}, nil); err == nil {
		t.Error("no repository was asked")
	}
	if calls := gh.calls(t); calls != nil {
		t.Errorf("gh was started: %q", calls)
	}
	_, err := newFakeGH(t, map[string]string{"api-graphql": `{"data":{"repository":{"p0":null}}}`}).PullRequestStates(t.Context(), repo, []string{pullAddress + "7"})
	wantFault(t, err, loop.ExitError, "gh auth status")
}

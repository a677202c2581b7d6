package turn_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// envAnswering is an environment whose model answers every call with a status.
func envAnswering(t *testing.T, status int) *turn.Env {
	t.Helper()
	return envAt(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// envAt is an environment without a box, with such a model.
func envAt(t *testing.T, answer http.HandlerFunc) *turn.Env {
	t.Helper()
	return envIn(t, sandbox.None, answer)
}

func envIn(t *testing.T, tier sandbox.Tier, answer http.HandlerFunc) *turn.Env {
	t.Helper()
	vendor := httptest.NewServer(answer)
	t.Cleanup(vendor.Close)
	actor := turn.Actor{Profile: agent.Profile{Providers: []string{modelapi.OpenAI}}}
	actor.BaseURL = vendor.URL
	with, err := actor.FindCredential(nil, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	env, err := turn.OpenEnv(t.Context(), turn.Need{
		Actor: actor, With: with, Tier: tier, Account: &spend.Account{}, Say: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	return env
}

func call(t *testing.T, env *turn.Env) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env.Endpoint.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestATurnThatWasEndedBecauseItsVendorRefusesFailedForThat(t *testing.T) {
	env := envAnswering(t, http.StatusUnauthorized)
	for range 3 {
		call(t, env)
	}
	<-env.Rejected()
	for name, said := range map[string]*loop.Failure{
		"the program said nothing":        nil,
		"the program says that it ended":  {Class: loop.FailureCrash, Text: "terminated"},
		"the program names another cause": {Class: loop.FailureServer, Text: "try later", Typed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := env.MergeResult(agent.Result{Ended: proc.Canceled, Failure: said})
			if got.Failure == nil || got.Failure.Class != loop.FailureAuth || got.Failure.Status != http.StatusUnauthorized {
				t.Errorf("failure = %+v, want the vendor's", got.Failure)
			}
		})
	}
	if got := env.MergeResult(agent.Result{Ended: proc.Exited}); got.Failure != nil {
		t.Errorf("a turn that ended well all the same has the failure %+v", got.Failure)
	}
}

func TestAToolOfTheVendorThatIsRefusedIsAFailureOfNobodysAccount(t *testing.T) {
	env := envAnswering(t, http.StatusOK)
	ask := func(body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env.Endpoint.URL+"/v1/responses", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ask(`{"model":"m","input":"x","tools":[{"type":"web_search"}]}`)
	for name, said := range map[string]*loop.Failure{
		"the program takes it for its login":      {Class: loop.FailureAuth, Text: "403", Typed: true},
		"the program takes it for its request":    {Class: loop.FailureRequest, Text: "400", Typed: true},
		"the program takes it for an ending":      nil,
		"the program takes it for its connection": {Class: loop.FailureServer, Text: "try later"},
	} {
		t.Run(name, func(t *testing.T) {
			got := env.MergeResult(agent.Result{Ended: proc.Exited, Failure: said})
			if got.Failure == nil || got.Failure.Class != loop.FailureDenied || !strings.Contains(got.Failure.Text, "model_tools: [web_search]") {
				t.Errorf("failure = %+v, want pawl's own", got.Failure)
			}
		})
	}
	if !got(env).Zero() {
		t.Errorf("a refused call was charged: %+v", got(env))
	}
}

func got(env *turn.Env) loop.Usage {
	usage, _ := env.MeteredUsage()
	return usage
}

func TestATurnThatWasStoppedWhileItsVendorFailedIsNoFailureOfTheVendor(t *testing.T) {
	env := envAnswering(t, http.StatusUnauthorized)
	call(t, env)
	if got := env.MergeResult(agent.Result{Ended: proc.Canceled}); got.Failure != nil {
		t.Errorf("failure = %+v, want none", got.Failure)
	}
}

func TestACallThatWasUnderWayWhenItsProgramWasEndedIsInTheOutcome(t *testing.T) {
	ctx, kill := context.WithCancel(t.Context())
	env := envAt(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		kill()
		<-r.Context().Done()
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, env.Endpoint.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("the call was answered")
	}
	got := env.MergeResult(agent.Result{Ended: proc.Canceled})
	if got.Usage.Input == 0 || got.Usage.Source != loop.UsageEstimated || len(got.Models) != 1 {
		t.Errorf("usage = %+v of %+v, and the model has read a call", got.Usage, got.Models)
	}
}

func TestAProgramInABoxThatNeverAskedItsModelIsChargedNothing(t *testing.T) {
	guess := loop.Usage{Input: 324, Output: 1, Source: loop.UsageEstimated}
	told := loop.Usage{Input: 9, Output: 1, Source: loop.UsageReported}
	for name, c := range map[string]struct {
		tier       sandbox.Tier
		said, want loop.Usage
	}{
		"nobody knows more than the prompt":           {sandbox.Full, guess, loop.Usage{Source: loop.UsageMetered}},
		"the program says what it used":               {sandbox.Full, told, told},
		"without a box it may go past the endpoint":   {sandbox.None, guess, guess},
		"nor does a sandbox of somebody else hold it": {sandbox.External, guess, guess},
	} {
		t.Run(name, func(t *testing.T) {
			env := envIn(t, c.tier, func(http.ResponseWriter, *http.Request) { t.Error("the model was asked") })
			got := env.MergeResult(agent.Result{Ended: proc.TimedOut, Usage: c.said, Models: []loop.ModelUsage{{Model: "m", Usage: c.said}}})
			if got.Usage != c.want || (len(got.Models) == 0) != c.want.Zero() {
				t.Errorf("charged were %+v of %+v, want %+v", got.Usage, got.Models, c.want)
			}
		})
	}
}

package turn_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter/model"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/turn"
)

// seatBefore is a seat whose model answers every call with a status.
func seatBefore(t *testing.T, status int) *turn.Seat {
	t.Helper()
	return seatAt(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// seatAt is a seat without a box, with such a model.
func seatAt(t *testing.T, answer http.HandlerFunc) *turn.Seat {
	t.Helper()
	return seatIn(t, sandbox.None, answer)
}

func seatIn(t *testing.T, tier sandbox.Tier, answer http.HandlerFunc) *turn.Seat {
	t.Helper()
	vendor := httptest.NewServer(answer)
	t.Cleanup(vendor.Close)
	actor := turn.Actor{Profile: agent.Profile{Providers: []string{model.OpenAI}}}
	actor.BaseURL = vendor.URL
	with, err := actor.Credential(nil, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	seat, err := turn.Open(t.Context(), turn.Need{
		Actor: actor, With: with, Tier: tier, Account: &model.Account{}, Say: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := seat.Close(); err != nil {
			t.Error(err)
		}
	})
	return seat
}

func call(t *testing.T, seat *turn.Seat) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, seat.Endpoint.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
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
	seat := seatBefore(t, http.StatusUnauthorized)
	for range 3 {
		call(t, seat)
	}
	<-seat.Rejected()
	for name, said := range map[string]*loop.Failure{
		"the program said nothing":        nil,
		"the program says that it ended":  {Class: loop.FailureCrash, Text: "terminated"},
		"the program names another cause": {Class: loop.FailureServer, Text: "try later", Typed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := seat.Outcome(agent.Result{Ended: proc.Canceled, Failure: said})
			if got.Failure == nil || got.Failure.Class != loop.FailureAuth || got.Failure.Status != http.StatusUnauthorized {
				t.Errorf("failure = %+v, want the vendor's", got.Failure)
			}
		})
	}
	if got := seat.Outcome(agent.Result{Ended: proc.Exited}); got.Failure != nil {
		t.Errorf("a turn that ended well all the same has the failure %+v", got.Failure)
	}
}

func TestAToolOfTheVendorThatIsRefusedIsAFailureOfNobodysAccount(t *testing.T) {
	seat := seatBefore(t, http.StatusOK)
	ask := func(body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, seat.Endpoint.URL+"/v1/responses", strings.NewReader(body))
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
			got := seat.Outcome(agent.Result{Ended: proc.Exited, Failure: said})
			if got.Failure == nil || got.Failure.Class != loop.FailureDenied || !strings.Contains(got.Failure.Text, "model_tools: [web_search]") {
				t.Errorf("failure = %+v, want pawl's own", got.Failure)
			}
		})
	}
	if !got(seat).Zero() {
		t.Errorf("a refused call was charged: %+v", got(seat))
	}
}

func got(seat *turn.Seat) loop.Usage {
	usage, _ := seat.SoFar()
	return usage
}

func TestATurnThatWasStoppedWhileItsVendorFailedIsNoFailureOfTheVendor(t *testing.T) {
	seat := seatBefore(t, http.StatusUnauthorized)
	call(t, seat)
	if got := seat.Outcome(agent.Result{Ended: proc.Canceled}); got.Failure != nil {
		t.Errorf("failure = %+v, want none", got.Failure)
	}
}

func TestACallThatWasUnderWayWhenItsProgramWasEndedIsInTheOutcome(t *testing.T) {
	ctx, kill := context.WithCancel(t.Context())
	seat := seatAt(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		kill()
		<-r.Context().Done()
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, seat.Endpoint.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Fatal("the call was answered")
	}
	got := seat.Outcome(agent.Result{Ended: proc.Canceled})
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
			seat := seatIn(t, c.tier, func(http.ResponseWriter, *http.Request) { t.Error("the model was asked") })
			got := seat.Outcome(agent.Result{Ended: proc.TimedOut, Usage: c.said, Models: []loop.ModelUsage{{Model: "m", Usage: c.said}}})
			if got.Usage != c.want || (len(got.Models) == 0) != c.want.Zero() {
				t.Errorf("charged were %+v of %+v, want %+v", got.Usage, got.Models, c.want)
			}
		})
	}
}

package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

func TestEveryFaultHasItsClassInEveryShape(t *testing.T) {
	for name, c := range map[string]struct {
		fault  fakemodel.Fault
		class  loop.FailureClass // empty: the turn gets over it
		calls  int               // that are made; 0: any
		others map[string]loop.FailureClass
	}{
		"a wrong key":                         {fault: fakemodel.Fault{Status: 401}, class: loop.FailureAuth, calls: 1},
		"a key that may not":                  {fault: fakemodel.Fault{Status: 403}, class: loop.FailureAuth, calls: 1},
		"an unknown model":                    {fault: fakemodel.Fault{Status: 404}, class: loop.FailureRequest, calls: 1},
		"a request that makes no sense":       {fault: fakemodel.Fault{Status: 400, Text: "tools: no"}, class: loop.FailureRequest, calls: 1},
		"a rate limit for ever":               {fault: fakemodel.Fault{Status: 429}, class: loop.FailureRateLimit, calls: 4},
		"a rate limit that passes":            {fault: fakemodel.Fault{Status: 429, Times: 2}, calls: 4},
		"a rate limit of ten minutes":         {fault: fakemodel.Fault{Status: 429, RetryAfter: 600}, class: loop.FailureRateLimit, calls: 1},
		"a used-up window":                    {fault: fakemodel.Fault{Kind: fakemodel.FaultUsageLimit}, class: loop.FailureRateLimit},
		"an empty account":                    {fault: fakemodel.Fault{Kind: fakemodel.FaultQuota}, class: loop.FailureQuota, calls: 1, others: map[string]loop.FailureClass{gemini: loop.FailureRateLimit}},
		"a vendor's failure for ever":         {fault: fakemodel.Fault{Status: 500}, class: loop.FailureServer, calls: 4},
		"a vendor's failure that passes":      {fault: fakemodel.Fault{Status: 500, Times: 3}, calls: 5},
		"an overload":                         {fault: fakemodel.Fault{Status: 529, Times: 1}, calls: 3},
		"an overload in the middle":           {fault: fakemodel.Fault{Kind: fakemodel.FaultOverload, Times: 1}, calls: 3},
		"an overflow":                         {fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow}, class: loop.FailureOverflow, calls: 1},
		"a refusal":                           {fault: fakemodel.Fault{Kind: fakemodel.FaultRefusal}, class: loop.FailureRefusal, calls: 1},
		"answers at their limit":              {fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens}, class: loop.FailureMaxTokens, calls: 2},
		"one answer at its limit":             {fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens, Times: 1}, calls: 3},
		"answers that are cut for ever":       {fault: fakemodel.Fault{Kind: fakemodel.FaultCut}, class: loop.FailureServer, calls: 4},
		"an answer that is cut":               {fault: fakemodel.Fault{Kind: fakemodel.FaultCut, Times: 1}, calls: 3},
		"an error page":                       {fault: fakemodel.Fault{Status: 502, Body: "<html>Bad Gateway</html>"}, class: loop.FailureServer, calls: 4},
		"an answer that is not a stream":      {fault: fakemodel.Fault{Status: 200, Body: "hello"}, class: loop.FailureServer, calls: 4},
		"an answer that is not JSON":          {fault: fakemodel.Fault{Status: 200, Body: "data: hello\n\n"}, class: loop.FailureMalformed, calls: 1},
		"a redirection":                       {fault: fakemodel.Fault{Status: 302, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, class: loop.FailureRequest, calls: 1},
		"a vendor that says not to try again": {fault: fakemodel.Fault{Status: 500, Header: http.Header{"X-Should-Retry": {"false"}}}, class: loop.FailureServer, calls: 1},
	} {
		for provider := range providers {
			t.Run(name+", "+provider, func(t *testing.T) {
				s, url := serve(t, fakemodel.Read("main.go").Failing(c.fault), fakemodel.Say("done"))
				turn := take(t, quick, request(t, provider, url))
				want := c.class
				if other, ok := c.others[provider]; ok {
					want = other
				}
				switch f := turn.Result.Failure; {
				case want == "" && (f != nil || turn.Result.Message != "done"):
					t.Errorf("the turn came to %q and %+v, want it to get over that", turn.Result.Message, f)
				case want != "" && (f == nil || f.Class != want || f.Text == ""):
					t.Errorf("the failure is %+v, want %s", f, want)
				}
				if got := len(s.Log()); c.calls > 0 && got != c.calls && c.others[provider] == "" {
					t.Errorf("%d calls were made, want %d", got, c.calls)
				}
			})
		}
	}
}

func TestALimitSaysUntilWhen(t *testing.T) {
	far := time.Now().Add(72 * time.Hour).Truncate(time.Second)
	for provider, fault := range map[string]fakemodel.Fault{
		anthropic: {Kind: fakemodel.FaultUsageLimit, Reset: far}, openai: {Kind: fakemodel.FaultUsageLimit, Reset: far},
	} {
		s, url := serve(t, fakemodel.Say("x").Failing(fault))
		turn := take(t, quick, request(t, provider, url))
		if f := turn.Result.Failure; f == nil || !f.Reset.Equal(far) || !f.Typed || f.Status != http.StatusTooManyRequests {
			t.Errorf("%s: the failure is %+v", provider, f)
		}
		if n := count(turn.Events, agent.EventLimit); n != 1 || len(s.Log()) != 1 {
			t.Errorf("%s: %d events of a limit and %d calls, want 1 and 1", provider, n, len(s.Log()))
		}
	}
	_, url := serve(t, fakemodel.Say("x").Failing(fakemodel.Fault{Status: 429, RetryAfter: 600}))
	before := time.Now().Truncate(time.Second)
	turn := take(t, quick, request(t, gemini, url))
	first, last := before.Add(10*time.Minute), time.Now().Add(10*time.Minute)
	if reset := turn.Result.Failure.Reset; reset.Before(first) || reset.After(last) {
		t.Errorf("the limit lasts until %s, want ten minutes from the answer: %s to %s", reset, first, last)
	}
}

func TestAVendorIsWaitedForAsItAsks(t *testing.T) {
	_, url := serve(t, fakemodel.Say("done").Failing(fakemodel.Fault{Status: 429, RetryAfter: 1, Times: 1}))
	begin := time.Now()
	turn := take(t, quick, request(t, openai, url))
	if took := time.Since(begin); turn.Result.Failure != nil || took < time.Second {
		t.Errorf("after %s: %+v", took, turn.Result.Failure)
	}
	if n := count(turn.Events, agent.EventRetry); n != 1 {
		t.Errorf("%d events of a retry", n)
	}
}

func TestRoomIsMadeOnce(t *testing.T) {
	for provider := range providers {
		overflow := fakemodel.Fault{Kind: fakemodel.FaultOverflow, Times: 1}
		s, url := serve(t,
			fakemodel.Read("main.go"), fakemodel.Shell("true"), fakemodel.Shell("true"), fakemodel.Shell("true"),
			fakemodel.Shell("true").Failing(overflow), fakemodel.Say("done").Failing(fakemodel.Fault{Kind: fakemodel.FaultOverflow}),
		)
		turn := take(t, quick, request(t, provider, url))
		if f := turn.Result.Failure; f == nil || f.Class != loop.FailureOverflow {
			t.Fatalf("%s: the failure is %+v", provider, f)
		}
		log := s.Log()
		if len(log) != 7 || strings.Contains(string(log[4].Body), "left out to make room") || !strings.Contains(string(log[5].Body), "left out to make room") {
			t.Errorf("%s: after %d calls nothing was left out", provider, len(log))
		}
	}
}

func TestATurnHasSoManyCalls(t *testing.T) {
	forever := fakemodel.Shell("true")
	forever.Repeat = true
	s, url := serve(t, forever)
	turn := take(t, Driver{Self: "pawl", turns: 5}, request(t, gemini, url))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureTurns || len(s.Log()) != 5 {
		t.Errorf("after %d calls the failure is %+v", len(s.Log()), f)
	}
}

func TestAnEmptyAnswerIsAskedAboutOnce(t *testing.T) {
	s, url := serve(t, fakemodel.Say(""))
	turn := take(t, quick, request(t, openai, url))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureMalformed || len(s.Log()) != 2 {
		t.Errorf("after %d calls the failure is %+v", len(s.Log()), f)
	}
}

func TestAUsageThatLiesIsEstimated(t *testing.T) {
	for name, c := range map[string]fakemodel.Turn{
		"nothing":                   fakemodel.Say("done").Lying(fakemodel.Lie{Missing: true}),
		"a negative number":         fakemodel.Say("done").Lying(fakemodel.Lie{Input: "-5"}),
		"infinity":                  fakemodel.Say("done").Lying(fakemodel.Lie{Output: "1e309"}),
		"a text":                    fakemodel.Say("done").Lying(fakemodel.Lie{Output: `"NaN"`}),
		"more than there are":       fakemodel.Say("done").Lying(fakemodel.Lie{Input: "9223372036854775808"}),
		"one where thousands came":  {Say: "done", Flood: 100_000, Usage: &fakemodel.Usage{Input: 1000, Output: 1}},
		"more cached than was sent": fakemodel.Say("done").Lying(fakemodel.Lie{Input: "10", CacheRead: "20"}),
	} {
		for provider := range providers {
			if provider == anthropic && name == "more cached than was sent" {
				continue // It counts what was cached apart.
			}
			t.Run(name+", "+provider, func(t *testing.T) {
				_, url := serve(t, c)
				turn := take(t, quick, request(t, provider, url))
				u := turn.Result.Usage
				if u.Source != loop.UsageEstimated || u.Input < 500 || u.Output < max(2, int64(c.Flood)) {
					t.Errorf("usage is %+v", u)
				}
				if turn.Result.Failure != nil || !strings.HasSuffix(turn.Result.Message, "done") {
					t.Errorf("the turn failed: %+v", turn.Result.Failure)
				}
			})
		}
	}
}

func TestACallThatFailsIsCountedAsFarAsItCame(t *testing.T) {
	for provider := range providers {
		s, url := serve(t, fakemodel.Say("this is cut").Using(fakemodel.Usage{Input: 5000, Output: 9}).Failing(fakemodel.Fault{Kind: fakemodel.FaultCut, Times: 1}))
		turn := take(t, quick, request(t, provider, url))
		if n := count(turn.Events, agent.EventUsage); n != 2 {
			t.Errorf("%s: %d events of usage, want one for each call", provider, n)
		}
		if got, least := turn.Result.Usage, s.Total(); got.Input < least.Input || got.Output < least.Output {
			t.Errorf("%s: usage is %+v, and the model said %+v", provider, got, least)
		}
	}
}

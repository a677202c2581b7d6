package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/standin"
)

func TestEveryFaultHasItsClassInEveryShape(t *testing.T) {
	for name, c := range map[string]struct {
		fault  standin.Fault
		class  loop.FailureClass // empty: the turn gets over it
		calls  int               // that are made; 0: any
		others map[string]loop.FailureClass
	}{
		"a wrong key":                         {fault: standin.Fault{Status: 401}, class: loop.FailureAuth, calls: 1},
		"a key that may not":                  {fault: standin.Fault{Status: 403}, class: loop.FailureAuth, calls: 1},
		"an unknown model":                    {fault: standin.Fault{Status: 404}, class: loop.FailureRequest, calls: 1},
		"a request that makes no sense":       {fault: standin.Fault{Status: 400, Text: "tools: no"}, class: loop.FailureRequest, calls: 1},
		"a rate limit for ever":               {fault: standin.Fault{Status: 429}, class: loop.FailureRateLimit, calls: 4},
		"a rate limit that passes":            {fault: standin.Fault{Status: 429, Times: 2}, calls: 4},
		"a rate limit of ten minutes":         {fault: standin.Fault{Status: 429, RetryAfter: 600}, class: loop.FailureRateLimit, calls: 1},
		"a used-up window":                    {fault: standin.Fault{Kind: standin.FaultUsageLimit}, class: loop.FailureRateLimit},
		"an empty account":                    {fault: standin.Fault{Kind: standin.FaultQuota}, class: loop.FailureQuota, calls: 1, others: map[string]loop.FailureClass{gemini: loop.FailureRateLimit}},
		"a vendor's failure for ever":         {fault: standin.Fault{Status: 500}, class: loop.FailureServer, calls: 4},
		"a vendor's failure that passes":      {fault: standin.Fault{Status: 500, Times: 3}, calls: 5},
		"an overload":                         {fault: standin.Fault{Status: 529, Times: 1}, calls: 3},
		"an overload in the middle":           {fault: standin.Fault{Kind: standin.FaultOverload, Times: 1}, calls: 3},
		"an overflow":                         {fault: standin.Fault{Kind: standin.FaultOverflow}, class: loop.FailureOverflow, calls: 1},
		"a refusal":                           {fault: standin.Fault{Kind: standin.FaultRefusal}, class: loop.FailureRefusal, calls: 1},
		"answers at their limit":              {fault: standin.Fault{Kind: standin.FaultMaxTokens}, class: loop.FailureMaxTokens, calls: 2},
		"one answer at its limit":             {fault: standin.Fault{Kind: standin.FaultMaxTokens, Times: 1}, calls: 3},
		"answers that are cut for ever":       {fault: standin.Fault{Kind: standin.FaultCut}, class: loop.FailureServer, calls: 4},
		"an answer that is cut":               {fault: standin.Fault{Kind: standin.FaultCut, Times: 1}, calls: 3},
		"an error page":                       {fault: standin.Fault{Status: 502, Body: "<html>Bad Gateway</html>"}, class: loop.FailureServer, calls: 4},
		"an answer that is no stream":         {fault: standin.Fault{Status: 200, Body: "hello"}, class: loop.FailureServer, calls: 4},
		"an answer that is no JSON":           {fault: standin.Fault{Status: 200, Body: "data: hello\n\n"}, class: loop.FailureMalformed, calls: 1},
		"a redirection":                       {fault: standin.Fault{Status: 302, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, class: loop.FailureRequest, calls: 1},
		"a vendor that says not to try again": {fault: standin.Fault{Status: 500, Header: http.Header{"X-Should-Retry": {"false"}}}, class: loop.FailureServer, calls: 1},
	} {
		for provider := range providers {
			t.Run(name+", "+provider, func(t *testing.T) {
				s, url := serve(t, standin.Read("main.go").Failing(c.fault), standin.Say("done"))
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
	far := time.Unix(4102444800, 0)
	for provider, fault := range map[string]standin.Fault{
		anthropic: {Kind: standin.FaultUsageLimit, Reset: far}, openai: {Kind: standin.FaultUsageLimit, Reset: far},
	} {
		s, url := serve(t, standin.Say("x").Failing(fault))
		turn := take(t, quick, request(t, provider, url))
		if f := turn.Result.Failure; f == nil || !f.Reset.Equal(far) || !f.Typed || f.Status != http.StatusTooManyRequests {
			t.Errorf("%s: the failure is %+v", provider, f)
		}
		if n := count(turn.Events, agent.EventLimit); n != 1 || len(s.Log()) != 1 {
			t.Errorf("%s: %d events of a limit and %d calls, want 1 and 1", provider, n, len(s.Log()))
		}
	}
	_, url := serve(t, standin.Say("x").Failing(standin.Fault{Status: 429, RetryAfter: 600}))
	before := time.Now().Truncate(time.Second)
	turn := take(t, quick, request(t, gemini, url))
	first, last := before.Add(10*time.Minute), time.Now().Add(10*time.Minute)
	if reset := turn.Result.Failure.Reset; reset.Before(first) || reset.After(last) {
		t.Errorf("the limit lasts until %s, want ten minutes from the answer: %s to %s", reset, first, last)
	}
}

func TestAVendorIsWaitedForAsItAsks(t *testing.T) {
	_, url := serve(t, standin.Say("done").Failing(standin.Fault{Status: 429, RetryAfter: 1, Times: 1}))
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
		overflow := standin.Fault{Kind: standin.FaultOverflow, Times: 1}
		s, url := serve(t,
			standin.Read("main.go"), standin.Shell("true"), standin.Shell("true"), standin.Shell("true"),
			standin.Shell("true").Failing(overflow), standin.Say("done").Failing(standin.Fault{Kind: standin.FaultOverflow}),
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
	forever := standin.Shell("true")
	forever.Repeat = true
	s, url := serve(t, forever)
	turn := take(t, Driver{Self: "pawl", turns: 5}, request(t, gemini, url))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureTurns || len(s.Log()) != 5 {
		t.Errorf("after %d calls the failure is %+v", len(s.Log()), f)
	}
}

func TestAnEmptyAnswerIsAskedAboutOnce(t *testing.T) {
	s, url := serve(t, standin.Say(""))
	turn := take(t, quick, request(t, openai, url))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureMalformed || len(s.Log()) != 2 {
		t.Errorf("after %d calls the failure is %+v", len(s.Log()), f)
	}
}

func TestAUsageThatLiesIsEstimated(t *testing.T) {
	for name, c := range map[string]standin.Turn{
		"nothing":                   standin.Say("done").Lying(standin.Lie{Missing: true}),
		"a negative number":         standin.Say("done").Lying(standin.Lie{Input: "-5"}),
		"infinity":                  standin.Say("done").Lying(standin.Lie{Output: "1e309"}),
		"a text":                    standin.Say("done").Lying(standin.Lie{Output: `"NaN"`}),
		"more than there are":       standin.Say("done").Lying(standin.Lie{Input: "9223372036854775808"}),
		"one where thousands came":  {Say: "done", Flood: 100_000, Usage: &standin.Usage{Input: 1000, Output: 1}},
		"more cached than was sent": standin.Say("done").Lying(standin.Lie{Input: "10", CacheRead: "20"}),
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
		s, url := serve(t, standin.Say("this is cut").Using(standin.Usage{Input: 5000, Output: 9}).Failing(standin.Fault{Kind: standin.FaultCut, Times: 1}))
		turn := take(t, quick, request(t, provider, url))
		if n := count(turn.Events, agent.EventUsage); n != 2 {
			t.Errorf("%s: %d events of usage, want one for each call", provider, n)
		}
		if got, least := turn.Result.Usage, s.Total(); got.Input < least.Input || got.Output < least.Output {
			t.Errorf("%s: usage is %+v, and the model said %+v", provider, got, least)
		}
	}
}

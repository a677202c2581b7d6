package model

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// heldClock stands still between calls.
type heldClock struct{ now time.Time }

func (c *heldClock) Now() time.Time { return c.now }

func TestAProviderThatTurnsDownCallAfterCallIsGivenUp(t *testing.T) {
	type call struct {
		status int
		wait   int // seconds of Retry-After
		after  time.Duration
	}
	for name, c := range map[string]struct {
		calls []call
		want  bool
	}{
		"two keys that are refused are not enough":       {[]call{{401, 0, 0}, {401, 0, 0}}, false},
		"three keys that are refused are":                {[]call{{401, 0, 0}, {403, 0, 0}, {401, 0, 0}}, true},
		"a limit that lasts":                             {[]call{{429, 2400, 0}, {429, 2400, 0}, {429, 2400, 0}}, true},
		"a limit that is lifted soon":                    {[]call{{429, 5, 0}, {429, 5, time.Second}, {429, 5, time.Second}}, false},
		"a short limit again and again":                  {[]call{{429, 5, 0}, {429, 5, 5 * time.Second}, {429, 5, 5 * time.Second}}, true},
		"failures that may pass":                         {[]call{{500, 0, 0}, {529, 0, time.Second}, {503, 0, time.Second}}, false},
		"failures that did not pass":                     {[]call{{500, 0, 0}, {529, 0, time.Second}, {503, 0, time.Second}, {500, 0, 9 * time.Second}}, true},
		"a call that went well in between":               {[]call{{401, 0, 0}, {401, 0, 0}, {200, 0, 0}, {401, 0, 0}, {401, 0, 0}}, false},
		"requests that are bad":                          {[]call{{400, 0, 0}, {404, 0, 0}, {400, 0, time.Minute}, {400, 0, 0}}, false},
		"a bad request between those that are refused":   {[]call{{401, 0, 0}, {401, 0, 0}, {400, 0, 0}, {401, 0, 0}}, false},
		"more after it was given up":                     {[]call{{401, 0, 0}, {401, 0, 0}, {401, 0, 0}, {401, 0, 0}}, true},
		"a call that goes well after it was given up":    {[]call{{401, 0, 0}, {401, 0, 0}, {401, 0, 0}, {200, 0, 0}}, true},
		"a limit of which nobody says when it is lifted": {[]call{{429, 0, 0}, {429, 0, 6 * time.Second}, {429, 0, 6 * time.Second}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &heldClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
			var now call
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				if now.wait > 0 {
					w.Header().Set("Retry-After", strconv.Itoa(now.wait))
				}
				if now.status != http.StatusOK {
					w.WriteHeader(now.status)
					return
				}
				write(w, chatStream(`{"prompt_tokens":9,"completion_tokens":1}`, "hi"))
			}, func(e *Endpoint) { e.Clock = clock })
			rejected := r.Rejected()
			for _, now = range c.calls {
				clock.now = clock.now.Add(now.after)
				r.post("/v1/chat/completions", askChat)
			}
			r.stop()
			got := false
			select {
			case <-rejected:
				got = true
			default:
			}
			if got != c.want {
				t.Errorf("given up: %t, want %t", got, c.want)
			}
		})
	}
}

func TestALimitThatLastsIsSleptThroughByNobody(t *testing.T) {
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2400")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	r.post("/v1/chat/completions", askChat)
	r.stop()
	r.Endpoint.mu.Lock()
	waits := r.rejections.timer != nil
	r.Endpoint.mu.Unlock()
	if !waits {
		t.Error("one call was turned down for 40 minutes, and nobody waits to give up")
	}
	synctest.Test(t, func(t *testing.T) {
		e := &Endpoint{}
		e.mu.Lock()
		e.giveUpUnlessLifted(loop.Failure{Class: loop.FailureRateLimit, Reset: time.Now().Add(40 * time.Minute)})
		e.mu.Unlock()
		began := time.Now()
		<-e.Rejected()
		if took := time.Since(began); took != transientWait {
			t.Errorf("it was given up after %v, want %v", took, transientWait)
		}
		e.LastFailure() // Whoever is told asks why.
	})
}

func TestACallThatOffersToolsAndFailsLastIsStuck(t *testing.T) {
	const acts = `{"model":"m","stream":true,"tools":[{"type":"function"}]}`
	for name, c := range map[string]struct {
		bodies []string
		fails  []bool
		want   bool
	}{
		"it failed":                            {[]string{acts}, []bool{true}, true},
		"it failed and a side call went well":  {[]string{acts, askChat}, []bool{true, false}, true},
		"it failed and went well again":        {[]string{acts, acts}, []bool{true, false}, false},
		"only a side call failed":              {[]string{acts, askChat}, []bool{false, true}, false},
		"it went well and nothing else failed": {[]string{acts}, []bool{false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fails := false
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				if fails {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				write(w, chatStream(`{"prompt_tokens":9,"completion_tokens":1}`, "hi"))
			})
			for i, body := range c.bodies {
				fails = c.fails[i]
				r.post("/v1/chat/completions", body)
			}
			r.stop()
			if got := r.Stuck(); got != c.want {
				t.Errorf("stuck: %t, want %t", got, c.want)
			}
		})
	}
}

func TestACallThatIsRefusedInsideOfItsAnswerCostsNothing(t *testing.T) {
	refused := `{"type":"response.failed","response":{"model":"m","error":{"code":"context_length_exceeded","message":"Your input exceeds"}}}`
	for name, c := range map[string]struct {
		answer string
		free   bool
	}{
		"before a word was written": {modelcalls.EventStream(true, refused), true},
		"after a word was written":  {modelcalls.EventStream(true, `{"type":"response.output_text.delta","delta":"a word"}`, refused), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, says(c.answer))
			r.post("/v1/responses", `{"model":"m","stream":true}`)
			r.stop()
			if total, _ := r.Account.Total(); total.Zero() != c.free {
				t.Errorf("charged were %+v, want nothing: %t", total, c.free)
			}
		})
	}
}

package opencode_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent/opencode"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestErrorsHaveTheClassOfTheirNameAndStatus(t *testing.T) {
	const now = 1_800_000_000
	at := func(seconds int64) time.Time { return time.Unix(now+seconds, 0) }
	cases := map[string]struct {
		name, body string
		status     any
		headers    map[string]string
		class      loop.FailureClass
		reset      time.Time
		typed      bool
	}{
		"a key that is refused":               {name: "APIError", status: 401, class: loop.FailureAuth, typed: true},
		"a key that may not":                  {name: "APIError", status: 403, class: loop.FailureAuth, typed: true},
		"no key":                              {name: "ProviderAuthError", class: loop.FailureAuth, typed: true},
		"an account without money":            {name: "APIError", status: 402, class: loop.FailureQuota, typed: true},
		"a rate limit":                        {name: "APIError", status: 429, class: loop.FailureRateLimit, typed: true},
		"a rate limit that says how long":     {name: "APIError", status: 429, headers: map[string]string{"retry-after": "40"}, class: loop.FailureRateLimit, reset: at(40), typed: true},
		"a rate limit that says when":         {name: "APIError", status: 429, headers: map[string]string{"retry-after": at(60).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}, class: loop.FailureRateLimit, reset: at(60), typed: true},
		"a rate limit of a subscription":      {name: "APIError", status: 429, headers: map[string]string{"anthropic-ratelimit-unified-reset": "1800000090", "retry-after": "1"}, class: loop.FailureRateLimit, reset: at(90), typed: true},
		"a rate limit that says nonsense":     {name: "APIError", status: 429, headers: map[string]string{"retry-after": "NaN"}, class: loop.FailureRateLimit, typed: true},
		"a rate limit that says for ever":     {name: "APIError", status: 429, headers: map[string]string{"retry-after": "1e300"}, class: loop.FailureRateLimit, typed: true},
		"a quota that is used up":             {name: "APIError", status: 429, body: `{"error":{"type":"insufficient_quota"}}`, class: loop.FailureQuota, typed: true},
		"a quota by its code":                 {name: "APIError", status: 429, body: `{"error":{"code":"insufficient_quota"}}`, class: loop.FailureQuota, typed: true},
		"a text about quota":                  {name: "APIError", status: 429, body: `insufficient_quota`, class: loop.FailureRateLimit, typed: true},
		"a server that failed":                {name: "APIError", status: 529, class: loop.FailureServer, typed: true},
		"a connection that failed":            {name: "APIError", class: loop.FailureServer, typed: true},
		"a request that is refused":           {name: "APIError", status: 400, class: loop.FailureRequest, typed: true},
		"an invalid status":                   {name: "APIError", status: "x", class: loop.FailureServer, typed: true},
		"a conversation that is too long":     {name: "ContextOverflowError", class: loop.FailureOverflow, typed: true},
		"an answer that is too long":          {name: "MessageOutputLengthError", class: loop.FailureMaxTokens, typed: true},
		"a filter":                            {name: "ContentFilterError", class: loop.FailureRefusal, typed: true},
		"a text that only looks like a limit": {name: "UnknownError", status: 429, class: loop.FailureCrash},
		"an error that nobody has heard of":   {name: "", class: loop.FailureCrash},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string]any{"message": "429 rate limit,\n 401", "responseHeaders": c.headers, "responseBody": c.body}
			if c.status != nil {
				data["statusCode"] = c.status
			}
			line, err := json.Marshal(map[string]any{
				"type": "error", "timestamp": now * 1000, "sessionID": "ses_1", "error": map[string]any{"name": c.name, "data": data},
			})
			if err != nil {
				t.Fatal(err)
			}
			turn := agenttest.TakeTurn(t, opencode.Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: append(line, '\n'), Exit: 1}))
			agenttest.CheckTurn(t, turn)
			f := turn.Result.Failure
			if f == nil {
				t.Fatal("there is no failure")
			}
			if f.Class != c.class || f.Typed != c.typed || !f.Reset.Equal(c.reset) || f.Text != "429 rate limit, 401" {
				t.Errorf("the failure is %+v, want %s reset %v typed %t", f, c.class, c.reset, c.typed)
			}
		})
	}
}

func TestAConversationThatWasShortenedIsNoFailure(t *testing.T) {
	const overflow = `{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}` + "\n"
	const summary = `{"type":"text","sessionID":"ses_1","part":{"text":"Summary."}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":10,"output":2}}}
{"type":"text","sessionID":"ses_1","part":{"text":"Continue if you have next steps.","synthetic":true}}
{"type":"step_start","sessionID":"ses_1","part":{}}
`
	for name, c := range map[string]struct {
		stdout  string
		class   loop.FailureClass
		message string
	}{
		"it went on and came to an end": {overflow + summary + finished, "", "Done."},
		"it ended there":                {finished + overflow, loop.FailureOverflow, "Done."},
		"it outgrew the model for ever": {overflow + summary + overflow + summary + overflow + summary + finished, loop.FailureOverflow, "Summary."},
	} {
		t.Run(name, func(t *testing.T) {
			turn := agenttest.TakeTurn(t, opencode.Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte(c.stdout), Exit: 1}))
			agenttest.CheckTurn(t, turn)
			var class loop.FailureClass
			if f := turn.Result.Failure; f != nil {
				class = f.Class
			}
			if class != c.class || turn.Result.Message != c.message {
				t.Errorf("it is %q with the failure %q, want %q with %q", turn.Result.Message, class, c.message, c.class)
			}
		})
	}
}

package opencode

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// fault is an error as the program reports it.
type fault struct {
	Name string `json:"name"`
	Data struct {
		Message      string            `json:"message"`
		StatusCode   loop.Count        `json:"statusCode"`
		Headers      map[string]string `json:"responseHeaders"`
		ResponseBody string            `json:"responseBody"`
	} `json:"data"`
}

// classByName has the program's own names of errors.
var classByName = map[string]loop.FailureClass{
	"ProviderAuthError":          loop.FailureAuth,
	"ContextOverflowError":       loop.FailureOverflow,
	"ContentFilterError":         loop.FailureRefusal,
	"MessageOutputLengthError":   loop.FailureMaxTokens,
	"ModelNotFoundError":         loop.FailureRequest,
	"ProviderModelNotFoundError": loop.FailureRequest,
}

// failureOf classifies an error by its name and its status only.
func failureOf(l line) loop.Failure {
	var f fault
	if l.Error != nil {
		f = *l.Error
	}
	out := loop.Failure{
		Class: loop.FailureCrash, Status: int(f.Data.StatusCode.N),
		Text: cmp.Or(agent.OneLine(f.Data.Message, agent.LongText), f.Name, "an error without a name"),
	}
	if class, ok := classByName[f.Name]; ok {
		out.Class, out.Typed = class, true
	} else if f.Name == "APIError" {
		out.Class, out.Typed = classifyStatus(out.Status, f.Data.ResponseBody), true
	}
	if out.Class == loop.FailureRateLimit {
		out.Reset = resetTime(f.Data.Headers, time.UnixMilli(int64(l.Timestamp)))
	}
	return out
}

// classifyStatus classifies an error response. Status 0 is a failed connection.
func classifyStatus(status int, body string) loop.FailureClass {
	switch {
	case status == 0:
		return loop.FailureServer
	case status == http.StatusTooManyRequests && isQuotaUsedUp(body):
		return loop.FailureQuota
	}
	return loop.FailureOfStatus(status)
}

// isQuotaUsedUp reports whether the vendor's error says that the account's quota
// is used up.
func isQuotaUsedUp(body string) bool {
	var b struct {
		Error struct {
			Type string          `json:"type"`
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	const empty = "insufficient_quota"
	return json.Unmarshal([]byte(body), &b) == nil && (b.Error.Type == empty || string(b.Error.Code) == `"`+empty+`"`)
}

// resetTime returns when a limit is lifted, according to the vendor's headers;
// zero if unknown.
func resetTime(headers map[string]string, at time.Time) time.Time {
	const most = 366 * 24 * 60 * 60
	if n, err := strconv.ParseInt(headers["anthropic-ratelimit-unified-reset"], 10, 64); err == nil && n > 0 {
		if t := time.Unix(n, 0); t.After(at) && t.Before(at.Add(most*time.Second)) {
			return t
		}
	}
	after := headers["retry-after"]
	if n, err := strconv.ParseFloat(after, 64); err == nil {
		if n > 0 && n <= most { // false for NaN
			return at.Add(time.Duration(n * float64(time.Second)))
		}
		return time.Time{}
	}
	if t, err := http.ParseTime(after); err == nil && t.After(at) {
		return t
	}
	return time.Time{}
}

package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// classByExitStatus has the exit statuses with a documented meaning.
var classByExitStatus = map[int]loop.FailureClass{
	41: loop.FailureAuth,
	53: loop.FailureTurns,
}

// classByErrorType has the types of errors with a documented meaning.
var classByErrorType = map[string]loop.FailureClass{
	"FatalAuthenticationError": loop.FailureAuth,
	"FatalTurnLimitedError":    loop.FailureTurns,
	"TerminalQuotaError":       loop.FailureQuota,
	"RetryableQuotaError":      loop.FailureRateLimit,
	"ModelNotFoundError":       loop.FailureRequest,
}

// blockedMessages are the program's messages about an answer that it rejected.
var blockedMessages = []struct {
	words string
	class loop.FailureClass
}{
	{"The model response was blocked", loop.FailureRefusal},
	{"Model response was truncated", loop.FailureMaxTokens},
	{"The model returned", loop.FailureMalformed},
}

// classify returns what ended a turn, as far as the stream says.
func (d *decoder) classify(p *problem) *loop.Failure {
	if p == nil {
		for _, b := range blockedMessages {
			if strings.HasPrefix(d.lastError, b.words) {
				return &loop.Failure{Class: b.class, Text: d.lastError}
			}
		}
		return &loop.Failure{Class: loop.FailureCrash, Text: cmp.Or(d.lastError, "it ended with an error that it did not name")}
	}
	a := findVendorError(p.Message)
	f := &loop.Failure{Class: classByErrorType[p.Type], Text: agent.OneLine(cmp.Or(a.Message, p.Message, p.Type), agent.LongText), Status: a.Code, Typed: classByErrorType[p.Type] != ""}
	switch {
	case a.Code != 0:
		f.Class, f.Typed = classifyStatus(a.Code, a.Message), true
	case f.Class == "" && strings.Contains(p.Message, "[API Error: "):
		f.Class = loop.FailureServer // The connection broke, unless the exit status says more.
	case f.Class == "":
		f.Class = loop.FailureCrash
	}
	return f
}

// vendorError is an error in the form of the vendor's API.
type vendorError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// findVendorError finds the vendor's error in the program's message about it.
// Such errors are nested.
func findVendorError(text string) vendorError {
	var a vendorError
	for range 4 {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return a
		}
		var body struct {
			Error *vendorError `json:"error"`
		}
		if err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&body); err != nil || body.Error == nil {
			return a
		}
		a, text = *body.Error, body.Error.Message
	}
	return a
}

// classifyStatus classifies an HTTP status. Only an overflow has no status of its
// own; the vendor's message tells it.
func classifyStatus(status int, words string) loop.FailureClass {
	if status == 400 && strings.Contains(words, "exceeds the maximum number of tokens") {
		return loop.FailureOverflow
	}
	return loop.FailureOfStatus(status)
}

// refineByExit adds to a failure what the exit status says, or else the name of
// the error on standard error. The program exits with the HTTP status, and
// the system keeps only its lowest eight bits.
func refineByExit(f *loop.Failure, exit int, name, stderr string) *loop.Failure {
	if f == nil && classByExitStatus[exit] != "" {
		return &loop.Failure{Class: classByExitStatus[exit], Text: agent.LastLine(stderr), Typed: true}
	}
	if f == nil || f.Typed {
		return f
	}
	g := *f
	switch {
	case classByExitStatus[exit] != "":
		g.Class, g.Typed = classByExitStatus[exit], true
	case exit >= 400-256:
		g.Status = exit + 256
		g.Class, g.Typed = classifyStatus(g.Status, g.Text), true
	case exit == 1 && classByErrorType[name] != "":
		g.Class = classByErrorType[name] // Not typed, since a tool may have printed it.
	}
	return &g
}

package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// exits are the exit statuses that the program gives a meaning to.
var exits = map[int]loop.FailureClass{
	41: loop.FailureAuth,
	53: loop.FailureTurns,
}

// names are the types of errors that the program gives a meaning to.
var names = map[string]loop.FailureClass{
	"FatalAuthenticationError": loop.FailureAuth,
	"FatalTurnLimitedError":    loop.FailureTurns,
	"TerminalQuotaError":       loop.FailureQuota,
	"RetryableQuotaError":      loop.FailureRateLimit,
	"ModelNotFoundError":       loop.FailureRequest,
}

// blocked are the program's own sentences about an answer that it did not take.
var blocked = []struct {
	words string
	class loop.FailureClass
}{
	{"The model response was blocked", loop.FailureRefusal},
	{"Model response was truncated", loop.FailureMaxTokens},
	{"The model returned", loop.FailureMalformed},
}

// classify says what ended a turn, as far as the stream tells.
func (d *decoder) classify(p *problem) *loop.Failure {
	if p == nil {
		for _, b := range blocked {
			if strings.HasPrefix(d.said, b.words) {
				return &loop.Failure{Class: b.class, Text: d.said}
			}
		}
		return &loop.Failure{Class: loop.FailureCrash, Text: cmp.Or(d.said, "it ended with an error that it did not name")}
	}
	a := apiError(p.Message)
	f := &loop.Failure{Class: names[p.Type], Text: agent.OneLine(cmp.Or(a.Message, p.Message, p.Type), agent.LongText), Status: a.Code, Typed: names[p.Type] != ""}
	switch {
	case a.Code != 0:
		f.Class, f.Typed = byStatus(a.Code, a.Message), true
	case f.Class == "" && strings.Contains(p.Message, "[API Error: "):
		f.Class = loop.FailureServer // The connection broke, unless something else says more.
	case f.Class == "":
		f.Class = loop.FailureCrash
	}
	return f
}

// answer is an error as the vendor's interface words it.
type answer struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// apiError finds the vendor's answer in the program's message about it, in
// which one wraps another.
func apiError(text string) answer {
	var a answer
	for range 4 {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return a
		}
		var body struct {
			Error *answer `json:"error"`
		}
		if err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&body); err != nil || body.Error == nil {
			return a
		}
		a, text = *body.Error, body.Error.Message
	}
	return a
}

// byStatus is what a status of HTTP means. Only an overflow has no status of its
// own, and is told by the vendor's words.
func byStatus(status int, words string) loop.FailureClass {
	if status == 400 && strings.Contains(words, "exceeds the maximum number of tokens") {
		return loop.FailureOverflow
	}
	return loop.FailureOfStatus(status)
}

// byExit is the failure with what the exit status says of it, and else the name
// of the error on standard error. The program ends with the status of HTTP, of
// which a system passes on the lowest eight bits.
func byExit(f *loop.Failure, exit int, name, stderr string) *loop.Failure {
	if f == nil && exits[exit] != "" {
		return &loop.Failure{Class: exits[exit], Text: agent.LastLine(stderr), Typed: true}
	}
	if f == nil || f.Typed {
		return f
	}
	g := *f
	switch {
	case exits[exit] != "":
		g.Class, g.Typed = exits[exit], true
	case exit >= 400-256:
		g.Status = exit + 256
		g.Class, g.Typed = byStatus(g.Status, g.Text), true
	case exit == 1 && names[name] != "":
		g.Class = names[name] // Not typed: a tool's words may stand there too.
	}
	return &g
}

package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// version is the version of the protocol.
const version = 1

// sessionIDPattern matches valid IDs of conversations.
var sessionIDPattern = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$`)

// answerHandler handles the answer to a request.
type answerHandler func(result json.RawMessage) []agent.Event

// decoder conducts one turn: each answer of the program leads to the next
// request, up to the prompt and the end of the turn.
type decoder struct {
	r     agent.Request
	in    *agent.Input
	judge func(policy.Call) policy.Answer

	program program
	trusted bool // the program is known, and was started with its model

	asked       int // ID of the last request
	onAnswer    answerHandler
	onError     func(f *loop.Failure) []agent.Event // handles an error as the answer
	loadMethod  string                              // method that continues a conversation; empty if missing
	authMethods []text                              // methods of authentication
	tools       map[text]tool
	announced   map[text]string // names of tools whose call was reported
	returned    map[text]bool
	collected   pieces
	notice      string // the last message of the program itself
	denied      string // the text of the last denial, which the protocol cannot pass on
	asks        []agent.Ask
	ended       bool       // the prompt was answered
	counted     loop.Usage // the sum of reports of single calls
	model       string

	mu       sync.Mutex
	session  string // empty until there is one
	prompted bool   // updates now belong to this turn
	canceled bool
}

// pieces collects a text that comes in pieces.
type pieces struct {
	kind agent.EventKind
	id   text
	text strings.Builder
}

func newDecoder(r agent.Request, in *agent.Input, judge func(policy.Call) policy.Answer) *decoder {
	return &decoder{r: r, in: in, judge: judge, tools: map[text]tool{}, announced: map[text]string{}, returned: map[text]bool{}}
}

// sendQuestion sends a request. An error as its answer ends the turn, unless
// onError is changed.
func (d *decoder) sendQuestion(method string, params any, next answerHandler) {
	d.asked++
	d.onAnswer, d.onError = next, d.endTurn
	sendMessage(d.in, message{ID: json.RawMessage(strconv.Itoa(d.asked)), Method: method, Params: params})
}

// sendInitialize introduces pawl. It offers nothing except to answer questions.
func (d *decoder) sendInitialize() {
	d.sendQuestion("initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]string{"name": "pawl", "version": "1"},
	}, d.takeInitialized)
}

// cancel tells the program to end its turn. It may be called from any goroutine.
func (d *decoder) cancel() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.canceled = true
	if d.prompted {
		sendMessage(d.in, message{Method: "session/cancel", Params: map[string]string{"sessionId": d.session}})
	}
}

// DecodeLine decodes one message.
func (d *decoder) DecodeLine(line []byte) ([]agent.Event, bool) {
	var m incoming
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return nil, false
	}
	switch {
	case m.Method == "session/update":
		return d.takeUpdate(m.Params), true
	case m.Method == "session/request_permission" && !isEmpty(m.ID):
		return d.answerPermission(m), true
	case m.Method != "" && !isEmpty(m.ID):
		sendMessage(d.in, message{ID: m.ID, Error: map[string]any{"code": methodNotFound, "message": "pawl does not do " + string(m.Method)}})
		return nil, true
	case m.Method != "":
		return nil, true
	case isEmpty(m.Result) && isEmpty(m.Error) && isEmpty(m.ID):
		return nil, false
	}
	return d.takeAnswer(m), true
}

// takeAnswer handles the answer to the open request.
func (d *decoder) takeAnswer(m incoming) []agent.Event {
	if d.onAnswer == nil || string(m.ID) != strconv.Itoa(d.asked) {
		return nil
	}
	next, wrong := d.onAnswer, d.onError
	d.onAnswer = nil
	if !isEmpty(m.Error) {
		return wrong(failureOf(m.Error))
	}
	return next(m.Result)
}

// endTurn ends the turn, with a failure unless f is nil.
func (d *decoder) endTurn(f *loop.Failure) []agent.Event {
	events := d.flushText()
	if f != nil {
		events = append(events, agent.Event{Kind: agent.EventError, Failure: f})
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

func (d *decoder) takeInitialized(result json.RawMessage) []agent.Event {
	var hello struct {
		Version      int `json:"protocolVersion"`
		Capabilities struct {
			Load    bool `json:"loadSession"`
			Session struct {
				Resume json.RawMessage `json:"resume"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
		Methods []option `json:"authMethods"`
	}
	if err := json.Unmarshal(result, &hello); err != nil || hello.Version != version {
		return d.endTurn(&loop.Failure{Class: loop.FailureMalformed, Text: fmt.Sprintf("it speaks version %d of the protocol, and pawl speaks %d", hello.Version, version)})
	}
	switch {
	case len(hello.Capabilities.Session.Resume) > 0 && string(hello.Capabilities.Session.Resume) != "null":
		d.loadMethod = "session/resume"
	case hello.Capabilities.Load:
		d.loadMethod = "session/load"
	}
	for _, m := range hello.Methods {
		d.authMethods = append(d.authMethods, m.ID)
	}
	if d.r.Session == nil || d.loadMethod == "" || !sessionIDPattern.MatchString(d.r.Session.ID) {
		return d.openSession()
	}
	d.sendQuestion(d.loadMethod, map[string]any{"sessionId": d.r.Session.ID, "cwd": d.r.Dir, "mcpServers": []any{}}, func(result json.RawMessage) []agent.Event {
		return d.takeSession(result, d.r.Session.ID)
	})
	d.onError = func(*loop.Failure) []agent.Event { return d.openSession() } // If it is lost, start a new conversation.
	return nil
}

// openSession starts a new conversation.
func (d *decoder) openSession() []agent.Event {
	params := map[string]any{"cwd": d.r.Dir, "mcpServers": []any{}}
	opened := func(result json.RawMessage) []agent.Event { return d.takeSession(result, "") }
	d.sendQuestion("session/new", params, opened)
	by := slices.IndexFunc(d.authMethods, func(m text) bool {
		name := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(string(m)))
		return strings.Contains(name, "apikey")
	})
	if by < 0 || d.r.Models.URL == "" {
		return nil
	}
	d.onError = func(f *loop.Failure) []agent.Event {
		if f.Class != loop.FailureAuth {
			return d.endTurn(f)
		}
		d.sendQuestion("authenticate", map[string]any{"methodId": d.authMethods[by]}, func(json.RawMessage) []agent.Event {
			d.sendQuestion("session/new", params, opened)
			return nil
		})
		return nil
	}
	return nil
}

// takeSession selects how the program works in the conversation. ID is that of
// the conversation to continue; empty for a new one.
func (d *decoder) takeSession(result json.RawMessage, id string) []agent.Event {
	var c conversation
	if err := json.Unmarshal(result, &c); err != nil && !isEmpty(result) {
		return d.endTurn(&loop.Failure{Class: loop.FailureMalformed, Text: "the answer to a new conversation cannot be read: " + err.Error()})
	}
	if id == "" {
		id = string(c.ID)
	}
	if !sessionIDPattern.MatchString(id) {
		return d.endTurn(&loop.Failure{Class: loop.FailureMalformed, Text: fmt.Sprintf("it began a conversation by the name %.40q", id)})
	}
	d.mu.Lock()
	d.session = id
	d.mu.Unlock()
	d.model = cmp.Or(d.r.Model, string(c.Models.Current))
	return d.sendChoices(slices.Concat(d.chooseMode(c), d.chooseModel(c)))
}

// sendPrompt sends the prompt. It avoids a slash at the beginning, which several
// programs take for a command.
func (d *decoder) sendPrompt() []agent.Event {
	what := d.r.Prompt
	if strings.HasPrefix(what, "/") {
		what = "\n" + what
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.canceled {
		return d.endTurn(nil)
	}
	d.prompted = true
	d.sendQuestion("session/prompt", map[string]any{"sessionId": d.session, "prompt": []any{map[string]string{"type": "text", "text": what}}}, d.takeTurnEnd)
	return nil
}

// takeTurnEnd reads why the turn ended.
func (d *decoder) takeTurnEnd(result json.RawMessage) []agent.Event {
	var e ended
	_ = json.Unmarshal(result, &e) // An unreadable answer has no reason.
	d.ended = true
	u, ok := d.turnUsage(e)
	events := d.flushLast(ok)
	if ok {
		events = append(events, agent.Event{Kind: agent.EventUsage, Usage: u, Model: d.model})
	}
	d.mu.Lock()
	canceled := d.canceled
	d.mu.Unlock()
	f := stopFailure(string(e.Reason), canceled || d.denied != "")
	if f == nil && d.notice != "" {
		f = noticeFailure(d.notice)
	}
	return append(events, d.endTurn(f)...)
}

// turnUsage returns the usage that the program reports at the end, if no calls
// were reported before.
func (d *decoder) turnUsage(e ended) (loop.Usage, bool) {
	if len(e.Meta.Quota.Models) == 1 && e.Meta.Quota.Models[0].Model != "" {
		d.model = string(e.Meta.Quota.Models[0].Model)
	}
	if !d.counted.Zero() {
		return loop.Usage{}, false
	}
	u, ok := e.Usage.toUsage()
	if !ok {
		u, ok = e.Meta.Quota.Tokens.toUsage()
	}
	if d.program.lastOnly {
		u.Source = loop.UsageEstimated
	}
	return u, ok
}

// Finish implements agent.Decoder.
func (d *decoder) Finish(r *agent.Result, _ string) {
	r.Asks = d.asks
	if r.Failure != nil && r.Failure.Text == canceledElsewhere && r.Ended != proc.Exited && r.Ended != proc.Signaled {
		r.Failure = nil // pawl ended it, because its time or the run's was over.
	}
	silent := d.ended && r.Message == "" && r.Failure == nil
	switch {
	case silent && len(d.asks) > 0:
		r.Message = "It ended its turn when it was told that a human has to say yes."
	case silent && d.denied != "":
		r.Failure = &loop.Failure{Class: loop.FailureMalformed, Text: "it ended its turn without a word when it was denied something. " + d.denied}
	}
	if d.r.Keep && d.loadMethod != "" && d.session != "" && d.prompted {
		r.Session = &loop.Session{ID: d.session, Turns: 1}
		if d.r.Session != nil && d.r.Session.ID == d.session {
			r.Session.Turns += d.r.Session.Turns
		}
	}
}

package codex

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// The IDs of pawl's requests. Messages for the agent have larger IDs.
const (
	askInitialize = 1 + iota
	askThread
	askTurn
	askWords
)

// unknownMethod is JSON-RPC's code for an unknown method.
const unknownMethod = -32601

// needsAppServer says what to do if the program is too old.
const needsAppServer = "pawl needs one with an app-server: npm install -g @openai/codex"

// threadID matches valid IDs of conversations.
var threadID = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z-]{0,63}$`)

type text = agent.Text

// decoder is pawl's side of one turn.
type decoder struct {
	r     agent.Request
	in    *agent.Input
	judge func(policy.Call) policy.Answer

	ready    bool   // the program has answered
	lost     bool   // the conversation to continue does not exist
	ended    bool   // the turn is over
	thread   string // ID of the conversation
	turn     string
	model    string
	sent     int                     // ID of the last request
	declines map[int]json.RawMessage // requests to deny after their reason was accepted, by the ID of the reason's message
	items    items
	counts   counts
	limits   limits
	failed   *loop.Failure // the last error that the program does not retry
	retried  *loop.Failure // what the program is retrying now
	asks     []agent.Ask
}

func newDecoder(r agent.Request, in *agent.Input, judge func(policy.Call) policy.Answer) *decoder {
	d := &decoder{r: r, in: in, judge: judge, model: r.Model, sent: askWords, declines: map[int]json.RawMessage{}}
	d.items.open = map[string]item{}
	d.counts.last = map[string]loop.Usage{}
	if r.Session != nil {
		d.counts.last[r.Session.ID] = agent.SessionUsage(r.Session)
	}
	return d
}

// sendThreadRequests asks for a new conversation, or for the one to continue.
func (d *decoder) sendThreadRequests() {
	d.sendRequest(askInitialize, "initialize", map[string]any{"clientInfo": map[string]any{"name": "pawl", "title": "pawl", "version": "1"}})
	d.sendLine(map[string]any{"method": "initialized"})
	thread := map[string]any{"cwd": d.r.Dir, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
	if d.r.Model != "" {
		thread["model"] = d.r.Model
	}
	if d.r.Models.URL != "" {
		thread["modelProvider"] = providerName // Whatever else is configured, no other provider is used.
	}
	if d.r.Session == nil {
		thread["ephemeral"] = !d.r.Keep
		d.sendRequest(askThread, "thread/start", thread)
		return
	}
	thread["threadId"], thread["excludeTurns"] = d.r.Session.ID, true
	d.sendRequest(askThread, "thread/resume", thread)
}

func (d *decoder) sendRequest(id int, method string, params any) {
	d.sendLine(map[string]any{"id": id, "method": method, "params": params})
}

// sendLine queues a line. If the program has ended, that shows elsewhere.
func (d *decoder) sendLine(what any) {
	line, err := json.Marshal(what)
	if err != nil {
		return // Everything that is sent here can be encoded.
	}
	_, _ = d.in.Write(append(line, '\n'))
}

// message is any line of the program.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method text            `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int  `json:"code"`
		Message text `json:"message"`
	} `json:"error"`
}

// DecodeLine decodes one line.
func (d *decoder) DecodeLine(line []byte) ([]agent.Event, bool) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return nil, false
	}
	switch {
	case m.Method != "" && m.ID != nil:
		return d.answerQuestion(m), true
	case m.Method != "":
		return d.takeNotification(m), true
	case m.ID != nil && (m.Result != nil || m.Error != nil):
		return d.takeAnswer(m), true
	}
	return nil, false
}

// takeAnswer handles the program's answer to a request.
func (d *decoder) takeAnswer(m message) []agent.Event {
	var id int
	_ = json.Unmarshal(m.ID, &id) // An invalid ID belongs to no request.
	if question, waits := d.declines[id]; waits {
		// The program has answered to the reason, so the denial can follow.
		delete(d.declines, id)
		d.sendDecline(question)
	}
	if m.Error != nil {
		return d.takeError(id, m.Error.Code, string(m.Error.Message))
	}
	var res struct {
		Thread struct {
			ID text `json:"id"`
		} `json:"thread"`
		Turn struct {
			ID text `json:"id"`
		} `json:"turn"`
		Model text `json:"model"`
	}
	_ = json.Unmarshal(m.Result, &res) // Missing parts are empty.
	switch {
	case id == askThread && threadID.MatchString(string(res.Thread.ID)):
		d.ready, d.thread = true, string(res.Thread.ID)
		if res.Model != "" {
			d.model = string(res.Model)
		}
		d.sendRequest(askTurn, "turn/start", map[string]any{"threadId": d.thread, "input": textInput(d.r.Prompt)})
	case id == askThread:
		return d.takeError(id, 0, "it began no conversation")
	case id == askTurn:
		d.turn = string(res.Turn.ID)
	}
	return nil
}

// textInput returns a text as input for the agent.
func textInput(s string) any { return []any{map[string]any{"type": "text", "text": s}} }

// takeError handles an error as the answer. Errors of messages for the agent do
// not matter.
func (d *decoder) takeError(id, code int, why string) []agent.Event {
	switch {
	case id >= askWords || id == 0 || d.ended:
		return nil
	case code == unknownMethod:
		why = "this codex cannot be talked with; " + needsAppServer
	case id == askThread && d.r.Session != nil:
		d.lost, d.ready = true, true
		_ = d.in.Close() // The program exits when its input ends.
		return []agent.Event{{Kind: agent.EventRetry, Text: fmt.Sprintf("the conversation %s is gone, a fresh one begins: %s", d.r.Session.ID, agent.OneLine(why, agent.LongText))}}
	}
	d.ready = true
	return d.endTurn(&loop.Failure{Class: loop.FailureRequest, Text: agent.OneLine(why, agent.LongText), Typed: true})
}

// endTurn ends the turn, with a failure unless f is nil.
func (d *decoder) endTurn(f *loop.Failure) []agent.Event {
	d.ended = true
	if f == nil && d.counts.bad {
		f = &loop.Failure{Class: loop.FailureMalformed, Text: "it reports an invalid usage"}
	}
	if f == nil {
		return []agent.Event{{Kind: agent.EventEnd}}
	}
	return []agent.Event{{Kind: agent.EventError, Failure: f}, {Kind: agent.EventEnd}}
}

// params are the parameters of all notifications.
type params struct {
	Thread text      `json:"threadId"`
	TurnID text      `json:"turnId"`
	Item   item      `json:"item"`
	Delta  text      `json:"delta"`
	Limits limits    `json:"rateLimits"`
	Error  turnError `json:"error"`
	Again  bool      `json:"willRetry"`
	Usage  struct {
		Total tokens `json:"total"`
		Last  tokens `json:"last"`
	} `json:"tokenUsage"`
	Turn struct {
		ID     text       `json:"id"`
		Status text       `json:"status"`
		Error  *turnError `json:"error"`
	} `json:"turn"`
}

// takeNotification handles a notification.
func (d *decoder) takeNotification(m message) []agent.Event {
	var p params
	_ = json.Unmarshal(m.Params, &p) // Unreadable parts are empty.
	own := string(p.Thread) == d.thread
	if p.Item.Type != "" || p.Delta != "" {
		d.retried = nil
	}
	switch m.Method {
	case "turn/started":
		if own {
			d.turn = string(p.Turn.ID)
		}
	case "item/started":
		return d.items.startEvents(p.Item)
	case "item/completed":
		d.counts.written = 0
		return d.items.endEvents(p.Item, own)
	case "item/agentMessage/delta", "item/reasoning/textDelta", "item/reasoning/summaryTextDelta":
		d.counts.written += int64(len(p.Delta))
	case "thread/tokenUsage/updated":
		return d.counts.takeUpdate(p, own && string(p.TurnID) != d.turn, d.model)
	case "account/rateLimits/updated":
		return d.limits.takeUpdate(p.Limits)
	case "error":
		return d.takeTurnError(p, own)
	case "turn/completed":
		if own && !d.ended {
			return d.completeTurn(p)
		}
	}
	return nil
}

func (d *decoder) takeTurnError(p params, own bool) []agent.Event {
	switch {
	case p.Again:
		said := p.Error
		said.Message = cmp.Or(said.Details, said.Message)
		d.retried = said.toFailure(d.limits)
		return []agent.Event{{Kind: agent.EventRetry, Text: agent.OneLine(string(p.Error.Message+" "+p.Error.Details), agent.LongText)}}
	case own:
		d.failed = p.Error.toFailure(d.limits)
	}
	return nil
}

func (d *decoder) completeTurn(p params) []agent.Event {
	switch {
	case p.Turn.Status == "completed" && d.items.count == 0:
		// A refusal has no event of its own: the turn is just empty.
		return d.endTurn(&loop.Failure{Class: loop.FailureRefusal, Text: "it ended without a word, as it does when its model declines"})
	case p.Turn.Status == "completed":
		return d.endTurn(nil)
	case p.Turn.Status == "interrupted":
		return d.endTurn(&loop.Failure{Class: loop.FailureKilled, Text: "it was interrupted", Typed: true})
	case p.Turn.Error != nil:
		return d.endTurn(p.Turn.Error.toFailure(d.limits))
	case d.failed != nil:
		return d.endTurn(d.failed)
	}
	return d.endTurn(&loop.Failure{Class: loop.FailureCrash, Text: "its turn ended as " + agent.OneLine(string(p.Turn.Status), agent.LongText)})
}

// Finish adds what is known only at the end.
func (d *decoder) Finish(r *agent.Result, stderr string) {
	r.Asks = d.asks
	switch {
	case r.Failure != nil || d.ended:
	case !d.ready && r.Ended == proc.Exited && r.Exit != 0 && r.Exit != exitNotFound:
		r.Failure = &loop.Failure{Class: loop.FailureCrash, Text: fmt.Sprintf(
			"exit status %d before it could be talked with: %s; %s", r.Exit, cmp.Or(agent.LastLine(stderr), "it said nothing"), needsAppServer,
		)}
	default:
		r.Failure = cmp.Or(d.failed, d.retried)
	}
	d.counts.completeUsage(r, d.ended && !d.counts.bad, d.turn != "", d.model)
	if d.r.Keep && d.thread != "" {
		r.Session = &loop.Session{ID: d.thread, Totals: []loop.ModelUsage{{Model: d.model, Usage: d.counts.last[d.thread]}}, Turns: 1}
		if d.r.Session != nil && d.r.Session.ID == d.thread {
			r.Session.Turns += d.r.Session.Turns
		}
	}
}

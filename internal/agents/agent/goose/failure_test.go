package goose_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const retry = "\n\nPlease retry if you think this is a transient or recoverable error."

// message is a line in which something is said; an empty id is none.
func message(t *testing.T, id, text string) string {
	t.Helper()
	m := map[string]any{"id": nil, "role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}
	if id != "" {
		m["id"] = id
	}
	line, err := json.Marshal(map[string]any{"type": "message", "message": m})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

const (
	none = `{"type":"complete","total_tokens":null}` + "\n"
	some = `{"type":"complete","total_tokens":11,"input_tokens":10,"output_tokens":1}` + "\n"
	// call is a use of a tool in a message without an id.
	call = `{"type":"message","message":{"id":null,"role":"assistant","content":[{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"shell","arguments":{}}}}]}}` + "\n"
)

func TestNoticesOfTheProgramHaveAClass(t *testing.T) {
	for notice, want := range map[string]loop.FailureClass{
		"Ran into this error: Authentication error: no key." + retry:                                                        loop.FailureAuth,
		"Ran into this error: Credits exhausted: none left." + retry:                                                        loop.FailureQuota,
		"Ran into this error: Context length exceeded: too long." + retry:                                                   loop.FailureOverflow,
		"Ran into this error: Rate limit exceeded: slow down." + retry:                                                      loop.FailureRateLimit,
		"Ran into this error: Server error: Server error (500): boom." + retry:                                              loop.FailureServer,
		"Ran into this error: Network error: gone." + retry:                                                                 loop.FailureServer,
		"Ran into this error: Request failed: Stream decode error: cut." + retry:                                            loop.FailureServer,
		"Ran into this error: Request failed: Bad request (400): no." + retry:                                               loop.FailureRequest,
		"Ran into this error: Something of which a Rate limit exceeded: is said." + retry:                                   loop.FailureCrash,
		"I've reached the maximum number of actions I can do without user input. Would you like me to continue?":            loop.FailureTurns,
		"Unable to continue: Context limit still exceeded after compaction. Try using a shorter message, or a larger model": loop.FailureOverflow,
	} {
		_, _, turn := take(t, message(t, "", notice)+none, asItIs)
		if f := turn.Result.Failure; f == nil || f.Class != want || f.Typed || strings.Contains(f.Text, "\n") {
			t.Errorf("%q is %+v, want %s from a text", notice, f, want)
		}
		if turn.Result.Message != "" {
			t.Errorf("%q is taken for what the agent said", turn.Result.Message)
		}
	}
}

func TestWhatTheModelSaysIsNoNotice(t *testing.T) {
	notice := "Ran into this error: Rate limit exceeded: slow down." + retry
	for name, c := range map[string]struct {
		stdout string
		class  loop.FailureClass
	}{
		"the message has an id":                   {message(t, "m1", notice) + some, ""},
		"the model goes on":                       {message(t, "", notice) + message(t, "m2", "Done.") + some, ""},
		"it stands in a longer text":              {message(t, "", "I saw: "+notice) + some, ""},
		"it comes in pieces":                      {message(t, "", "Ran into this error: ") + message(t, "", "Rate limit exceeded."+retry) + some, ""},
		"the model's messages never have an id":   {call + message(t, "", notice) + some, loop.FailureCrash},
		"no call of the model has ever come back": {call + message(t, "", notice) + none, loop.FailureRateLimit},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, turn := take(t, c.stdout, asItIs)
			var class loop.FailureClass
			if f := turn.Result.Failure; f != nil {
				class = f.Class
			}
			if class != c.class {
				t.Errorf("it is %q, want %q", class, c.class)
			}
		})
	}
}

func TestAConversationThatNeverFitsEndsTheTurn(t *testing.T) {
	const shortened = `{"type":"message","message":{"id":null,"role":"assistant","content":[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Context limit reached. Compacting to continue conversation..."}]}}` + "\n"
	apart := shortened + strings.Repeat(call, 5)
	for name, c := range map[string]struct {
		stdout string
		class  loop.FailureClass
	}{
		"twice, and then it fits":     {shortened + call + shortened + message(t, "m1", "Done.") + some, ""},
		"three times in a row":        {shortened + call + shortened + call + shortened + message(t, "m1", "Done.") + some, loop.FailureOverflow},
		"often, with work in between": {strings.Repeat(apart, 6) + message(t, "m1", "Done.") + some, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, turn := take(t, c.stdout, asItIs)
			var class loop.FailureClass
			if f := turn.Result.Failure; f != nil {
				class = f.Class
			}
			if class != c.class {
				t.Errorf("it is %q, want %q", class, c.class)
			}
		})
	}
}

func TestAToolThatFailedIsBad(t *testing.T) {
	stdout := call + `{"type":"message","message":{"id":"u","role":"user","content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"error","error":"-32602: no such tool"}}]}}` +
		"\n" + message(t, "m1", "Done.") + some
	_, _, turn := take(t, stdout, asItIs)
	if e := turn.Events[1]; !e.Bad || e.ID != "c1" || e.Tool != "shell" || e.Text != "-32602: no such tool" {
		t.Errorf("the return is %+v", e)
	}
}

package codex

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// answerQuestion answers a request of the program, which waits for the answer.
func (d *decoder) answerQuestion(m message) []agent.Event {
	var q struct {
		Thread  text `json:"threadId"`
		Turn    text `json:"turnId"`
		Item    text `json:"itemId"`
		Command text `json:"command"`
		Reason  text `json:"reason"`
		Root    text `json:"grantRoot"`
	}
	_ = json.Unmarshal(m.Params, &q) // Missing parts are empty, and no policy allows an unknown call.
	call := policy.Call{Detail: agent.OneLine(string(q.Reason), agent.LongText)}
	var argv []string
	switch m.Method {
	case "item/commandExecution/requestApproval":
		command := string(cmp.Or(q.Command, d.items.open[string(q.Item)].Command))
		argv = splitWords(command)
		call.Kind, call.Tool, call.Command = policy.CallRun, "commandExecution", scriptOf(command, argv)
	case "item/fileChange/requestApproval":
		call.Kind, call.Tool, call.Paths = policy.CallEdit, "fileChange", d.items.open[string(q.Item)].changedPaths()
		if q.Root != "" {
			call.Paths = append(call.Paths, string(q.Root))
		}
	case "item/permissions/requestApproval":
		// The program's sandbox is disabled, so there is nothing more to grant.
		d.sendReply(m.ID, map[string]any{"permissions": map[string]any{}, "scope": "turn"})
		return nil
	default:
		d.sendLine(map[string]any{"id": m.ID, "error": map[string]any{"code": unknownMethod, "message": "pawl does not do " + string(m.Method)}})
		return nil
	}
	answer := d.judge(call)
	d.sendDecision(m.ID, string(q.Thread), string(q.Turn), answer)
	if answer.Ask {
		d.asks = append(d.asks, agent.Ask{
			Argv: argv, Why: strings.TrimSpace(call.Tool + " " + cmp.Or(call.Detail, call.Command, strings.Join(call.Paths, " "))),
		})
	}
	return []agent.Event{{Kind: agent.EventPermission, ID: string(q.Item), Tool: call.Tool, Wanted: call, Answer: answer}}
}

// sendDecision answers for this one action. A denial cannot contain a reason, so
// the reason is sent first as a message, and the denial after the program has
// accepted the message. Then the agent reads both in one call of its model.
func (d *decoder) sendDecision(id json.RawMessage, thread, turn string, a policy.Answer) {
	switch {
	case a.Allow:
		d.sendReply(id, map[string]any{"decision": "accept"})
	case a.Words == "":
		d.sendDecline(id)
	default:
		d.declines[d.sent] = id
		d.sendRequest(d.sent, "turn/steer", map[string]any{
			"threadId": thread, "expectedTurnId": turn, "input": textInput("What you asked leave for was not done: " + a.Words),
		})
		d.sent++
	}
}

func (d *decoder) sendDecline(id json.RawMessage) {
	d.sendReply(id, map[string]any{"decision": "decline"})
}

func (d *decoder) sendReply(id json.RawMessage, result any) {
	d.sendLine(map[string]any{"id": id, "result": result})
}

// scriptOf returns the script that a shell runs, or else the whole command.
func scriptOf(command string, argv []string) string {
	if len(argv) != 3 || argv[1] != "-lc" && argv[1] != "-c" {
		return command
	}
	switch path.Base(argv[0]) {
	case "sh", "bash", "zsh", "dash":
		return argv[2]
	}
	return command
}

// splitWords splits a command line into the words that it was joined from. It
// returns nil if a quote is open, or if only a shell could interpret it.
func splitWords(command string) []string {
	var all []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(command); i++ {
		switch c := command[i]; c {
		case ' ', '\t', '\n':
			if inWord {
				all = append(all, word.String())
				word.Reset()
			}
			inWord = false
		case '\'':
			end := strings.IndexByte(command[i+1:], '\'')
			if end < 0 {
				return nil
			}
			word.WriteString(command[i+1 : i+1+end])
			i, inWord = i+1+end, true
		case '"':
			n, ok := readQuoted(&word, command[i+1:])
			if !ok {
				return nil
			}
			i, inWord = i+n, true
		case '\\':
			if i++; i == len(command) {
				return nil
			}
			word.WriteByte(command[i])
			inWord = true
		case '$', '`', ';', '&', '|', '<', '>', '(', ')', '*', '?', '[', '#', '~', '!', '{', '}':
			return nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		all = append(all, word.String())
	}
	return all
}

// readQuoted reads up to the closing quote, and returns how many bytes it read.
func readQuoted(word *strings.Builder, rest string) (int, bool) {
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\' && i+1 < len(rest) && strings.IndexByte("$`\"\\\n", rest[i+1]) >= 0:
			i++
			word.WriteByte(rest[i])
		case c == '$' || c == '`':
			return 0, false
		default:
			word.WriteByte(c)
		}
	}
	return 0, false
}

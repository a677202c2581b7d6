package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// codeBusy is of the range that JSON-RPC leaves to servers.
const codeBusy = -32000

const (
	maxID     = 1024    // bytes of an id as it is written
	maxExact  = 1 << 53 // below it an integer is the same in every language
	maxFields = 64      // members of a message, those included that nobody knows
	maxDepth  = 100     // objects and lists in each other
	maxReason = 2000    // bytes of what an error says
)

// A fault says why a message is not passed on.
type fault struct {
	code   int64
	reason string
	id     any  // of the message, if it has one that can be repeated: a string or a number
	silent bool // it is an answer, and no answer is answered
}

func parseError(format string, args ...any) *fault {
	return &fault{code: jsonrpc.CodeParseError, reason: "invalid JSON: " + fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *fault {
	return &fault{code: jsonrpc.CodeInvalidRequest, reason: "not a JSON-RPC message: " + fmt.Sprintf(format, args...)}
}

// answer is the error response for a fault. Its id is null if that of the
// message is not known.
func (f *fault) answer() []byte {
	data, err := json.Marshal(struct {
		Version string        `json:"jsonrpc"`
		ID      any           `json:"id"`
		Error   jsonrpc.Error `json:"error"`
	}{"2.0", f.id, jsonrpc.Error{Code: f.code, Message: f.reason}})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

// check says what is wrong with a line before it is known what it contains.
func check(line []byte) *fault {
	if !utf8.Valid(line) {
		return parseError("it is not UTF-8")
	}
	if json.Valid(line) {
		if isDeep(line) {
			return invalid("objects and lists are in each other more than %d times", maxDepth)
		}
		return nil
	}
	var none struct{}
	err := json.Unmarshal(line, &none)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return parseError("%v, at byte %d of the line", syntax, syntax.Offset)
	}
	return parseError("%v", err)
}

// Refusal is the error response to a text that cannot be read, or is not one sound message; nil
// if it is one. It is for those to whom each message comes by itself: nothing may follow it, and it
// is no array, which may ask for any amount of answers.
func Refusal(text []byte, readErr error) []byte {
	if readErr != nil {
		return parseError("%v", readErr).answer()
	}
	text = bytes.Trim(text, " \t\r\n")
	bad := check(text)
	if bad == nil {
		var f fields
		if f, bad = readFields(text); bad == nil {
			_, bad = f.message()
		}
	}
	if bad == nil {
		return nil
	}
	return bad.answer()
}

// isDeep reports whether valid JSON is deeper than maxDepth.
func isDeep(line []byte) bool {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			for i++; line[i] != '"'; i++ {
				if line[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// boundError shortens what an error response says: the SDK repeats in it, quoted,
// what a client has sent, which may be all of a line.
func boundError(m jsonrpc.Message) jsonrpc.Message {
	r, ok := m.(*jsonrpc.Response)
	if !ok || r.Error == nil || len(r.Error.Error()) <= maxReason {
		return m
	}
	short := &jsonrpc.Error{Message: strings.ToValidUTF8(r.Error.Error()[:maxReason], "") + " …"}
	if e, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
		short.Code = e.Code
	}
	return &jsonrpc.Response{ID: r.ID, Error: short}
}

// fields are the members of a message, as they are written.
type fields struct {
	version, id, method, params, result, failure json.RawMessage
}

// readFields reads one object of valid JSON. Names are taken literally, as
// JSON-RPC asks, and none may come twice, because readers differ in which of
// them counts.
func readFields(object []byte) (fields, *fault) {
	var f fields
	d := json.NewDecoder(bytes.NewReader(object))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return f, invalid("expected an object, not %s", kindOf(object))
	}
	known := map[string]*json.RawMessage{
		"jsonrpc": &f.version, "id": &f.id, "method": &f.method, "params": &f.params, "result": &f.result, "error": &f.failure,
	}
	var twice string
	for n := 0; d.More(); n++ {
		if n == maxFields {
			return f, invalid("it has more than %d members", maxFields)
		}
		name, err := d.Token()
		if err != nil {
			return f, parseError("%v", err)
		}
		into := known[name.(string)]
		switch {
		case into == nil:
			into = new(json.RawMessage)
		case *into != nil:
			twice, into = name.(string), new(json.RawMessage)
		}
		if err := d.Decode(into); err != nil {
			return f, parseError("%v", err)
		}
	}
	if twice != "" {
		return f, invalid("it has %q twice", twice)
	}
	return f, nil
}

func kindOf(value []byte) string {
	switch value[0] {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// message is the message that an object stands for. A fault has the id of the
// message if that is sound.
func (f fields) message() (jsonrpc.Message, *fault) {
	id, idFault := readID(f.id)
	var bad *fault
	switch {
	case !isText(f.version, "2.0"):
		bad = invalid(`"jsonrpc" must be "2.0"`)
	case f.method == nil && f.result == nil && f.failure == nil:
		bad = invalid(`it has none of "method", "result" and "error"`)
	case f.method == nil:
		return f.response(id, idFault)
	case f.result != nil || f.failure != nil:
		bad = invalid(`it has "method" and the members of an answer`)
	case idFault != nil:
		bad = idFault
	}
	if bad != nil {
		bad.id = id.Raw()
		return nil, bad
	}

	request := &jsonrpc.Request{ID: id, Params: f.params}
	if json.Unmarshal(f.method, &request.Method) != nil || f.method[0] != '"' {
		bad = invalid(`"method" must be a string, not %s`, kindOf(f.method))
	} else if f.params != nil {
		switch f.params[0] {
		case 'n':
			request.Params = nil
		case '{', '[':
		default:
			bad = invalid(`"params" must be an object, not %s`, kindOf(f.params))
		}
	}
	if bad != nil {
		bad.id = id.Raw()
		return nil, bad
	}
	return request, nil
}

// response is never refused with the id of the message: that is one of ours,
// and the client would take the error for an answer to a call of its own.
func (f fields) response(id jsonrpc.ID, idFault *fault) (jsonrpc.Message, *fault) {
	r := &jsonrpc.Response{ID: id, Result: f.result}
	if f.failure != nil {
		var e *jsonrpc.Error
		if json.Unmarshal(f.failure, &e) != nil || e == nil || f.result != nil {
			return nil, invalid(`an answer has either "result" or "error", an object with code and message`)
		}
		if !id.IsValid() {
			return nil, &fault{silent: true}
		}
		r.Error = e
	}
	switch {
	case idFault != nil:
		return nil, idFault
	case !id.IsValid():
		return nil, invalid("an answer needs the id of its call")
	}
	return r, nil
}

func isText(raw json.RawMessage, want string) bool {
	var s string
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil && s == want
}

// readID reads an id that can be repeated exactly. No id is a valid one, of a
// notification.
func readID(raw json.RawMessage) (jsonrpc.ID, *fault) {
	none := jsonrpc.ID{}
	switch {
	case raw == nil:
		return none, nil
	case len(raw) > maxID:
		return none, invalid(`"id" is longer than %d bytes`, maxID)
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return none, parseError("%v", err)
		}
		id, _ := jsonrpc.MakeID(s)
		return id, nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) >= maxExact {
			return none, invalid(`"id" must be an integer below 2^53, or a string`)
		}
		id, _ := jsonrpc.MakeID(n)
		return id, nil
	}
	return none, invalid(`"id" must be a string or an integer, not %s`, kindOf(raw))
}

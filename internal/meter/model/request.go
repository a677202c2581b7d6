package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/spend"
)

// usualOutput is what an answer may have if the request does not say it.
const usualOutput = 32000

// bytesPerToken is how few bytes a token has: for input and output alike an
// estimate should rather be too high.
const bytesPerToken = 3

// tokens estimates how many tokens a text has.
func tokens(size int64) int64 { return (size + bytesPerToken - 1) / bytesPerToken }

// fields are those of a JSON object. Names match exactly, as they do there.
type fields map[string]json.RawMessage

func (f fields) count(names ...string) (int64, string) {
	for _, name := range names {
		var c loop.Count
		if raw, ok := f[name]; ok && json.Unmarshal(raw, &c) == nil && c.Set && !c.Bad {
			return c.N, name
		}
	}
	return 0, ""
}

func (f fields) text(name string) string {
	var s string
	_ = json.Unmarshal(f[name], &s) // What is no text names nothing.
	return s
}

func (f fields) yes(name string) bool { return string(f[name]) == "true" }

func (f fields) under(names ...string) (fields, string) {
	for _, name := range names {
		var below fields
		if raw, ok := f[name]; ok && json.Unmarshal(raw, &below) == nil && below != nil {
			return below, name
		}
	}
	return nil, ""
}

// set puts a value of ours in.
func (f fields) set(name string, value any) {
	f[name], _ = json.Marshal(value) // It is a number or an object that was read before.
}

// encode writes the fields anew. What is inside them stays as it was.
func (f fields) encode() []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(f) // They were read from valid JSON.
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// request is a model call as the client made it.
type request struct {
	route

	body   []byte
	top    fields
	plain  int64 // bytes of the body without pictures and files
	input  int64 // tokens, estimated
	kept   int64 // of them, those that the provider should have in its cache
	output int64 // tokens, at most
	ours   bool  // the event that only tells the usage was asked for here

	hosted []loop.ModelTool // the vendor's own tools that it asks for, all of them allowed
}

var errNoObject = errors.New("its body is no JSON object")

// readRequest reads the body of a call that spends.
func readRequest(r route, body []byte) (*request, error) {
	q := &request{route: r, body: body}
	if err := json.Unmarshal(body, &q.top); err != nil || q.top == nil {
		return nil, errNoObject
	}
	if q.model == "" {
		q.model = q.top.text("model")
	}
	if q.model == "" {
		return nil, errors.New("it names no model")
	}
	var files int64
	q.plain, files = sizes(body)
	q.input = max(tokens(q.plain)+files, 1)
	q.stream = q.stream || q.top.yes("stream")
	q.output = min(max(r.shape.most(q.top), 1), loop.MostTokens)
	return q, nil
}

// call is what the request wants to spend.
func (q *request) call() spend.Call {
	return spend.Call{
		Model: q.model, Input: q.input - q.kept, Cached: q.kept, Output: q.output,
		CacheWrite:   q.shape == messages && bytes.Contains(q.body, []byte(`"cache_control"`)),
		CacheWrite1h: bytes.Contains(q.body, []byte(`"1h"`)),
	}
}

// fit makes the request one whose answer is counted and is no longer than it may
// be. A stream is not made shorter: it is cut if it has to be.
func (q *request) fit(output int64) error {
	changed := false
	if !q.stream && output < q.output {
		if !q.shape.lower(q.top, output) {
			return fmt.Errorf("%d output tokens are left, and the call cannot be made so short", output)
		}
		q.output, changed = output, true
	}
	if q.shape == chat && q.stream {
		options, _ := q.top.under("stream_options")
		if !options.yes("include_usage") {
			if options == nil {
				options = fields{}
			}
			options.set("include_usage", true)
			q.top.set("stream_options", options)
			q.ours, changed = true, true
		}
	}
	if changed {
		q.body = q.top.encode()
	}
	return nil
}

const (
	longRun      = 8 << 10 // bytes of base64 in a row that are a file and no text
	bytesPerFile = 100     // of base64, for each token that a picture or a document has
	leastFile    = 3000    // tokens of one
)

// sizes tells files in base64 from text, which they would outweigh by far: it
// returns the bytes of the text and the tokens of the files.
func sizes(body []byte) (plain, files int64) {
	plain = int64(len(body))
	for rest := body; len(rest) > 0; {
		n := 0
		for n < len(rest) && inBase64[rest[n]] {
			n++
		}
		if n >= longRun {
			plain -= int64(n)
			files += max(int64(n)/bytesPerFile, leastFile)
		}
		rest = rest[min(n+1, len(rest)):]
	}
	return plain, files
}

var inBase64 = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		set[c] = true
	}
	return set
}()

func mentions(text string, any ...string) bool {
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

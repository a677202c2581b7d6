package modelapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// BytesPerToken is a low estimate of the bytes in a token, so that estimates of
// input and output are rather too high.
const BytesPerToken = 3

// EstimateTokens estimates the number of tokens in a text of size bytes.
func EstimateTokens(size int64) int64 { return (size + BytesPerToken - 1) / BytesPerToken }

// fields are the fields of a JSON object. Their names are case-sensitive.
type fields map[string]json.RawMessage

// count returns the first of the named fields that is a valid count, and its
// name.
func (f fields) count(names ...string) (int64, string) {
	for _, name := range names {
		var c loop.Count
		if raw, ok := f[name]; ok && json.Unmarshal(raw, &c) == nil && c.Set && !c.Bad {
			return c.N, name
		}
	}
	return 0, ""
}

// object returns the first of the named fields that is an object, and its name.
func (f fields) object(names ...string) (fields, string) {
	for _, name := range names {
		var below fields
		if raw, ok := f[name]; ok && json.Unmarshal(raw, &below) == nil && below != nil {
			return below, name
		}
	}
	return nil, ""
}

func (f fields) isTrue(name string) bool { return string(f[name]) == "true" }

// set sets a field to a number, or to an object that was read before.
func (f fields) set(name string, value any) {
	f[name], _ = json.Marshal(value) // Neither can fail.
}

// Request is a model call as a client made it.
type Request struct {
	Shape  *Shape
	Model  string
	Stream bool
	Body   []byte // to forward; Fit may change it

	Input  int64 // tokens, estimated
	Cached int64 // those of Input that the provider probably has in its cache; set by the caller
	Output int64 // tokens, at most

	Searches bool // the vendor may search the web; set by the caller

	// UsageOnly says that Fit requested an event with the usage only, which the
	// client did not request.
	UsageOnly bool

	top   fields
	plain int64 // bytes of the body without images and files
}

// ReadRequest reads the body of a call. Model and stream are what the path says;
// if it does not say, the body does.
func ReadRequest(s *Shape, model string, stream bool, body []byte) (*Request, error) {
	q := &Request{Shape: s, Model: model, Body: body}
	if err := json.Unmarshal(body, &q.top); err != nil || q.top == nil {
		return nil, errors.New("its body is not a JSON object")
	}
	if q.Model == "" {
		_ = json.Unmarshal(q.top["model"], &q.Model) // Left empty if it is not a string.
	}
	if q.Model == "" {
		return nil, errors.New("it names no model")
	}
	var files int64
	q.plain, files = measureText(body)
	q.Input = max(EstimateTokens(q.plain)+files, 1)
	q.Stream = stream || q.top.isTrue("stream")
	q.Output = min(max(s.maxOutput(q.top), 1), loop.MostTokens)
	return q, nil
}

// OffersTools reports whether the call offers the model tools.
func (q *Request) OffersTools() bool { return len(q.top["tools"]) > len("[]") }

// CacheWrite reports whether the request asks the vendor to cache the input at a
// higher price, and whether to keep it for an hour.
func (q *Request) CacheWrite() (asked, hour bool) {
	return q.Shape == Messages && bytes.Contains(q.Body, []byte(`"cache_control"`)), bytes.Contains(q.Body, []byte(`"1h"`))
}

// Fit changes the request so that its usage is reported and its answer has at
// most so many tokens. It does not limit a stream, which can be cut while it
// passes.
func (q *Request) Fit(output int64) error {
	changed := false
	if !q.Stream && output < q.Output {
		if !q.Shape.lowerOutput(q.top, output) {
			return fmt.Errorf("%d output tokens are left, and the call cannot be made so short", output)
		}
		q.Output, changed = output, true
	}
	if q.Shape == Chat && q.Stream {
		options, _ := q.top.object("stream_options")
		if !options.isTrue("include_usage") {
			if options == nil {
				options = fields{}
			}
			options.set("include_usage", true)
			q.top.set("stream_options", options)
			q.UsageOnly, changed = true, true
		}
	}
	if changed {
		// The contents of the fields do not change.
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(q.top) // They were read from valid JSON.
		q.Body = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	}
	return nil
}

const (
	longRun      = 8 << 10 // bytes of base64 in a row that are a file, not text
	bytesPerFile = 100     // bytes of base64 for each token of an image or a document
	leastFile    = 3000    // tokens of the smallest file
)

// measureText tells files in base64, which would dominate the estimate, from
// text. It returns the bytes of the text and the tokens of the files.
func measureText(body []byte) (plain, files int64) {
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

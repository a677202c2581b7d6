package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// drawnCall is a call and what the provider answers.
type drawnCall struct {
	stream   bool
	most     int64 // max_tokens of the request
	input    int64 // tokens that are reported
	output   int64 // pieces of text
	reported int64 // tokens of output that are reported
}

var drawnCalls = rapid.Custom(func(t *rapid.T) drawnCall {
	c := drawnCall{
		stream: rapid.Bool().Draw(t, "stream"), most: rapid.Int64Range(1, 4000).Draw(t, "max_tokens"),
		input: rapid.Int64Range(1, 20).Draw(t, "input"),
	}
	c.output = rapid.Int64Range(0, c.most).Draw(t, "output")
	c.reported = rapid.SampledFrom([]int64{c.output, c.output, c.output, 1}).Draw(t, "reported")
	return c
})

// aToken is a piece of text that is estimated to be one token.
const aToken = "abc"

// drawnProvider answers the calls that the model's name tells, with no more than
// a request allows.
func drawnProvider(w http.ResponseWriter, req *http.Request) {
	var q struct {
		Model string
		Most  int64 `json:"max_tokens"`
	}
	if err := json.NewDecoder(req.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var c drawnCall
	_, err := fmt.Sscanf(q.Model, "m-%t-%d-%d-%d", &c.stream, &c.input, &c.output, &c.reported)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.output, c.reported = min(c.output, q.Most), min(c.reported, q.Most)
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d}`, c.input, c.reported)
	if !c.stream {
		write(w, fmt.Sprintf(`{"model":"m","choices":[{"message":{"content":%q}}],"usage":%s}`, strings.Repeat(aToken, int(c.output)), usage))
		return
	}
	var pieces []string
	for left := c.output; left > 0; left -= 100 {
		pieces = append(pieces, strings.Repeat(aToken, int(min(left, 100))))
	}
	write(w, chatStream(usage, pieces...))
}

func (c drawnCall) ask() string {
	return fmt.Sprintf(`{"model":"m-%t-%d-%d-%d","stream":%t,"max_tokens":%d,"messages":[]}`, c.stream, c.input, c.output, c.reported, c.stream, c.most)
}

func TestCallsOfAnySortTogetherSpendNoMoreThanTheGrantAndOneAnswer(t *testing.T) {
	r := start(t, modelapi.OpenAI, drawnProvider)
	rapid.Check(t, func(t *rapid.T) {
		grant := rapid.Int64Range(1, 12000).Draw(t, "grant")
		callers := rapid.SliceOfN(rapid.SliceOfN(drawnCalls, 1, 5), 1, 4).Draw(t, "callers")
		e := &Endpoint{Base: r.Base, Provider: modelapi.OpenAI, Account: &spend.Account{Grant: loop.Amount{Tokens: grant}}}
		var largest int64
		var all sync.WaitGroup
		for _, calls := range callers {
			for _, c := range calls {
				largest = max(largest, modelapi.EstimateTokens(int64(len(c.ask())))+c.output)
			}
			all.Go(func() {
				for _, c := range calls {
					call(e, c.ask())
				}
			})
		}
		all.Wait()
		e.via.CloseIdleConnections()
		if used := e.Account.Used().Tokens; used > grant+largest {
			t.Fatalf("used %d of %d, and the largest answer has %d", used, grant, largest)
		}
	})
}

// call makes a call to an endpoint that is not served; a cut answer panics there.
func call(e *Endpoint, ask string) {
	defer func() {
		cut := recover()
		if err, ok := cut.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			return
		}
		if cut != nil {
			panic(cut)
		}
	}()
	req, err := http.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(ask))
	if err != nil {
		panic(err)
	}
	e.ServeHTTP(&discarded{header: http.Header{}}, req)
}

// discarded is a client that reads everything and looks at nothing.
type discarded struct{ header http.Header }

// Header is that of the answer.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader does nothing.
func (d *discarded) WriteHeader(int) {}

func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }

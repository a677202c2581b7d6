package model

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// BenchmarkCall makes small calls, directly and through the endpoint.
func BenchmarkCall(b *testing.B) {
	rec := modelcalls.Answers["Anthropic Messages, stream"]
	both(b, says(rec.Body), func(b *testing.B, ask func() int64) {
		b.Helper()
		for b.Loop() {
			ask()
		}
	})
}

// BenchmarkStream moves a stream of small events, as fast as it goes.
func BenchmarkStream(b *testing.B) {
	event := modelcalls.EventStream(true, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"four score and"}}`)
	answer := modelcalls.EventStream(true, `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`) +
		strings.Repeat(event, 100_000) + modelcalls.EventStream(true, `{"type":"message_delta","usage":{"output_tokens":400000}}`)
	both(b, says(answer), func(b *testing.B, ask func() int64) {
		b.Helper()
		b.SetBytes(int64(len(answer)))
		for b.Loop() {
			if n := ask(); n != int64(len(answer)) {
				b.Fatalf("%d of %d bytes", n, len(answer))
			}
		}
	})
}

func both(b *testing.B, handler http.HandlerFunc, run func(b *testing.B, ask func() int64)) {
	b.Helper()
	r := start(b, modelapi.Anthropic, handler)
	body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":1,"messages":[{"content":%q}]}`, strings.Repeat("hello ", 10_000))
	for name, address := range map[string]string{"direct": r.Base.Host, "endpoint": r.addr} {
		b.Run(name, func(b *testing.B) {
			run(b, func() int64 {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+address+"/v1/messages", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				n, err := io.Copy(io.Discard, resp.Body)
				if err != nil {
					b.Fatal(err)
				}
				return n
			})
		})
	}
}

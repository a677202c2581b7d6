package modelapi

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// fuzzUsage checks what holds for every answer, whoever writes it.
func fuzzUsage(f *testing.F, s *Shape) {
	f.Helper()
	for _, rec := range modelcalls.Answers {
		if shapeOf(rec.Path) == s {
			f.Add([]byte(rec.Body))
		}
	}
	for _, bad := range []string{"-1", "9223372036854775808", "1e309", "NaN", "null", `"7"`, "0.5", "{}"} {
		for _, rec := range modelcalls.Answers {
			if shapeOf(rec.Path) == s {
				f.Add([]byte(strings.NewReplacer(`_tokens":4`, `_tokens":`+bad, `TokenCount":1`, `TokenCount":`+bad).Replace(rec.Body)))
			}
		}
	}
	q := &Request{Input: 100, plain: 300, Output: 500}
	f.Fuzz(func(t *testing.T, data []byte) {
		streamed, raw, err := read(s, bytes.NewReader(data))
		if !errors.Is(err, io.EOF) || !bytes.Equal(raw, data) {
			t.Fatalf("%v: %d bytes became %d", err, len(data), len(raw))
		}
		whole := Tally{ended: true}
		s.readWhole(&whole, data)
		for how, got := range map[string]Tally{"stream": streamed, "whole": whole} {
			u, note := got.Usage(q)
			for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.CacheWrite - u.CacheWrite1h} {
				if n < 0 || n > 4*loop.MostTokens {
					t.Fatalf("%s: usage = %+v", how, u)
				}
			}
			text := got.written()
			if u.Input+u.CacheRead+u.CacheWrite == 0 || tooFew(u.Output, text, mostPerOutput) {
				t.Fatalf("%s: usage = %+v for %d bytes", how, u, text)
			}
			if got.bad && (note == "" || u.Input < q.Input || got.ended && u.Output < q.Output || u.Source != loop.UsageEstimated) {
				t.Fatalf("%s: a bad usage is charged with %+v, %q", how, u, note)
			}
		}
	})
}

func FuzzMessages(f *testing.F) { fuzzUsage(f, Messages) }

func FuzzChat(f *testing.F) { fuzzUsage(f, Chat) }

func FuzzResponses(f *testing.F) { fuzzUsage(f, Responses) }

func FuzzGenerate(f *testing.F) { fuzzUsage(f, Generate) }

func FuzzErrors(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"type":"rate_limit_error","message":"m","resets_at":1,"resets_in_seconds":2,"details":[{"reason":"r","retryDelay":"1s"}]}}`,
		`[{"error":"x"}]`, `{"error":{"code":7}}`, "<html>", "",
	} {
		f.Add(429, seed, "30")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		got := FailureOf(status, map[string][]string{"Retry-After": {after}, "X-Ratelimit-Reset-Tokens": {after}}, ReadError([]byte(body)), noon)
		if got.Class == "" || strings.ContainsAny(got.Text, "\n\r\x00") || len(got.Text) > maxSaid+3 {
			t.Fatalf("failure = %+v", got)
		}
		if !got.Reset.IsZero() && !isPlausible(got.Reset, noon) {
			t.Fatalf("a reset at %v", got.Reset)
		}
	})
}

func FuzzRequests(f *testing.F) {
	for _, rec := range modelcalls.Answers {
		f.Add([]byte(rec.Ask))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, s := range []*Shape{Messages, Chat, Responses, Generate} {
			q, err := ReadRequest(s, "m", false, body)
			if err != nil {
				continue
			}
			if q.Input < 1 || q.Output < 1 {
				t.Fatalf("it asks for %d and %d tokens", q.Input, q.Output)
			}
			if q.Fit(1) != nil || q.Stream {
				continue
			}
			again, err := ReadRequest(s, "m", false, q.Body)
			if err != nil || again.Output > 1 {
				t.Fatalf("after it was made shorter: %+v, %v", again, err)
			}
		}
	})
}

package model

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
)

// A token has four bytes of text or a few more, in prose and in code; eight is
// already much. A report that leaves more than four times that to each token of
// an answer is not believed. Of a request a vendor may leave parts away before
// the model reads it, so that there the bound is eight times as high.
const (
	mostPerOutput = 8 * 4
	mostPerInput  = mostPerOutput * 8
	trifle        = 256 // bytes of text that prove nothing
)

// tooFew tells whether a count of tokens cannot be that of so much text.
func tooFew(counted, text, most int64) bool {
	return text > trifle && counted < text/most || text > 0 && counted == 0
}

// tally is what one answer has said about its usage so far, and how much text it
// had. The zero tally is of an answer that has not begun.
type tally struct {
	model   string
	counts  loop.Usage // the largest that was said: these counters never go back
	inSaid  bool
	outSaid bool
	bad     bool // a number was none
	ended   bool // the event came that ends a stream, or the answer was whole

	text   int64 // bytes that the model wrote
	items  int64 // the same once more, as finished parts of the answer
	parts  parts // of them, searches
	before int64 // of text, when output was last said

	failure *vendorError // that it ended with, in the place where the vendor says so
}

// parts are finished parts of an answer that have a fee.
type parts struct{ web, file int64 }

// said is one report of usage, in tokens that are each counted once, and in
// searches. Reasoning is a part of output.
type said struct {
	input, output, cacheRead, cacheWrite, cacheWrite1h loop.Count
	reasoning, web, file                               loop.Count
}

// counts are all numbers of a report.
func (s said) counts() []loop.Count {
	return []loop.Count{s.input, s.output, s.cacheRead, s.cacheWrite, s.cacheWrite1h, s.reasoning, s.web, s.file}
}

// inclusive turns a report in which input holds the cached tokens into one in
// which each is counted once.
func (s said) inclusive() said {
	cached := s.cacheRead.N + s.cacheWrite.N
	if !s.input.Set || s.input.Bad || s.cacheRead.Bad || s.cacheWrite.Bad {
		return s
	}
	s.input.N -= cached
	s.input.Bad = s.input.N < 0
	return s
}

// take adds a report. Text that came with it has to be counted before.
func (t *tally) take(s said) {
	for _, c := range s.counts() {
		t.bad = t.bad || c.Bad
	}
	if s.cacheWrite1h.N > s.cacheWrite.N {
		t.bad = true
	}
	if t.bad {
		return
	}
	t.counts.Input = max(t.counts.Input, s.input.N)
	t.counts.Output = max(t.counts.Output, s.output.N)
	t.counts.CacheRead = max(t.counts.CacheRead, s.cacheRead.N)
	t.counts.CacheWrite = max(t.counts.CacheWrite, s.cacheWrite.N)
	t.counts.CacheWrite1h = max(t.counts.CacheWrite1h, s.cacheWrite1h.N)
	t.counts.Reasoning = max(t.counts.Reasoning, min(s.reasoning.N, t.counts.Output))
	t.counts.WebSearches = max(t.counts.WebSearches, s.web.N)
	t.counts.FileSearches = max(t.counts.FileSearches, s.file.N)
	t.inSaid = t.inSaid || s.input.Set
	if s.output.Set {
		t.outSaid, t.before = true, t.written()
	}
}

// searched takes the searches among the finished parts of an answer: those that
// came one by one, or all of them once more.
func (t *tally) searched(p parts) {
	t.counts.WebSearches = max(t.counts.WebSearches, p.web)
	t.counts.FileSearches = max(t.counts.FileSearches, p.file)
}

// untouched tells whether the provider said in its answer that it did not take the
// call, before the model wrote anything: some answer 200 first. Like any other
// error that costs nothing.
func (t *tally) untouched() bool {
	return t.failure != nil && !t.inSaid && !t.outSaid && !t.bad && t.written() == 0
}

func (t *tally) written() int64 { return max(t.text, t.items) }

// oddity is what is wrong with the numbers of a provider; empty: nothing.
type oddity string

const (
	oddNumber oddity = "its usage is no number of tokens: the call is charged with all that was held for it"
	oddCut    oddity = "its answer was cut and its usage cannot be read: the call is charged with what was sent and what came"
	oddInput  oddity = "it counts far fewer tokens than the request has: they are estimated"
	oddOutput oddity = "it counts far fewer tokens than the answer has: they are estimated"
)

// usage is what the call has used so far.
func (t *tally) usage(q *request) (u loop.Usage, odd oddity) {
	text := t.written()
	if t.bad {
		u = loop.Usage{
			Input:  max(q.input, t.counts.Input+t.counts.CacheRead+t.counts.CacheWrite),
			Output: max(tokens(text), t.counts.Output), Source: loop.UsageEstimated,
			WebSearches: t.counts.WebSearches, FileSearches: t.counts.FileSearches,
		}
		if !t.ended {
			// It was cut: what was sent and what came is known, and no vendor bills more.
			return u, oddCut
		}
		u.Output = max(u.Output, q.output)
		return u, oddNumber
	}
	u = t.counts
	if q.shape == chat && slices.Contains(q.hosted, loop.ToolWebSearch) {
		u.WebSearches = max(u.WebSearches, 1) // Chat completions count no searches: the fee is one for each call.
	}
	u.Source = loop.UsageMetered
	switch in := u.Input + u.CacheRead + u.CacheWrite; {
	case !t.inSaid:
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Source = q.input-q.kept, q.kept, 0, 0, loop.UsageEstimated
	case tooFew(in, q.plain, mostPerInput):
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Source = max(q.input, in), 0, 0, 0, loop.UsageEstimated
		odd = oddInput
	}
	unsaid := text - t.before
	switch {
	case tooFew(u.Output, text, mostPerOutput):
		if t.outSaid && unsaid == 0 {
			odd = oddOutput
		}
		u.Output, u.Source = max(u.Output, tokens(text)), loop.UsageEstimated
	case !t.outSaid:
		u.Source = loop.UsageEstimated
	case unsaid > 0:
		u.Output, u.Source = u.Output+tokens(unsaid), loop.UsageEstimated
	}
	return u, odd
}

// unread takes an event that cannot be read: all of it may be text, and what it
// said of usage is lost.
func (t *tally) unread(data []byte) {
	t.text += int64(len(data))
	t.bad = true
}

// length is a JSON value of which only the size matters: of a string the bytes
// that it stands for, of anything else those that it is written with.
type length int64

// UnmarshalJSON never fails.
func (l *length) UnmarshalJSON(data []byte) error {
	*l = length(len(data))
	if len(data) < 2 || data[0] != '"' {
		if string(data) == "null" {
			*l = 0
		}
		return nil
	}
	n := len(data) - 2
	for i := 1; i < len(data)-1; i++ {
		if data[i] == '\\' {
			// An escape is never longer than what it stands for by more than this.
			skip := 1
			if data[i+1] == 'u' {
				skip = 3
			}
			n -= skip
			i++
		}
	}
	*l = length(n)
	return nil
}

// decode reads what it can: a field of another kind than expected is left out,
// like one that is missing. It returns false for what is no JSON at all.
func decode(data []byte, into any) bool {
	err := json.Unmarshal(data, into)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || kind
}

// report is a usage as it stands in an answer. Decode reads it into the fields of
// the shape; what is no object at all is a bad one.
func report(raw json.RawMessage, into any) (there, bad bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return false, false
	}
	return true, json.Unmarshal(raw, into) != nil
}

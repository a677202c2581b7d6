package modelapi

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A token is about four bytes of text, in prose and in code; eight are many. A
// report with more than four times that for each token of an answer is implausible.
// A vendor may drop parts of a request before the model reads it, so the bound for
// input is eight times as high.
const (
	mostPerOutput = 8 * 4
	mostPerInput  = mostPerOutput * 8
	trifle        = 256 // bytes of text that are too few to judge by
)

// tooFew reports whether a count of tokens is too low for so much text.
func tooFew(counted, text, most int64) bool {
	return text > trifle && counted < text/most || text > 0 && counted == 0
}

// Tally is the usage that one answer has reported so far, and how much text it
// has. The zero Tally is for an answer that has not begun.
type Tally struct {
	Model   string       // that answered; empty if not known yet
	Failure *VendorError // that ended the answer; nil if none did

	counts  loop.Usage // the largest reported ones: these counters never decrease
	inSaid  bool
	outSaid bool
	bad     bool // a number was invalid
	ended   bool // the stream's last event has come, or the answer was a whole one

	text   int64    // bytes that the model wrote
	items  int64    // the same bytes once more, in finished parts of the answer
	found  searches // in finished parts of the answer
	before int64    // bytes of text when output was last reported
}

// searches are counts of searches that have a fee.
type searches struct{ web, file int64 }

func (s searches) plus(more searches) searches {
	return searches{s.web + more.web, s.file + more.file}
}

// reported is one report of usage, in tokens that are each counted once, and in
// searches. Reasoning is a part of output.
type reported struct {
	input, output, cacheRead, cacheWrite, cacheWrite1h loop.Count
	reasoning, web, file                               loop.Count
}

// withoutCachedInput turns a report in which input includes the cached tokens into
// one in which each token is counted once.
func (r reported) withoutCachedInput() reported {
	cached := r.cacheRead.N + r.cacheWrite.N
	if !r.input.Set || r.input.Bad || r.cacheRead.Bad || r.cacheWrite.Bad {
		return r
	}
	r.input.N -= cached
	r.input.Bad = r.input.N < 0
	return r
}

// endOfChat is the data of the event that ends a stream of Chat.
var endOfChat = []byte("[DONE]")

// AddEvent adds the data of one event of a stream. Cut means that the stream
// broke off after it, so that the event may be incomplete. AddEvent reports
// whether the event contains only the usage that Request.Fit may have requested.
func (t *Tally) AddEvent(s *Shape, data []byte, cut bool) (usageOnly bool) {
	switch {
	case len(data) == 0:
		return false
	case bytes.Equal(data, endOfChat):
		t.ended = true
		return false
	case cut && !json.Valid(data):
		t.AddLost(len(data))
		return false
	}
	return s.readEvent(t, data)
}

// AddWhole adds an answer that is not a stream.
func (t *Tally) AddWhole(s *Shape, data []byte) {
	t.ended = true
	s.readWhole(t, data)
}

// AddLost adds so many bytes of an answer that broke off. All of them may be
// text.
func (t *Tally) AddLost(size int) { t.text += int64(size) }

// addUnreadable adds data that is not JSON. All of it may be text, and its report
// of usage is lost.
func (t *Tally) addUnreadable(data []byte) {
	t.text += int64(len(data))
	t.bad = true
}

// add adds a report. Text that came with it must be added before.
func (t *Tally) add(r reported) {
	for _, c := range []loop.Count{r.input, r.output, r.cacheRead, r.cacheWrite, r.cacheWrite1h, r.reasoning, r.web, r.file} {
		t.bad = t.bad || c.Bad
	}
	if r.cacheWrite1h.N > r.cacheWrite.N {
		t.bad = true
	}
	if t.bad {
		return
	}
	t.counts.Input = max(t.counts.Input, r.input.N)
	t.counts.Output = max(t.counts.Output, r.output.N)
	t.counts.CacheRead = max(t.counts.CacheRead, r.cacheRead.N)
	t.counts.CacheWrite = max(t.counts.CacheWrite, r.cacheWrite.N)
	t.counts.CacheWrite1h = max(t.counts.CacheWrite1h, r.cacheWrite1h.N)
	t.counts.Reasoning = max(t.counts.Reasoning, min(r.reasoning.N, t.counts.Output))
	t.counts.WebSearches = max(t.counts.WebSearches, r.web.N)
	t.counts.FileSearches = max(t.counts.FileSearches, r.file.N)
	t.inSaid = t.inSaid || r.input.Set
	if r.output.Set {
		t.outSaid, t.before = true, t.written()
	}
}

// addSearches adds the searches in the finished parts of an answer: either the
// sum so far, or the sum of all at the end.
func (t *Tally) addSearches(s searches) {
	t.counts.WebSearches = max(t.counts.WebSearches, s.web)
	t.counts.FileSearches = max(t.counts.FileSearches, s.file)
}

// Rejected reports whether the provider refused the call inside of its answer,
// before the model wrote anything: some answer with status 200 first. Like other
// errors, this costs nothing.
func (t *Tally) Rejected() bool {
	return t.Failure != nil && !t.inSaid && !t.outSaid && !t.bad && t.written() == 0
}

func (t *Tally) written() int64 { return max(t.text, t.items) }

// Oddity says what is wrong with a provider's numbers. It is empty if nothing is.
type Oddity string

const (
	oddNumber Oddity = "its usage is not a number of tokens: the call is charged with all that was held for it"
	oddCut    Oddity = "its answer was cut and its usage cannot be read: the call is charged with what was sent and what came"
	oddInput  Oddity = "it counts far fewer tokens than the request has: they are estimated"
	oddOutput Oddity = "it counts far fewer tokens than the answer has: they are estimated"
)

// Usage returns what the call has used so far. It is never zero: if numbers are
// missing or implausible, it is an estimate.
func (t *Tally) Usage(q *Request) (u loop.Usage, odd Oddity) {
	text := t.written()
	if t.bad {
		u = loop.Usage{
			Input:  max(q.Input, t.counts.Input+t.counts.CacheRead+t.counts.CacheWrite),
			Output: max(EstimateTokens(text), t.counts.Output), Source: loop.UsageEstimated,
			WebSearches: t.counts.WebSearches, FileSearches: t.counts.FileSearches,
		}
		if !t.ended {
			// The stream was cut: what was sent and received is known, and no vendor
			// bills more.
			return u, oddCut
		}
		u.Output = max(u.Output, q.Output)
		return u, oddNumber
	}
	u = t.counts
	if q.Shape == Chat && q.Searches {
		u.WebSearches = max(u.WebSearches, 1) // Chat does not count searches; each call has one fee.
	}
	u.Source = loop.UsageMetered
	switch in := u.Input + u.CacheRead + u.CacheWrite; {
	case !t.inSaid:
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Source = q.Input-q.Cached, q.Cached, 0, 0, loop.UsageEstimated
	case tooFew(in, q.plain, mostPerInput):
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.Source = max(q.Input, in), 0, 0, 0, loop.UsageEstimated
		odd = oddInput
	}
	unsaid := text - t.before
	switch {
	case tooFew(u.Output, text, mostPerOutput):
		if t.outSaid && unsaid == 0 {
			odd = oddOutput
		}
		u.Output, u.Source = max(u.Output, EstimateTokens(text)), loop.UsageEstimated
	case !t.outSaid:
		u.Source = loop.UsageEstimated
	case unsaid > 0:
		u.Output, u.Source = u.Output+EstimateTokens(unsaid), loop.UsageEstimated
	}
	return u, odd
}

// length is the size of a JSON value: of a string its bytes without escapes, of
// any other value the bytes that it is written with.
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
			// An escape is at most this much longer than the text that it means.
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

// decode reads what it can: a field of an unexpected type is left out, as if it
// were missing. It returns false if data is not JSON.
func decode(data []byte, into any) bool {
	err := json.Unmarshal(data, into)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || kind
}

// decodeUsage reads a report of usage into the fields of its API. A report that
// is not an object is bad.
func decodeUsage(raw json.RawMessage, into any) (found, bad bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return false, false
	}
	return true, json.Unmarshal(raw, into) != nil
}

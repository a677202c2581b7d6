package fakemodel

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"time"
)

// bytesPerToken is the rule of thumb behind filler and counts.
const bytesPerToken = 4

// answer is what one turn comes to, whatever the shape.
type answer struct {
	text  string
	flood int
	call  *call
	stop  stop
	usage Usage
	found int // searches that the vendor made for it
	lie   *Lie
	half  FaultKind // it is cut or stalls half way; empty: it is whole
	id    int       // differs from those before in the conversation
}

// stop is why an answer ends.
type stop int

const (
	stopEnd stop = iota
	stopTool
	stopMax
	stopRefusal
)

// play sends the answer that a turn asks for, or its fault.
func play(ctx context.Context, o *out, shape wire, q request, t Turn) {
	if t.Usage == nil {
		t.Usage = &Usage{}
	}
	a := answer{text: q.expand(t.Say), flood: t.Flood, usage: *t.Usage, found: q.searches, lie: t.Lie, id: q.messages}
	if t.Use != nil {
		a = a.using(q, *t.Use)
	}
	f := cmp.Or(t.Fault, &Fault{Kind: FaultDelay})
	o.header(t.Header)
	if !wait(ctx, f.Delay) {
		o.broken = true
		return
	}
	switch f.Kind {
	case FaultHang:
		o.did(string(f.Kind))
		o.broken = true
		<-ctx.Done()
		return
	case FaultRefusal:
		a.stop, a.text, a.call = stopRefusal, "I cannot help with that.", nil
	case FaultMaxTokens:
		a.stop, a.text, a.call = stopMax, cmp.Or(a.text, "Half of an answ"), nil
	case FaultCut, FaultStall:
		a.half = f.Kind
	case FaultDelay:
	case FaultStatus, FaultUsageLimit, FaultQuota, FaultOverflow, FaultOverload:
		o.fault(shape, q, *f)
		return
	}
	o.did(strings.TrimSpace(string(t.fault()) + " " + a.what()))
	if q.stream {
		shape.sse(o, q, a)
		return
	}
	shape.whole(o, q, a)
}

func (t Turn) fault() FaultKind {
	if t.Fault == nil {
		return ""
	}
	return t.Fault.Kind
}

// using turns an intention into a call, or into a complaint.
func (a answer) using(q request, u Use) answer {
	if a.call = q.resolve(u); a.call != nil {
		a.stop = stopTool
		return a
	}
	names := make([]string, 0, len(q.tools))
	for _, t := range q.tools {
		names = append(names, t.full())
	}
	a.text = "fakemodel: no tool to " + strings.TrimSpace(string(u.Intent)+" "+u.Name) + " among " + strings.Join(names, ", ")
	return a
}

func (a answer) what() string {
	if a.call != nil {
		return clip(a.call.tool.full() + " " + cmp.Or(a.call.text, encode(a.call.input)))
	}
	return clip(a.text)
}

// pieces is the text, or the input of the call, in at least two pieces, or the
// first half of them.
func (a answer) pieces() iter.Seq[string] {
	whole := a.whole()
	if a.half != "" {
		whole = whole[:(len(whole)+1)/2]
	}
	const most = 4096
	size := min(most, max(1, (len(whole)+1)/2))
	return func(yield func(string) bool) {
		for len(whole) > 0 {
			n := min(size, len(whole))
			for n < len(whole) && whole[n]&0xC0 == 0x80 {
				n++ // A piece ends where a character does.
			}
			if !yield(whole[:n]) {
				return
			}
			whole = whole[n:]
		}
	}
}

// whole is all that the answer says, or the input of its call.
func (a answer) whole() string {
	switch {
	case a.call == nil:
		return strings.Repeat("fill", a.flood) + a.text
	case a.call.tool.custom:
		return a.call.text
	}
	return encode(a.call.input)
}

// number is a count as it is reported.
func number(real int64, lie string) any {
	if lie == "" {
		return real
	}
	return verbatim(lie)
}

// lies are the answer's, none if it is honest.
func (a answer) lies() Lie {
	if a.lie == nil {
		return Lie{}
	}
	return *a.lie
}

// told is what of the usage is reported honestly.
func (a answer) told() Usage {
	u, l := a.usage, a.lies()
	for _, part := range []struct {
		n   *int64
		lie string
	}{{&u.Input, l.Input}, {&u.Output, l.Output}, {&u.CacheRead, l.CacheRead}, {&u.CacheWrite, l.CacheWrite}} {
		if l.Missing || part.lie != "" {
			*part.n = 0
		}
	}
	return u
}

// wait is false if the client left before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fault sends an error in the vendor's words.
func (o *out) fault(shape wire, q request, f Fault) {
	o.did(strings.TrimSpace("fault " + string(f.Kind) + " " + f.Text))
	if q.stream && f.Body == "" && f.Status == 0 && shape.early != nil && shape.early(o, q, f) {
		return
	}
	status, header, body := shape.fail(f)
	o.header(header)
	o.header(f.Header)
	if f.RetryAfter > 0 {
		o.header(http.Header{"Retry-After": {encode(f.RetryAfter)}})
	}
	if f.Body != "" {
		o.raw(status, []byte(f.Body))
		return
	}
	o.json(status, body)
}

// lifted is when a usage limit ends.
func (f Fault) lifted() time.Time {
	if f.Reset.IsZero() {
		return far
	}
	return f.Reset
}

package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/modelapi"
)

const mostError = 1 << 20 // bytes of an error response that are read

// checkAccepted reports whether the provider took the call. If not, the client has been
// answered and nothing is charged.
func (x *exchange) checkAccepted(resp *http.Response) bool {
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		x.passError(resp)
	case resp.StatusCode >= http.StatusMultipleChoices:
		x.failUnusable(resp.StatusCode, "it redirects, which is not followed; set base_url to where it leads")
	case resp.StatusCode != http.StatusOK:
		x.failUnusable(resp.StatusCode, fmt.Sprintf("it answered %d", resp.StatusCode))
	case coding != "" && coding != "identity":
		x.failUnusable(resp.StatusCode, "its answer is packed in a way that nobody asked for")
	default:
		return true
	}
	return false
}

// failUnusable answers in place of a provider that says nothing that can be passed on.
func (x *exchange) failUnusable(status int, why string) {
	text := fmt.Sprintf("%s cannot be used: %s", x.Base.Host, why)
	x.recordFailure(loop.Failure{Class: loop.FailureRequest, Text: text, Status: status})
	x.refuse(x.w, refusal{status: http.StatusBadGateway, text: text})
}

// passError passes an error of the provider on, and remembers what it means.
func (x *exchange) passError(resp *http.Response) {
	text, err := io.ReadAll(io.LimitReader(&reader{Reader: resp.Body, watch: x.watch, left: mostError + 1}, mostError))
	if err != nil {
		text = nil // The status says most of it.
	}
	x.recordFailure(modelapi.FailureOf(resp.StatusCode, resp.Header, modelapi.ReadError(text), x.now()))
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		text = nil
		resp.Header.Del("Content-Encoding")
	}
	x.reply(resp, []byte(x.hide.words(string(text))))
}

// reply answers with a whole body.
func (x *exchange) reply(resp *http.Response, body []byte) {
	x.hide.header(x.w.Header(), resp.Header)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(resp.StatusCode)
	slow := time.AfterFunc(x.limits().Idle, func() { _ = x.control.SetWriteDeadline(longAgo) })
	defer slow.Stop()
	_, _ = x.w.Write(body) // A client that went away does not hear it.
}

// readWhole reads the body of a response that is not a stream.
func (x *exchange) readWhole(resp *http.Response) ([]byte, error) {
	return io.ReadAll(&reader{Reader: resp.Body, watch: x.watch, left: min(mostWhole, x.limits().Response)})
}

// passWhole passes an answer on that is not a stream, once it is charged.
func (x *exchange) passWhole(ctx context.Context, resp *http.Response) {
	text, err := x.readWhole(resp)
	if err != nil {
		if len(text) == 0 {
			x.releaseUnbegun(ctx, err)
		}
		// What was lost is charged as text: the usage stands at the end.
		x.t.AddLost(len(text))
		x.charge()
		x.abort(err)
	}
	x.t.AddWhole(x.q.Shape, text)
	x.charge()
	x.recordOutcome(resp)
	x.reply(resp, x.hide.content(text))
}

// releaseUnbegun releases a call of which the connection failed before the first byte of an
// answer, which no vendor bills. One that was ended here may have been under way.
func (x *exchange) releaseUnbegun(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, errLarge) {
		x.c.Release()
	}
}

// charge settles the call with what it has used, as far as that is known.
func (x *exchange) charge() {
	if x.t.Rejected() {
		return
	}
	u, odd := x.t.Usage(x.q)
	x.Account.Remember(x.q.Model, x.outline, u, x.now())
	x.c.Settle(cmp.Or(x.t.Model, x.q.Model), u)
	if odd != "" {
		x.deny(ReasonBadUsage, fmt.Sprintf("%s; charged are %d tokens of input and %d of output", odd, u.Input, u.Output))
	}
}

// recordOutcome remembers how a call ended that began well.
func (x *exchange) recordOutcome(resp *http.Response) {
	if x.t.Failure == nil {
		x.recordSuccess()
		return
	}
	x.recordFailure(modelapi.FailureOf(0, resp.Header, *x.t.Failure, x.now()))
}

// abort ends an answer so that it does not look whole. It does not return.
func (x *exchange) abort(err error) {
	if !errors.Is(err, errGone) {
		x.recordFailure(loop.Failure{Class: loop.FailureServer, Text: fmt.Sprintf("the answer of %s was cut: %s", x.Base.Host, err)})
	}
	panic(http.ErrAbortHandler)
}

// isStream reports whether an answer is to be read as events. A server that streams
// does not always say so.
func (x *exchange) isStream(resp *http.Response) bool {
	kind := resp.Header.Get("Content-Type")
	return strings.HasPrefix(kind, "text/event-stream") || x.q.Stream && !strings.HasPrefix(kind, "application/json")
}

// passStream passes events on, each when it is counted. It ends the answer when what
// was granted is passed. When the client leaves, what is left is only counted.
func (x *exchange) passStream(client, ctx context.Context, resp *http.Response) {
	defer x.charge()
	// A client that reads nothing more must not keep the call.
	deaf := func() { _ = x.control.SetWriteDeadline(longAgo) }
	defer context.AfterFunc(ctx, deaf)()
	defer context.AfterFunc(client, deaf)()
	x.hide.header(x.w.Header(), resp.Header)
	x.w.WriteHeader(resp.StatusCode)
	_ = x.control.Flush() // The model may think for long before the first event.
	began := false
	in := modelapi.NewEventReader(&reader{Reader: resp.Body, watch: x.watch, left: x.limits().Response})
	for left := false; ; {
		raw, data, err := in.Next()
		began = began || len(raw) > 0
		ours := x.t.AddEvent(x.q.Shape, data, err != nil) && x.q.UsageOnly
		if u, _ := x.t.Usage(x.q); !x.c.Progress(ctx, x.t.Model, u) {
			x.deny(ReasonBudget, "the answer was cut: "+x.Account.Cause().Error())
			panic(http.ErrAbortHandler)
		}
		if !left && !ours && (err == nil || errors.Is(err, io.EOF)) {
			if _, writeErr := x.w.Write(x.hide.content(raw)); writeErr != nil {
				left = true
				x.watch.left()
			}
		}
		if errors.Is(err, io.EOF) {
			x.recordOutcome(resp)
			return
		}
		if err != nil {
			if !began {
				x.releaseUnbegun(ctx, err)
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			x.abort(err)
		}
		if !left && in.Drained() {
			_ = x.control.Flush() // The next write says what is wrong.
		}
	}
}

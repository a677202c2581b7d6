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

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const maxErrorBytes = 1 << 20 // bytes of an error response that are read

// checkAccepted reports whether the provider accepted the call. If not, it
// answers the client, and nothing is charged.
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

// failUnusable answers in place of a provider whose response cannot be passed on.
func (x *exchange) failUnusable(status int, why string) {
	text := fmt.Sprintf("%s cannot be used: %s", x.Base.Host, why)
	x.recordFailure(loop.Failure{Class: loop.FailureRequest, Text: text, Status: status})
	x.sendRefusal(x.w, refusal{status: http.StatusBadGateway, text: text})
}

// passError passes on an error of the provider, and records what it means.
func (x *exchange) passError(resp *http.Response) {
	text, err := io.ReadAll(io.LimitReader(&cappedReader{Reader: resp.Body, watch: x.watch, left: maxErrorBytes + 1}, maxErrorBytes))
	if err != nil {
		text = nil // The status says the most.
	}
	x.recordFailure(modelapi.FailureOf(resp.StatusCode, resp.Header, modelapi.ReadError(text), x.now()))
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		text = nil
		resp.Header.Del("Content-Encoding")
	}
	x.sendReply(resp, []byte(x.hide.redactText(string(text))))
}

// sendReply answers with a complete body.
func (x *exchange) sendReply(resp *http.Response, body []byte) {
	x.hide.copyHeaders(x.w.Header(), resp.Header)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(resp.StatusCode)
	slow := time.AfterFunc(x.limits().Idle, func() { _ = x.control.SetWriteDeadline(pastDeadline) })
	defer slow.Stop()
	_, _ = x.w.Write(body) // The client may have gone.
}

// readWhole reads the body of a response that is not a stream.
func (x *exchange) readWhole(resp *http.Response) ([]byte, error) {
	return io.ReadAll(&cappedReader{Reader: resp.Body, watch: x.watch, left: min(maxWholeBytes, x.limits().Response)})
}

// passWhole passes on an answer that is not a stream, after it is charged.
func (x *exchange) passWhole(ctx context.Context, resp *http.Response) {
	text, err := x.readWhole(resp)
	if err != nil {
		if len(text) == 0 {
			x.releaseUnbegun(ctx, err)
		}
		// The usage is at the end of the answer: without it, the part that was
		// read is charged as text.
		x.t.AddLost(len(text))
		x.settleCall()
		x.abortAnswer(err)
	}
	x.t.AddWhole(x.q.Shape, text)
	x.settleCall()
	x.recordOutcome(resp)
	x.sendReply(resp, x.hide.hideKey(text))
}

// releaseUnbegun releases a call whose connection failed before the first byte of
// an answer, since no vendor bills it. A call that was ended here is not
// released: the vendor may have been working on it.
func (x *exchange) releaseUnbegun(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, errLarge) {
		x.c.Release()
	}
}

// settleCall charges what the call has used, as far as that is known.
func (x *exchange) settleCall() {
	if x.t.Rejected() {
		return
	}
	u, odd := x.t.Usage(x.q)
	x.Account.Remember(x.q.Model, x.outline, u, x.now())
	x.c.Settle(cmp.Or(x.t.Model, x.q.Model), u)
	if odd != "" {
		x.reportDenial(ReasonBadUsage, fmt.Sprintf("%s; charged are %d tokens of input and %d of output", odd, u.Input, u.Output))
	}
}

// recordOutcome records how a call ended whose answer had begun.
func (x *exchange) recordOutcome(resp *http.Response) {
	if x.t.Failure == nil {
		x.recordSuccess()
		return
	}
	x.recordFailure(modelapi.FailureOf(0, resp.Header, *x.t.Failure, x.now()))
}

// abortAnswer ends an answer so that it does not look complete. It does not
// return.
func (x *exchange) abortAnswer(err error) {
	if !errors.Is(err, errGone) {
		x.recordFailure(loop.Failure{Class: loop.FailureServer, Text: fmt.Sprintf("the answer of %s was cut: %s", x.Base.Host, err)})
	}
	panic(http.ErrAbortHandler)
}

// isStream reports whether to read an answer as events. A server that streams
// does not always say so.
func (x *exchange) isStream(resp *http.Response) bool {
	kind := resp.Header.Get("Content-Type")
	return strings.HasPrefix(kind, "text/event-stream") || x.q.Stream && !strings.HasPrefix(kind, "application/json")
}

// passStream passes on events, each after it is counted. It ends the answer when
// the grant is exceeded. After the client has gone, the rest is only counted.
func (x *exchange) passStream(client, ctx context.Context, resp *http.Response) {
	defer x.settleCall()
	// A client that stops reading must not block the call.
	deaf := func() { _ = x.control.SetWriteDeadline(pastDeadline) }
	defer context.AfterFunc(ctx, deaf)()
	defer context.AfterFunc(client, deaf)()
	x.hide.copyHeaders(x.w.Header(), resp.Header)
	x.w.WriteHeader(resp.StatusCode)
	_ = x.control.Flush() // The model may think for a long time before the first event.
	began := false
	in := modelapi.NewEventReader(&cappedReader{Reader: resp.Body, watch: x.watch, left: x.limits().Response})
	for left := false; ; {
		raw, data, err := in.Next()
		began = began || len(raw) > 0
		ours := x.t.AddEvent(x.q.Shape, data, err != nil) && x.q.UsageOnly
		if u, _ := x.t.Usage(x.q); !x.c.Progress(ctx, x.t.Model, u) {
			x.reportDenial(ReasonBudget, "the answer was cut: "+x.Account.Cause().Error())
			panic(http.ErrAbortHandler)
		}
		if !left && !ours && (err == nil || errors.Is(err, io.EOF)) {
			if _, writeErr := x.w.Write(x.hide.hideKey(raw)); writeErr != nil {
				left = true
				x.watch.clientGone()
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
			x.abortAnswer(err)
		}
		if !left && in.Drained() {
			_ = x.control.Flush() // The next write returns the error.
		}
	}
}

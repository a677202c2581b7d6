package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	errQuiet = errors.New("nothing came from the provider for too long")
	errOld   = errors.New("the call took too long")
	errLarge = errors.New("the answer is too large")
	errGone  = errors.New("nobody listens any more")
)

var pastDeadline = time.Unix(1, 0)

var beforeSend = fault.New("meter.model.send.before")

// ServeHTTP answers one call. It returns after the call is charged.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.prepare()
	to, ok := routeOf(e.Provider, r.Method, r.URL.Path)
	if !ok {
		e.sendRefusal(w, refusal{http.StatusNotFound, ReasonNoCall, fmt.Sprintf(
			"%.120q is not a model call, count of tokens or list of models, and nothing else is forwarded", r.Method+" "+r.URL.Path,
		)})
		return
	}
	// A stream other than one of events is read as a whole.
	to.stream = to.stream && r.URL.Query().Get("alt") == "sse"
	body, no := e.readBody(w, r)
	if no != nil {
		e.sendRefusal(w, *no)
		return
	}
	ctx, watch := e.watchCall(r.Context())
	defer watch.end()
	x := &exchange{Endpoint: e, w: w, in: r, to: to, watch: watch, control: http.NewResponseController(w)}
	if r.Method != http.MethodGet {
		checked, err := to.tools.Check(to.model, body, e.Tools)
		if err != nil {
			x.refuseDenied(err, body)
			return
		}
		x.body, x.hosted = checked.Body, checked.Tools
		for _, name := range checked.LeftOut {
			e.reportLeftOut(fmt.Sprintf("the field %.80q of requests is not one that pawl knows: it is not forwarded", name))
		}
	}
	if to.shape == nil {
		x.forwardUncounted(ctx)
		return
	}
	x.forwardFunded(r.Context(), ctx)
}

// readBody reads the body of a request, or returns why it is refused.
func (e *Endpoint) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	most := e.limits().Request
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, &refusal{http.StatusUnsupportedMediaType, "", fmt.Sprintf("the request is packed as %.20q; send it as it is", coding)}
	}
	control := http.NewResponseController(w)
	slow := time.AfterFunc(e.limits().Idle, func() { _ = control.SetReadDeadline(pastDeadline) })
	defer slow.Stop()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &refusal{http.StatusRequestEntityTooLarge, meter.ReasonSent, fmt.Sprintf("the request is larger than %d bytes", most)}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "", "read the request: " + err.Error()}
	}
	return body, nil
}

// watch ends the context of a call that is idle for too long or too old, or whose
// client has gone. In the last case it waits a moment, because the provider may
// be about to send the call's usage.
type watch struct {
	quiet, late *time.Timer
	idle, rest  time.Duration
	end         func()
}

func (e *Endpoint) watchCall(client context.Context) (context.Context, *watch) {
	l := e.limits()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	quiet := time.AfterFunc(l.Idle, func() { cancel(errQuiet) })
	old := time.AfterFunc(l.Age, func() { cancel(errOld) })
	w := &watch{quiet: quiet, idle: l.Idle, rest: l.Rest}
	w.late = time.AfterFunc(l.Age, func() { cancel(errGone) })
	here := context.AfterFunc(client, w.clientGone)
	w.end = func() {
		here()
		quiet.Stop()
		old.Stop()
		w.late.Stop()
		cancel(nil)
	}
	return ctx, w
}

func (w *watch) clientGone() { w.late.Reset(w.rest) }

// cappedReader reads the body of a response up to a cap, and tells the watch
// about activity.
type cappedReader struct {
	io.Reader

	watch *watch
	left  int64
}

// Read implements io.Reader.
func (r *cappedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.watch.quiet.Reset(r.watch.idle)
	}
	if r.left -= int64(n); r.left < 0 {
		return 0, errLarge
	}
	return n, err
}

// exchange is a call and its answer.
type exchange struct {
	*Endpoint

	w       http.ResponseWriter
	control *http.ResponseController
	in      *http.Request
	to      route
	body    []byte
	hosted  []loop.ModelTool // the vendor's tools that the body asks for
	watch   *watch

	q       *modelapi.Request // this and the following only for a call that spends
	outline spend.Outline
	c       *spend.Charge
	t       modelapi.Tally
	reached atomic.Bool // there was a connection to the provider, so it may have the request
}

// forwardUncounted forwards a call that spends nothing.
func (x *exchange) forwardUncounted(ctx context.Context) {
	resp, err := x.sendUpstream(ctx)
	if err != nil {
		x.failUnreachable(ctx, err)
		return
	}
	defer resp.Body.Close()
	if !x.checkAccepted(resp) {
		return
	}
	text, err := x.readWhole(resp)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x.sendReply(resp, x.hide.hideKey(text))
}

// forwardFunded forwards a call after the account has funded it. The client's
// context may end before that of the call.
func (x *exchange) forwardFunded(client, ctx context.Context) {
	x.used.Store(true)
	var err error
	if x.q, err = modelapi.ReadRequest(x.to.shape, x.to.model, x.to.stream, x.body); err != nil {
		x.sendRefusal(x.w, refusal{http.StatusBadRequest, "", "the request cannot be read: " + err.Error()})
		return
	}
	x.q.Searches = slices.Contains(x.hosted, loop.ToolWebSearch)
	x.outline = spend.OutlineOf(x.body)
	x.q.Cached = min(x.Account.CachedBytes(x.q.Model, x.outline, x.now())/modelapi.BytesPerToken, x.q.Input-1)
	call := spend.Call{Model: x.q.Model, Input: x.q.Input - x.q.Cached, Cached: x.q.Cached, Output: x.q.Output}
	call.CacheWrite, call.CacheWrite1h = x.q.CacheWrite()
	if x.c, err = x.Account.Open(client, call); err != nil {
		x.refuseUnfunded(err)
		return
	}
	defer x.c.Release()
	if err = x.q.Fit(x.c.Output); err != nil {
		x.refuseUnfunded(x.Account.Exhaust(err))
		return
	}
	if !x.clientWaits() {
		panic(http.ErrAbortHandler) // The call has not been sent yet.
	}
	x.body = x.q.Body
	least, _ := x.t.Usage(x.q)
	x.c.Begin(least)
	resp, err := x.sendUpstream(ctx)
	if err != nil {
		x.failUnanswered(ctx, err)
		return
	}
	defer resp.Body.Close()
	if !x.checkAccepted(resp) {
		return
	}
	if x.isStream(resp) {
		x.passStream(client, ctx, resp)
		return
	}
	x.passWhole(ctx, resp)
}

// refuseUnfunded says why a call may not be made.
func (x *exchange) refuseUnfunded(err error) {
	_, unpriced := errors.AsType[*spend.UnpricedError](err)
	_, exhausted := errors.AsType[*loop.Fault](err)
	switch {
	case !x.clientWaits():
		panic(http.ErrAbortHandler)
	case unpriced:
		x.recordFailure(loop.Failure{Class: loop.ReasonPriceUnknown, Text: err.Error(), Typed: true})
		x.sendRefusal(x.w, refusal{x.finalStatus(), loop.ReasonPriceUnknown, err.Error()})
	case exhausted:
		x.sendRefusal(x.w, refusal{x.finalStatus(), ReasonBudget, err.Error()})
	default:
		x.sendRefusal(x.w, refusal{http.StatusServiceUnavailable, "", err.Error()})
	}
}

// finalStatus is the status after which no program retries: Claude Code retries
// after a 400, and Codex, the only one that speaks Responses, after a 403.
func (x *exchange) finalStatus() int {
	if x.to.shape == modelapi.Responses {
		return http.StatusBadRequest
	}
	return http.StatusForbidden
}

// sendUpstream sends the request. Its address, its credential and all of its
// headers are built here.
func (x *exchange) sendUpstream(ctx context.Context) (*http.Response, error) {
	if err := beforeSend.Hit(ctx); err != nil {
		return nil, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.reached.Store(true) },
	})
	to := upstreamURL(x.Base, x.Provider, x.to, x.in.URL.Query())
	out, err := http.NewRequestWithContext(ctx, x.in.Method, to.String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	out.Header = x.headersToSend(x.in.Header)
	if x.Key != "" {
		out.Header.Set(x.credentialField())
	}
	return x.via.RoundTrip(out)
}

// credentialField returns the header with the credential that the provider
// expects.
func (e *Endpoint) credentialField() (name, value string) {
	switch {
	case e.Provider == modelapi.Anthropic && !e.Bearer:
		return "X-Api-Key", e.Key
	case e.Provider == modelapi.Gemini && !e.Bearer:
		return "X-Goog-Api-Key", e.Key
	}
	return "Authorization", "Bearer " + e.Key
}

// failUnanswered charges a call without an answer. A provider that failed charges
// nothing, but one that was still working when the call was ended does.
func (x *exchange) failUnanswered(ctx context.Context, err error) {
	if ctx.Err() != nil && x.reached.Load() {
		x.settleCall()
	}
	x.failUnreachable(ctx, err)
}

func (x *exchange) failUnreachable(ctx context.Context, err error) {
	if x.in.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	text := fmt.Sprintf("%s cannot be reached: %s", x.Base.Host, err)
	x.recordFailure(loop.Failure{Class: loop.FailureServer, Text: text})
	x.sendRefusal(x.w, refusal{status: http.StatusBadGateway, text: modelapi.OneLine(x.hide.redactText(text))})
}

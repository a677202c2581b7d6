package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// maxRetries is how often a call is repeated.
	maxRetries = 3
	// firstBackoff is the pause before the first retry. It doubles each time.
	firstBackoff = time.Second
	// maxRetryAfter is the longest pause that a vendor may ask for; after a
	// longer one the turn fails.
	maxRetryAfter = 30 * time.Second
	// maxSilence is how long a model may send nothing at all.
	maxSilence = 4 * time.Minute
	// readsPerSign is after how many reads of an answer the driver gets a
	// sign of life. A read may be only a ping.
	readsPerSign = 16
)

// maxAnswerBytes is the size of the largest answer, including everything around
// its tokens.
const maxAnswerBytes = 256 << 20

var errLong = fmt.Errorf("an answer of more than %d bytes", maxAnswerBytes)

var errSilent = errors.New("the model said nothing for too long")

// shape says how to write requests and read answers of one vendor's API.
type shape struct {
	api          *modelapi.Shape
	buildRequest func(c conversation, key string) (path string, h http.Header, body []byte)
	// newReader returns a function that reads the data of one event. Its error is a
	// *failedError, or means that the data cannot be read.
	newReader func(r *reply) func(data []byte) error
}

func shapeOf(provider string) shape {
	switch provider {
	case modelapi.OpenAI:
		return shape{modelapi.Chat, chatRequest, chatReader}
	case modelapi.Gemini:
		return shape{modelapi.Generate, geminiRequest, geminiReader}
	}
	return shape{modelapi.Messages, anthropicRequest, anthropicReader}
}

// readStream reads the events of an answer until they end or one is an error.
func (s shape) readStream(in io.Reader, r *reply) error {
	readEvent := s.newReader(r)
	for events := modelapi.NewEventReader(in); ; {
		_, data, err := events.Next()
		if errors.Is(err, modelapi.ErrHugeEvent) || errors.Is(err, errLong) {
			return err
		}
		if data = bytes.TrimSpace(data); len(data) > 0 {
			r.tally.AddEvent(s.api, data, true)
			if err := readEvent(data); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// waitingClock tells the time and waits.
type waitingClock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// model calls one model.
type model struct {
	name    string
	shape   shape
	url     string
	key     string
	backoff time.Duration
	silence time.Duration
	client  *http.Client
	wire    *wire
	clock   waitingClock
}

func newModel(t task, w *wire, c waitingClock) *model {
	return &model{
		name: t.Model, shape: shapeOf(t.Provider), url: strings.TrimSuffix(t.URL, "/"), key: t.Key,
		backoff: cmp.Or(t.Backoff, firstBackoff), silence: cmp.Or(t.Silence, maxSilence), wire: w, clock: c,
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConns: 1}, // The endpoint is reached without a proxy.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// askRetrying gets one answer, with retries. It reports the usage of every call.
func (m *model) askRetrying(ctx context.Context, c conversation) (reply, *loop.Failure) {
	for try := 0; ; try++ {
		r, err := m.callOnce(ctx, c)
		if err == nil {
			return r, nil
		}
		f := m.toFailure(err)
		wait, again := m.retryPause(f, try)
		if !f.Reset.IsZero() {
			m.wire.printLine(line{Kind: agent.EventLimit, Text: f.Text, Reset: f.Reset})
		}
		if !again || ctx.Err() != nil {
			return r, &f.Failure
		}
		m.wire.printLine(line{Kind: agent.EventRetry, Text: fmt.Sprintf("call again in %s: %s", wait.Round(time.Millisecond), f.Text)})
		if m.clock.Sleep(ctx, wait) != nil {
			return r, &f.Failure
		}
	}
}

// retryPause returns how long to wait before a retry, and whether to retry at
// all.
func (m *model) retryPause(f *failedError, try int) (time.Duration, bool) {
	late := !f.Reset.IsZero() && f.Reset.Sub(m.clock.Now()) > maxRetryAfter
	if !f.retryable || try >= maxRetries || f.retryAfter > maxRetryAfter || late {
		return 0, false
	}
	pause := m.backoff << try
	pause = pause/2 + rand.N(pause)
	return max(pause, f.retryAfter), true
}

// callOnce makes one call.
func (m *model) callOnce(ctx context.Context, c conversation) (reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(m.silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	path, header, body := m.shape.buildRequest(c, m.key)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	res, err := m.client.Do(req)
	if err != nil {
		return reply{}, silenceCause(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // Even an incomplete body helps to explain the status.
		return reply{}, responseFailure(res.StatusCode, res.Header, text, m.clock.Now())
	}
	var r reply
	err = m.readAnswer(&watchedBody{r: res.Body, onRead: func() { quiet.Reset(m.silence) }, wire: m.wire}, &r)
	if r.begun {
		q, err := modelapi.ReadRequest(m.shape.api, m.name, true, body)
		if err != nil {
			return r, err
		}
		u := r.callUsage(q)
		m.wire.printLine(line{Kind: agent.EventUsage, Model: m.name, Usage: &u})
	}
	return r, silenceCause(ctx, err)
}

// readAnswer reads an answer to its end.
func (m *model) readAnswer(in io.Reader, r *reply) error {
	err := m.shape.readStream(in, r)
	switch {
	case err != nil && !errors.Is(err, errEnd):
		return err
	case r.stop == stopBroken:
		return malformedAnswer("the model made a call that its vendor could not read")
	case !r.done:
		return errCut
	}
	return nil
}

// errEnd means that the answer is complete, even if the connection is still open.
var errEnd = errors.New("the answer is over")

// errCut means that the connection ended before the answer was complete.
var errCut = errors.New("the answer was cut off")

// silenceCause returns errSilent if that is why a call was canceled, or else err.
func silenceCause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// watchedBody is the body of an answer in progress. Reading from it ends a
// silence, both of the model and of the agent.
type watchedBody struct {
	r      io.Reader
	onRead func()
	wire   *wire
	since  int
	total  int
}

// Read implements io.Reader.
func (a *watchedBody) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	a.onRead()
	if a.total += n; a.total > maxAnswerBytes {
		return n, errLong
	}
	if a.since++; a.since >= readsPerSign {
		a.since = 0
		a.wire.printLine(line{Kind: kindAlive})
	}
	return n, err
}

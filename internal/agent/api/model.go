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

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/modelapi"
)

const (
	// mostRetries is how often a call is tried again.
	mostRetries = 3
	// firstBackoff is the pause before the first retry; each is twice the last.
	firstBackoff = time.Second
	// mostWait is the longest pause that a vendor may ask for; after a longer one
	// the turn has failed.
	mostWait = 30 * time.Second
	// longestSilence is how long a model may say nothing at all.
	longestSilence = 4 * time.Minute
	// pieces is after how many pieces of an answer the driver is told of it; a
	// piece may be no more than a ping.
	pieces = 16
)

// largest is the largest answer that is read, in bytes with all that is around
// its tokens.
const largest = 256 << 20

var errLong = fmt.Errorf("an answer of more than %d bytes", largest)

var errSilent = errors.New("the model said nothing for too long")

// shape is how requests and answers look for one vendor.
type shape struct {
	api     *modelapi.Shape
	request func(c conversation, key string) (path string, h http.Header, body []byte)
	// read takes the data of one event. An error is a *failedError, or means that the
	// data cannot be read.
	read func(r *reply) func(data []byte) error
}

func shapeOf(provider string) shape {
	switch provider {
	case modelapi.OpenAI:
		return shape{modelapi.Chat, requestChat, readChat}
	case modelapi.Gemini:
		return shape{modelapi.Generate, requestGemini, readGemini}
	}
	return shape{modelapi.Messages, requestAnthropic, readAnthropic}
}

// readStream reads the events of an answer until they end or one has an error.
func (s shape) readStream(in io.Reader, r *reply) error {
	readEvent := s.read(r)
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

// watch tells the time and waits.
type watch interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// model is a model that can be asked.
type model struct {
	name    string
	shape   shape
	url     string
	key     string
	backoff time.Duration
	silence time.Duration
	client  *http.Client
	wire    *wire
	clock   watch
}

func newModel(t task, w *wire, c watch) *model {
	return &model{
		name: t.Model, shape: shapeOf(t.Provider), url: strings.TrimSuffix(t.URL, "/"), key: t.Key,
		backoff: cmp.Or(t.Backoff, firstBackoff), silence: cmp.Or(t.Silence, longestSilence), wire: w, clock: c,
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConns: 1}, // There is no proxy but the endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// ask gets one answer, by as many calls as it takes. Every call's usage is told.
func (m *model) ask(ctx context.Context, c conversation) (reply, *loop.Failure) {
	for try := 0; ; try++ {
		r, err := m.once(ctx, c)
		if err == nil {
			return r, nil
		}
		f := m.failed(err)
		wait, again := m.wait(f, try)
		if !f.Reset.IsZero() {
			m.wire.tell(line{Kind: agent.EventLimit, Text: f.Text, Reset: f.Reset})
		}
		if !again || ctx.Err() != nil {
			return r, &f.Failure
		}
		m.wire.tell(line{Kind: agent.EventRetry, Text: fmt.Sprintf("call again in %s: %s", wait.Round(time.Millisecond), f.Text)})
		if m.clock.Sleep(ctx, wait) != nil {
			return r, &f.Failure
		}
	}
}

// wait is how long to wait before a retry, if there is to be one.
func (m *model) wait(f *failedError, try int) (time.Duration, bool) {
	late := !f.Reset.IsZero() && f.Reset.Sub(m.clock.Now()) > mostWait
	if !f.again || try >= mostRetries || f.after > mostWait || late {
		return 0, false
	}
	pause := m.backoff << try
	pause = pause/2 + rand.N(pause)
	return max(pause, f.after), true
}

// once makes one call.
func (m *model) once(ctx context.Context, c conversation) (reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(m.silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	path, header, body := m.shape.request(c, m.key)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	res, err := m.client.Do(req)
	if err != nil {
		return reply{}, cause(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // What came of it explains the status as well as it can.
		return reply{}, explain(res.StatusCode, res.Header, text, m.clock.Now())
	}
	var r reply
	err = m.listen(&alive{r: res.Body, heard: func() { quiet.Reset(m.silence) }, wire: m.wire}, &r)
	if r.begun {
		q, err := modelapi.ReadRequest(m.shape.api, m.name, true, body)
		if err != nil {
			return r, err
		}
		u := r.usage(q)
		m.wire.tell(line{Kind: agent.EventUsage, Model: m.name, Usage: &u})
	}
	return r, cause(ctx, err)
}

// listen reads an answer to its end.
func (m *model) listen(in io.Reader, r *reply) error {
	err := m.shape.readStream(in, r)
	switch {
	case err != nil && !errors.Is(err, errEnd):
		return err
	case r.stop == stopBroken:
		return malformed("the model made a call that its vendor could not read")
	case !r.done:
		return errCut
	}
	return nil
}

// errEnd means that the answer is over, whether the connection is or not.
var errEnd = errors.New("the answer is over")

// errCut means that the connection ended before the answer did.
var errCut = errors.New("the answer was cut off")

// cause says why a call was given up, rather than that it was.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// alive is an answer on its way: what comes is a sign of life, for the model and
// for the agent.
type alive struct {
	r     io.Reader
	heard func()
	wire  *wire
	since int
	total int
}

// Read passes on.
func (a *alive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	a.heard()
	if a.total += n; a.total > largest {
		return n, errLong
	}
	if a.since++; a.since >= pieces {
		a.since = 0
		a.wire.tell(line{Kind: kindAlive})
	}
	return n, err
}

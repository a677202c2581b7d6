package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

const (
	// grace is what a program gets between TERM and KILL when its time is over.
	grace = 2 * time.Second
	// linger is how long a program may usually go on that has said that its turn is over.
	linger = 3 * time.Second
	// longest is the longest line that is read; a longer one is not an event.
	longest = 32 << 20
	// lastWords is how much of standard error is kept to explain a crash.
	lastWords = 4 << 10
)

var (
	errSilent = errors.New("nothing was heard of the program for too long")
	errOver   = errors.New("the turn is over, and the program goes on")
)

// Program is what a driver starts for a turn.
type Program struct {
	Argv  []string
	Env   []string  // over those of the request
	Stdin io.Reader // nil: nothing. One that is an io.Closer is closed when the turn is over, or the program gone

	Linger time.Duration // how long it may go on that has said that its turn is over; 0: three seconds
}

// Decoder reads the lines that a program prints on standard output. Its methods
// are called one at a time.
type Decoder interface {
	// Line turns a line, without its end, into events. False means that it is
	// none of the program's: a banner, a warning, what a library prints. The
	// turn is over with the EventEnd among them.
	Line(line []byte) ([]Event, bool)
	// Finish fills in what the events do not say, once the program is gone: Usage,
	// Models, Message, Session and Failure, each only if it knows better than what
	// is there. Stderr is the end of what was printed there.
	Finish(r *Result, stderr string)
}

// Closer is a Decoder of a program that has no event for the end of its turn: it
// ends.
type Closer interface {
	// Closed turns the end of the program into events. It is called before Finish,
	// with the exit status, and only if the program ended by itself.
	Closed(exit int) []Event
}

// Stream runs a program for one turn and blocks until everything that it
// started is gone. The error is nil for any program that started.
//
// Whatever the decoder says, these hold for the result: a program that ends
// without an EventEnd or without a last word has failed, and so has one of which
// nothing was heard for too long, unless the decoder knows what it waited for;
// usage is never zero.
func Stream(ctx context.Context, r Request, p Program, d Decoder) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &stream{r: r, d: d, in: p.Stdin, linger: cmp.Or(p.Linger, linger), cancel: cancel}
	s.silence = time.AfterFunc(cmp.Or(r.Silence, DefaultSilence), func() { cancel(errSilent) })
	defer s.silence.Stop()
	words := proc.NewRing(lastWords/2, lastWords/2)
	whole := &wholeLines{to: r.Output}
	res, err := r.Exec.Run(ctx, proc.Spec{
		Argv: p.Argv, Dir: r.Dir, Env: proc.WithVariables(r.Env, p.Env...), Stdin: p.Stdin,
		Stdout: s, Stderr: alive{io.MultiWriter(words, whole), s}, Timeout: r.Timeout, Grace: grace, Tag: r.Tag,
	})
	s.close()
	whole.end()
	if err != nil {
		return Result{Ended: res.Ended}, fmt.Errorf("start %s: %w", p.Argv[0], err)
	}
	s.flush(res)
	out := Result{
		Exit: res.Exit, Ended: res.Ended, Limit: res.Limit, Took: res.Took, Usage: s.usage, Models: s.models, Message: s.message,
		Claims: true, Failure: s.failure,
	}
	// A program whose time is over may end its turn with a complaint about that
	// before it goes.
	complained := res.Ended == proc.TimedOut && s.failure != nil
	if s.over && errors.Is(context.Cause(ctx), errOver) && !complained {
		out.Exit, out.Ended = 0, proc.Exited
	}
	d.Finish(&out, words.String())
	s.judge(&out, words.String(), errors.Is(context.Cause(ctx), errSilent))
	return out, nil
}

// stream is a turn on its way. It is the program's standard output.
type stream struct {
	r       Request
	d       Decoder
	in      io.Reader
	linger  time.Duration
	cancel  context.CancelCauseFunc
	silence *time.Timer

	mu      sync.Mutex
	line    []byte
	tooLong bool
	over    bool
	printed int64
	untold  int64 // bytes of printed since the program last said what it has used
	spent   bool  // nothing more may be used
	message string
	usage   loop.Usage
	models  []loop.ModelUsage
	failure *loop.Failure
}

// Write takes what comes from the program.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence.Stop() // A person who is asked may take their time: that is no silence of the program.
	defer s.heard()
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		if s.tooLong = s.tooLong || len(s.line)+len(line) > longest; !s.tooLong {
			s.line = append(s.line, line...)
		}
		if !found {
			return n, nil
		}
		s.take()
		p = rest
	}
}

// heard puts the end of a silence off.
func (s *stream) heard() { s.silence.Reset(cmp.Or(s.r.Silence, DefaultSilence)) }

// take reads the line at hand.
func (s *stream) take() {
	line := bytes.TrimSuffix(s.line, []byte("\r"))
	long := s.tooLong
	s.line, s.tooLong = s.line[:0], false
	if s.spent {
		return
	}
	switch {
	case long:
		fmt.Fprintf(s.r.Output, "a line of more than %d bytes was left out\n", longest)
		return
	case len(bytes.TrimSpace(line)) == 0:
		return
	}
	events, ok := s.d.Line(bytes.Clone(line))
	if !ok {
		_, _ = s.r.Output.Write(append(bytes.Clone(line), '\n')) // What an agent prints is shown, and never stops it.
	}
	for _, e := range events {
		s.tell(e)
	}
	if s.r.Used != nil && len(events) > 0 {
		s.spent = !s.r.Used(s.sofar())
	}
}

// sofar is what the turn has used by now: what the program says, and an estimate of
// what it has printed since.
func (s *stream) sofar() loop.Usage {
	if s.usage.Zero() {
		return s.estimate()
	}
	if s.untold == 0 {
		return s.usage
	}
	return s.usage.Add(loop.Usage{Output: s.untold / bytesPerToken, Source: loop.UsageEstimated})
}

func (s *stream) estimate() loop.Usage {
	return loop.Usage{Input: EstimateTokens(int64(len(s.r.Prompt))), Output: EstimateTokens(s.printed), Source: loop.UsageEstimated}
}

// print counts what came from a model.
func (s *stream) print(n int) {
	s.printed += int64(n)
	s.untold += int64(n)
}

// tell passes an event on and keeps what the result needs.
func (s *stream) tell(e Event) {
	if s.over {
		return
	}
	switch e.Kind {
	case EventText:
		s.message = cmp.Or(strings.TrimSpace(e.Text), s.message)
		s.print(len(e.Text))
	case EventReasoning:
		s.print(len(e.Text))
	case EventCall:
		s.print(len(e.Input))
	case EventUsage:
		s.untold = 0
		s.usage = s.usage.Add(e.Usage)
		s.models = AddUsage(s.models, e.Model, e.Usage)
	case EventError:
		s.failure = e.Failure
	case EventEnd:
		s.over = true
		s.close()
		time.AfterFunc(s.linger, func() { s.cancel(errOver) })
	case EventReturn, EventPermission, EventLimit, EventRetry:
	}
	s.r.On(e)
}

// flush reads the rest, once the program is gone.
func (s *stream) flush(res proc.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take()
	c, ok := s.d.(Closer)
	if !ok || res.Ended != proc.Exited {
		return
	}
	for _, e := range c.Closed(res.Exit) {
		s.tell(e)
	}
}

func (s *stream) close() {
	if in, ok := s.in.(io.Closer); ok {
		_ = in.Close() // The program is told that nothing more comes; it may be gone.
	}
}

// judge makes sure of what holds for every driver.
func (s *stream) judge(out *Result, stderr string, silent bool) {
	switch {
	case out.Usage.Zero():
		out.Usage = s.estimate()
		out.Models = []loop.ModelUsage{{Model: s.r.Model, Usage: out.Usage}}
	case s.spent && out.Usage == s.usage: // It had no time to say the rest.
		rest := loop.Usage{Output: s.untold / bytesPerToken, Source: loop.UsageEstimated}
		out.Usage, out.Models = out.Usage.Add(rest), AddUsage(out.Models, s.r.Model, rest)
	case out.Usage.Source == "":
		out.Usage.Source = loop.UsageReported
	}
	fail := func(class loop.FailureClass, text string) {
		out.Failure = &loop.Failure{Class: class, Text: text}
	}
	switch {
	case silent && out.Failure == nil:
		fail(loop.FailureHang, fmt.Sprintf("nothing was heard of it for %s", cmp.Or(s.r.Silence, DefaultSilence)))
	case out.Failure != nil || out.Ended == proc.TimedOut || out.Ended == proc.Canceled || out.Ended == proc.Limited:
	case out.Ended == proc.Signaled:
		fail(loop.FailureKilled, fmt.Sprintf("it was killed by signal %d", out.Exit-128))
	case out.Exit != 0 && !s.over:
		fail(loop.FailureCrash, fmt.Sprintf("exit status %d: %s", out.Exit, cmp.Or(LastLine(stderr), "it said nothing")))
	case !s.over:
		fail(loop.FailureMalformed, "it ended without saying that its turn is over")
	case out.Message == "" && !quiet(s.d):
		fail(loop.FailureMalformed, "it ended without a last word")
	}
}

// Quiet is a Decoder of a program whose turn may be over without a last word.
type Quiet interface {
	// Quiet reports whether this turn came to its proper end, with or without one.
	Quiet() bool
}

func quiet(d Decoder) bool {
	q, ok := d.(Quiet)
	return ok && q.Quiet()
}

// alive is standard error: what comes there is a sign of life.
type alive struct {
	io.Writer

	s *stream
}

// Write passes on.
func (a alive) Write(p []byte) (int, error) {
	a.s.mu.Lock()
	a.s.heard()
	a.s.mu.Unlock()
	return a.Writer.Write(p)
}

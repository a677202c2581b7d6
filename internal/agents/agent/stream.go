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

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// grace is the time between TERM and KILL when a program's time is over.
	grace = 2 * time.Second
	// linger is how long a program may usually run after the end of its turn.
	linger = 3 * time.Second
	// maxLine is the longest line in bytes that is read; a longer one is dropped.
	maxLine = 32 << 20
	// stderrKept is how many bytes of standard error are kept to explain a crash.
	stderrKept = 4 << 10
)

var (
	errSilent = errors.New("nothing was heard of the program for too long")
	errOver   = errors.New("the turn is over, and the program goes on")
)

// Program is what a driver starts for a turn.
type Program struct {
	Argv  []string
	Env   []string  // overrides the request's
	Stdin io.Reader // nil means empty. An io.Closer is closed when the turn is over or the program has ended

	Linger time.Duration // how long it may run after the end of its turn; 0 means three seconds
}

// Decoder decodes the lines that a program prints on standard output. Its methods
// are never called concurrently.
type Decoder interface {
	// DecodeLine returns the events in a line, which has no line end. It returns
	// false if the line does not belong to the program's protocol: a banner, a
	// warning, the output of a library. An EventEnd ends the turn.
	DecodeLine(line []byte) ([]Event, bool)
	// Finish completes the result after the program has ended: Usage, Models,
	// Message, Session and Failure, each only if it knows more than the events said.
	// Stderr is the end of standard error.
	Finish(r *Result, stderr string)
}

// ExitDecoder is implemented by a Decoder of a program that has no event for the
// end of its turn but simply exits.
type ExitDecoder interface {
	// DecodeExit returns events for the program's exit. It is called before
	// Finish, and only if the program ended by itself.
	DecodeExit(exit int) []Event
}

// RunStream runs a program for one turn and blocks until everything that it
// started has ended. The error is nil for any program that started.
//
// Whatever the decoder says, a program has failed if it ends without an EventEnd
// or without a last message, or if it was silent for too long, unless the decoder
// knows what it was waiting for. Usage is never zero.
func RunStream(ctx context.Context, r Request, p Program, d Decoder) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &stream{r: r, d: d, in: p.Stdin, linger: cmp.Or(p.Linger, linger), cancel: cancel}
	s.silence = time.AfterFunc(cmp.Or(r.Silence, DefaultSilence), func() { cancel(errSilent) })
	defer s.silence.Stop()
	words := proc.NewRing(stderrKept/2, stderrKept/2)
	whole := &wholeLines{to: r.Output}
	res, err := r.Exec.Run(ctx, proc.Spec{
		Argv: p.Argv, Dir: r.Dir, Env: proc.WithVariables(r.Env, p.Env...), Stdin: p.Stdin,
		Stdout: s, Stderr: stderrWriter{io.MultiWriter(words, whole), s}, Timeout: r.Timeout, Grace: grace, Tag: r.Tag,
	})
	s.closeInput()
	whole.flush()
	if err != nil {
		return Result{Ended: res.Ended}, fmt.Errorf("start %s: %w", p.Argv[0], err)
	}
	s.takeRest(res)
	out := Result{
		Exit: res.Exit, Ended: res.Ended, Limit: res.Limit, Took: res.Took, Usage: s.usage, Models: s.models, Message: s.message,
		Claims: true, Failure: s.failure,
	}
	// A program whose time is over may report that as an error before it ends.
	complained := res.Ended == proc.TimedOut && s.failure != nil
	if s.over && errors.Is(context.Cause(ctx), errOver) && !complained {
		out.Exit, out.Ended = 0, proc.Exited
	}
	d.Finish(&out, words.String())
	s.completeResult(&out, words.String(), errors.Is(context.Cause(ctx), errSilent))
	return out, nil
}

// stream is a turn in progress. It is the program's standard output.
type stream struct {
	r       Request
	d       Decoder
	in      io.Reader
	linger  time.Duration
	cancel  context.CancelCauseFunc
	silence *time.Timer

	mu         sync.Mutex
	line       []byte
	tooLong    bool
	over       bool
	printed    int64
	unreported int64 // bytes of printed since the program last reported its usage
	spent      bool  // no more usage is allowed
	message    string
	usage      loop.Usage
	models     []loop.ModelUsage
	failure    *loop.Failure
}

// Write takes the program's output.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence.Stop() // A person may take their time to answer: that is not silence of the program.
	defer s.resetSilence()
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		if s.tooLong = s.tooLong || len(s.line)+len(line) > maxLine; !s.tooLong {
			s.line = append(s.line, line...)
		}
		if !found {
			return n, nil
		}
		s.takeLine()
		p = rest
	}
}

// resetSilence restarts the limit for silence.
func (s *stream) resetSilence() { s.silence.Reset(cmp.Or(s.r.Silence, DefaultSilence)) }

// takeLine decodes the current line.
func (s *stream) takeLine() {
	line := bytes.TrimSuffix(s.line, []byte("\r"))
	long := s.tooLong
	s.line, s.tooLong = s.line[:0], false
	if s.spent {
		return
	}
	switch {
	case long:
		fmt.Fprintf(s.r.Output, "a line of more than %d bytes was left out\n", maxLine)
		return
	case len(bytes.TrimSpace(line)) == 0:
		return
	}
	events, ok := s.d.DecodeLine(bytes.Clone(line))
	if !ok {
		_, _ = s.r.Output.Write(append(bytes.Clone(line), '\n')) // Errors of the output never stop the agent.
	}
	for _, e := range events {
		s.takeEvent(e)
	}
	if s.r.OnUsage != nil && len(events) > 0 {
		s.spent = !s.r.OnUsage(s.usageSoFar())
	}
}

// usageSoFar returns what the program has reported, and an estimate of what it
// has printed since.
func (s *stream) usageSoFar() loop.Usage {
	if s.usage.Zero() {
		return s.estimateUsage()
	}
	if s.unreported == 0 {
		return s.usage
	}
	return s.usage.Add(loop.Usage{Output: s.unreported / bytesPerToken, Source: loop.UsageEstimated})
}

func (s *stream) estimateUsage() loop.Usage {
	return loop.Usage{Input: EstimateTokens(int64(len(s.r.Prompt))), Output: EstimateTokens(s.printed), Source: loop.UsageEstimated}
}

// countPrinted counts text that came from a model.
func (s *stream) countPrinted(n int) {
	s.printed += int64(n)
	s.unreported += int64(n)
}

// takeEvent passes an event on and keeps what the result needs.
func (s *stream) takeEvent(e Event) {
	if s.over {
		return
	}
	switch e.Kind {
	case EventText:
		s.message = cmp.Or(strings.TrimSpace(e.Text), s.message)
		s.countPrinted(len(e.Text))
	case EventReasoning:
		s.countPrinted(len(e.Text))
	case EventCall:
		s.countPrinted(len(e.Input))
	case EventUsage:
		s.unreported = 0
		s.usage = s.usage.Add(e.Usage)
		s.models = AddUsage(s.models, e.Model, e.Usage)
	case EventError:
		s.failure = e.Failure
	case EventEnd:
		s.over = true
		s.closeInput()
		time.AfterFunc(s.linger, func() { s.cancel(errOver) })
	case EventReturn, EventPermission, EventLimit, EventRetry:
	}
	s.r.OnEvent(e)
}

// takeRest decodes the rest after the program has ended.
func (s *stream) takeRest(res proc.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeLine()
	c, ok := s.d.(ExitDecoder)
	if !ok || res.Ended != proc.Exited {
		return
	}
	for _, e := range c.DecodeExit(res.Exit) {
		s.takeEvent(e)
	}
}

func (s *stream) closeInput() {
	if in, ok := s.in.(io.Closer); ok {
		_ = in.Close() // The program may have ended already.
	}
}

// completeResult sets what holds for the result of every driver.
func (s *stream) completeResult(out *Result, stderr string, silent bool) {
	switch {
	case out.Usage.Zero():
		out.Usage = s.estimateUsage()
		out.Models = []loop.ModelUsage{{Model: s.r.Model, Usage: out.Usage}}
	case s.spent && out.Usage == s.usage: // The program had no time to report the rest.
		rest := loop.Usage{Output: s.unreported / bytesPerToken, Source: loop.UsageEstimated}
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
	case out.Message == "" && !endsSilently(s.d):
		fail(loop.FailureMalformed, "it ended without a last word")
	}
}

// SilentDecoder is implemented by a Decoder of a program whose turn may end
// without a last message.
type SilentDecoder interface {
	// EndsSilently reports whether this turn ended properly, with or without
	// a message.
	EndsSilently() bool
}

func endsSilently(d Decoder) bool {
	q, ok := d.(SilentDecoder)
	return ok && q.EndsSilently()
}

// stderrWriter takes standard error. Its output ends a silence.
type stderrWriter struct {
	io.Writer

	s *stream
}

// Write implements io.Writer.
func (a stderrWriter) Write(p []byte) (int, error) {
	a.s.mu.Lock()
	a.s.resetSilence()
	a.s.mu.Unlock()
	return a.Writer.Write(p)
}

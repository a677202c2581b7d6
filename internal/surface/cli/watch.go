package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// watcher shows the events of a run while it lives.
type watcher interface {
	see(loop.Event)
	// close stops showing. Nothing is written afterwards.
	close()
}

// newWatcher returns the watcher that suits the reader.
func (a *app) newWatcher(iterations int) watcher {
	switch {
	case a.json:
		return noWatcher{}
	case a.Terminal && a.lookupEnv("TERM") != "dumb" && a.lookupEnv("ACCESSIBLE") == "":
		return newLiveLine(a.Out, a.printer().Style, a.Width, a.Now, iterations)
	}
	return &plainWatcher{w: a.Out}
}

// noWatcher shows nothing, for JSON.
type noWatcher struct{}

func (noWatcher) see(loop.Event) {}
func (noWatcher) close()         {}

// plainWatcher prints plain lines, for files, pipes and screen readers.
type plainWatcher struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func (l *plainWatcher) see(e loop.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for _, line := range stampLines(e, time.TimeOnly, describeEvent(e)) {
		_, _ = fmt.Fprintln(l.w, line)
	}
}

func (l *plainWatcher) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// shownPhases are the phases that people see.
var shownPhases = []loop.Phase{loop.PhaseSense, loop.PhaseDecide, loop.PhaseAct, loop.PhaseGather, loop.PhaseVerify}

// liveLine keeps one line at the bottom of a terminal up to date, and prints what
// stays above it.
type liveLine struct {
	w     io.Writer
	style output.Style
	width func() int
	now   func() time.Time

	mu         sync.Mutex
	phase      loop.Phase
	started    time.Time
	iteration  int
	iterations int
	bytes      int64 // of prompts and output, for the estimate
	turn       int
	drawn      bool
	done       chan struct{}
	drawing    sync.WaitGroup
}

// frameTime is how often the line is drawn.
const frameTime = 100 * time.Millisecond

func newLiveLine(w io.Writer, s output.Style, width func() int, now func() time.Time, iterations int) *liveLine {
	l := &liveLine{w: w, style: s, width: width, now: now, iterations: iterations, started: now(), done: make(chan struct{})}
	l.drawing.Go(func() {
		tick := time.NewTicker(frameTime)
		defer tick.Stop()
		for {
			select {
			case <-l.done:
				return
			case <-tick.C:
				l.mu.Lock()
				l.turn++
				l.draw()
				l.mu.Unlock()
			}
		}
	})
	return l
}

func (l *liveLine) see(e loop.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record(e)
	if text := l.lasting(e); text != "" {
		l.erase()
		_, _ = fmt.Fprintln(l.w, text)
	}
	l.draw()
}

// record keeps what the line shows.
func (l *liveLine) record(e loop.Event) {
	switch e.Kind {
	case loop.EventPhase:
		l.phase = loop.Phase(e.Text)
		if l.phase == loop.PhaseAct {
			l.iteration++
		}
	case loop.EventPrompt:
		l.bytes += int64(len(e.Text))
	case loop.EventOutput:
		if e.Phase == loop.PhaseAct {
			l.bytes += int64(len(e.Text))
		}
	}
}

// lasting is the text of an event that stays on the screen.
func (l *liveLine) lasting(e loop.Event) string {
	body := strings.TrimRight(output.Clean(describeEvent(e)), "\n")
	switch e.Kind {
	case loop.EventPhase, loop.EventPrompt, loop.EventOutcome:
		return ""
	case loop.EventOutput:
		var lines []string
		for line := range strings.SplitSeq(body, "\n") {
			lines = append(lines, l.style.Dim("  "+line))
		}
		return strings.Join(lines, "\n")
	case loop.EventGate:
		switch gateMark(e.Text) {
		case "✓":
			return "  " + l.style.Green(body)
		case "!":
			return "  " + l.style.Yellow(body)
		}
		return "  " + l.style.Red(body)
	}
	return "  " + strings.ReplaceAll(body, "\n", "\n  ")
}

func (l *liveLine) erase() {
	if l.drawn {
		_, _ = io.WriteString(l.w, "\r\x1b[2K")
		l.drawn = false
	}
}

func (l *liveLine) draw() {
	_, _ = io.WriteString(l.w, "\r\x1b[2K"+l.line())
	l.drawn = true
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// bytesPerToken is a rule of thumb for estimating tokens during a run. The account
// after the run has the real number.
const bytesPerToken = 4

// line is the phases, the time, the iteration and the tokens. It is cut to the width
// of the terminal, because a line that wraps cannot be drawn again.
func (l *liveLine) line() string {
	var steps []string
	for _, p := range shownPhases {
		switch {
		case p == l.phase:
			steps = append(steps, "["+string(p)+"]")
		case p.Before(l.phase):
			steps = append(steps, "✓"+string(p))
		default:
			steps = append(steps, string(p))
		}
	}
	elapsed := l.now().Sub(l.started)
	facts := elapsed.Truncate(time.Second).String()
	if elapsed < 10*time.Second { // Digits that change show that something happens.
		facts = fmt.Sprintf("%.1fs", elapsed.Seconds())
	}
	if l.iteration > 0 {
		facts += fmt.Sprintf(" · iter %d/%d", l.iteration, l.iterations)
	}
	if l.bytes > 0 {
		facts += fmt.Sprintf(" · ~%s tok", formatNumber(l.bytes/bytesPerToken))
	}
	mark, columns := spinner[l.turn%len(spinner)], l.width()-1
	line := fmt.Sprintf("%s %s  %s", mark, strings.Join(steps, " · "), facts)
	if utf8.RuneCountInString(line) > columns {
		line = joinNonEmpty(" ", mark, string(l.phase), facts) // The current phase matters most.
	}
	if runes := []rune(line); len(runes) > columns {
		line = string(runes[:max(0, columns)])
	}
	return line
}

func (l *liveLine) close() {
	close(l.done)
	l.drawing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

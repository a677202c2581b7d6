package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/output"
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

// fiveSteps are the phases that people see.
var fiveSteps = []loop.Phase{loop.PhaseSense, loop.PhaseDecide, loop.PhaseAct, loop.PhaseGather, loop.PhaseVerify}

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

// frame is how often the line is drawn.
const frame = 100 * time.Millisecond

func newLiveLine(w io.Writer, s output.Style, width func() int, now func() time.Time, iterations int) *liveLine {
	l := &liveLine{w: w, style: s, width: width, now: now, iterations: iterations, started: now(), done: make(chan struct{})}
	l.drawing.Go(l.animate)
	return l
}

func (l *liveLine) animate() {
	tick := time.NewTicker(frame)
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
}

func (l *liveLine) see(e loop.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(e)
	if text := l.text(e); text != "" {
		l.erase()
		_, _ = fmt.Fprintln(l.w, text)
	}
	l.draw()
}

// note keeps what the line shows.
func (l *liveLine) note(e loop.Event) {
	switch e.Kind {
	case loop.EventPhase:
		l.phase = loop.Phase(e.Text)
		if l.phase == loop.PhaseAct {
			l.iteration++
		}
	case engine.EventPrompt:
		l.bytes += int64(len(e.Text))
	case loop.EventOutput:
		if e.Phase == loop.PhaseAct {
			l.bytes += int64(len(e.Text))
		}
	}
}

// text is what stays on the screen of an event.
func (l *liveLine) text(e loop.Event) string {
	body := strings.TrimRight(output.Clean(describeEvent(e)), "\n")
	switch e.Kind {
	case loop.EventPhase, engine.EventPrompt, loop.EventOutcome:
		return ""
	case loop.EventOutput:
		var lines []string
		for line := range strings.SplitSeq(body, "\n") {
			lines = append(lines, l.style.Dim("  "+line))
		}
		return strings.Join(lines, "\n")
	case loop.EventGate:
		if gateMark(e.Text) == "✓" {
			return "  " + l.style.Green(body)
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
	_, _ = io.WriteString(l.w, "\r\x1b[2K"+l.strip())
	l.drawn = true
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// bytesPerToken is the rule of thumb by which tokens are estimated while
// nothing is known of them; the account after the run is what counts.
const bytesPerToken = 4

// strip is the line: the five steps, time, iteration, tokens. It is cut to the
// width of the terminal, because a line that wraps cannot be drawn again.
func (l *liveLine) strip() string {
	var steps []string
	for _, p := range fiveSteps {
		steps = append(steps, l.step(p))
	}
	facts := elapsed(l.now().Sub(l.started))
	if l.iteration > 0 {
		facts += fmt.Sprintf(" · iter %d/%d", l.iteration, l.iterations)
	}
	if l.bytes > 0 {
		facts += fmt.Sprintf(" · ~%s tok", formatNumber(l.bytes/bytesPerToken))
	}
	mark, columns := spinner[l.turn%len(spinner)], l.width()-1
	line := fmt.Sprintf("%s %s  %s", mark, strings.Join(steps, " · "), facts)
	if utf8.RuneCountInString(line) > columns {
		line = joinNonEmpty(" ", mark, string(l.phase), facts) // The step that it is at says more than those around it.
	}
	return cut(line, columns)
}

// elapsed is a time that changes often enough to show that something lives.
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Truncate(time.Second).String()
}

// step marks a step as over, at work, or to come.
func (l *liveLine) step(p loop.Phase) string {
	switch {
	case p == l.phase:
		return "[" + string(p) + "]"
	case p.Before(l.phase):
		return "✓" + string(p)
	}
	return string(p)
}

// cut shortens a text without decorations to a number of columns.
func cut(text string, columns int) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:max(0, columns)])
	}
	return text
}

func (l *liveLine) close() {
	close(l.done)
	l.drawing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

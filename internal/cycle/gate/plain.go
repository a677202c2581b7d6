package gate

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxHeld bounds the output of unfinished tests that Plain holds back.
const maxHeld = 1 << 20

// Plain returns a writer that turns the events of go test -json back into what
// people and agents read, and passes it on to w. As go test does without -v,
// it shows of a package that passed its last line only; of one that failed it
// shows the tests that failed, each under its own line, and what belongs to no
// test. Lines that are no events pass unchanged, and so does one that is too
// long to be one.
//
// A test that prints more than Plain holds back is shown even if it passes.
// Close shows what tests that never ended have printed, which is where a gate
// hangs; it does not close w. An error is that of w.
func Plain(w io.Writer) io.WriteCloser { return &plain{to: w} }

// plain holds the output of each test until it is known whether to show it.
type plain struct {
	to      io.Writer
	verbose bool // everything matters
	lines   lines
	held    map[testName]*heldOutput
	size    int
	next    int
	err     error
}

type testName struct{ pkg, test string }

type heldOutput struct {
	at   int // order of the tests' first outputs
	text []string
}

// Write fails if the underlying writer has failed.
func (p *plain) Write(b []byte) (int, error) {
	p.lines.cutLines(b, p.takeLine, p.writeOut)
	if p.err != nil {
		return 0, p.err
	}
	return len(b), nil
}

// Close shows the output that is still held.
func (p *plain) Close() error {
	p.lines.endLine(p.takeLine)
	p.showHeld(func(testName) bool { return true })
	return p.err
}

func (p *plain) writeOut(b []byte) {
	if p.err != nil || len(b) == 0 {
		return
	}
	_, p.err = p.to.Write(b)
}

func (p *plain) takeLine(b []byte) {
	e, ok := parseEvent(b)
	switch {
	case !ok:
		p.writeOut(b)
	case p.verbose || e.ImportPath != "":
		p.writeOut([]byte(e.Output))
	case e.Action == "output":
		p.holdOutput(e)
	case e.Action == "pass" || e.Action == "skip" || e.Action == "fail":
		p.endTest(e)
	}
}

// holdOutput keeps an output until its test or package has ended. Announcements of
// go test -v are left out.
func (p *plain) holdOutput(e event) {
	if e.Test != "" && strings.HasPrefix(e.Output, "=== ") {
		return
	}
	if p.held == nil {
		p.held = map[testName]*heldOutput{}
	}
	name := testName{e.Package, e.Test}
	h := p.held[name]
	if h == nil {
		h = &heldOutput{at: p.next}
		p.held[name] = h
		p.next++
	}
	h.text = append(h.text, e.Output)
	// The entry itself takes room too: many short outputs must not evade the bound.
	if p.size += len(e.Output) + 64; p.size > maxHeld {
		p.showHeld(func(testName) bool { return true })
	}
}

func (p *plain) endTest(e event) {
	name := testName{e.Package, e.Test}
	switch {
	case e.Action == "fail" && e.Test == "":
		p.showHeld(func(n testName) bool { return n.pkg == e.Package && n.test != "" })
		p.showText(p.takeHeld(name))
	case e.Action == "fail":
		p.showText(verdictFirst(p.takeHeld(name)))
	case e.Test == "":
		p.showText(lastLine(p.takeHeld(name)))
	default:
		p.takeHeld(name)
	}
}

// takeHeld removes the held output of a test and returns it.
func (p *plain) takeHeld(name testName) []string {
	h := p.held[name]
	if h == nil {
		return nil
	}
	delete(p.held, name)
	for _, s := range h.text {
		p.size -= len(s) + 64
	}
	return h.text
}

// showHeld shows the held output of some tests, in the order of their first output.
func (p *plain) showHeld(which func(testName) bool) {
	names := slices.SortedFunc(maps.Keys(p.held), func(a, b testName) int {
		return cmp.Compare(p.held[a].at, p.held[b].at)
	})
	for _, n := range names {
		if which(n) {
			p.showText(p.takeHeld(n))
		}
	}
}

func (p *plain) showText(text []string) {
	p.writeOut([]byte(strings.Join(text, "")))
}

// verdictFirst puts "--- FAIL: TestX (0.00s)" above what the test logged, as
// go test does without -v.
func verdictFirst(text []string) []string {
	i := slices.IndexFunc(text, func(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, " "), "--- FAIL: ") })
	if i < 0 {
		return text
	}
	verdict := text[i]
	return slices.Insert(slices.Delete(text, i, i+1), 0, verdict)
}

// lastLine keeps "ok" and "no test files" of a package that did not fail.
func lastLine(text []string) []string {
	return text[max(0, len(text)-1):]
}

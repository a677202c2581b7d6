package gate

import (
	"io"
	"os"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// output receives what a gate prints. It counts the original, and shows it in the
// form that the gate's author expects.
type output struct {
	Counter
	shown io.Writer
	plain *plain   // turns the events of go test back; nil if there are none
	names *unnamed // removes the names from pytest's output; nil if there are none
}

// newOutput makes the output of a gate. What is shown goes to tail, and to live unless
// that is nil.
func newOutput(tail, live io.Writer, s script) *output {
	o := &output{shown: tail}
	if live != nil {
		o.shown = io.MultiWriter(tail, &listener{to: live})
	}
	if s.pytest {
		o.names = &unnamed{to: o.shown}
		o.shown = o.names
	}
	if s.golang {
		o.plain = &plain{to: o.shown, verbose: s.verbose}
		o.shown = o.plain
	}
	return o
}

// Write takes all of p and never fails.
func (o *output) Write(p []byte) (int, error) {
	for _, w := range []io.Writer{&o.Counter, o.shown} {
		if n, err := w.Write(p); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// flush shows what was held back. What it is shown to never fails.
func (o *output) flush() {
	if o.plain != nil {
		_ = o.plain.Close()
	}
	if o.names != nil {
		o.names.flush()
	}
}

// listener passes on what a gate prints until the first error. It never fails,
// because a live reader must not change what is counted.
type listener struct {
	to   io.Writer
	gone bool
}

func (l *listener) Write(p []byte) (int, error) {
	if !l.gone {
		_, err := l.to.Write(p)
		l.gone = err != nil
	}
	return len(p), nil
}

// testCounts returns the counts of the output, else those of the reports, else
// nil. Never both: most runners that write reports also print their sum. Names
// that the output does not have are taken from reports of as many tests.
func (o *output) testCounts(dir string, earlier Reports) (*loop.TestCounts, loop.TestNames) {
	counts, spoke := o.Counts()
	names := o.Names()
	if len(names.Ran) > 0 {
		return &counts, names
	}
	var all sum
	if root, err := os.OpenRoot(dir); err == nil {
		defer root.Close()
		var reported loop.TestNames
		all, reported = readReports(root.FS(), earlier)
		if names.Ran = reported.Ran; len(reported.Failed) > 0 {
			names.Failed = reported.Failed
		}
	}
	switch reported, ok := all.countsOf("junit"); {
	case !spoke && !ok:
		return nil, loop.TestNames{}
	case !spoke:
		return &reported, names
	case reported.Ran() != counts.Ran():
		names.Ran, names.Failed = nil, nil
	}
	return &counts, names
}

// findReportsIn lists the reports of a folder. It returns none if the folder
// cannot be opened; then the gate fails by itself.
func findReportsIn(dir string) Reports {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	return FindReports(root.FS())
}

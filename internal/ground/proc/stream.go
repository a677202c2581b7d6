package proc

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

const (
	// linger is how long output is read after the program is dead: a descendant that
	// left the process group can hold it open for ever.
	linger = 200 * time.Millisecond
	// lateRead limits each read of what is left in a pipe after linger, and
	// lateBytes all of them; a pipe holds no more unless somebody still writes.
	lateRead  = 10 * time.Millisecond
	lateBytes = 1 << 20
	// lateInput is how long Run waits for a Read of Spec.Stdin after the program
	// ended.
	lateInput = 100 * time.Millisecond
)

// streams are the standard streams of one program. child are the program's ends;
// toClose are those of them that this package opened. outlets and inlet are the
// other ends.
type streams struct {
	meter   *meter
	child   [3]*os.File
	toClose []*os.File
	outlets []outlet
	inlet   *inlet
	pumps   sync.WaitGroup
}

// outlet copies what a program writes.
type outlet struct {
	from  *os.File
	to    io.Writer
	meter *meter
}

// inlet copies what a program reads.
type inlet struct {
	from  io.Reader
	to    *os.File
	ended chan struct{}
}

func openStreams(s Spec, exceed func(Limit)) (*streams, error) {
	std := &streams{meter: newMeter(s.Limits.Output, exceed)}
	err := errors.Join(std.openInput(s.Stdin), std.openOutput(1, s.Stdout))
	if s.Stderr != nil && sameWriter(s.Stdout, s.Stderr) {
		std.child[2] = std.child[1]
	} else {
		err = errors.Join(err, std.openOutput(2, s.Stderr))
	}
	if err != nil {
		std.closeChild()
		std.closeOwn()
		return nil, err
	}
	return std, nil
}

// sameWriter reports whether two writers are equal. Their type may not be comparable.
func sameWriter(a, b io.Writer) bool {
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t != nil && t.Comparable() && a == b
}

func (s *streams) openInput(from io.Reader) error {
	if f, ok := from.(*os.File); ok || from == nil {
		return s.useFile(0, f, os.O_RDONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.child[0], s.toClose = r, append(s.toClose, r)
	s.inlet = &inlet{from: from, to: w, ended: make(chan struct{})}
	return nil
}

func (s *streams) openOutput(fd int, to io.Writer) error {
	if f, ok := to.(*os.File); ok || to == nil {
		return s.useFile(fd, f, os.O_WRONLY)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.child[fd], s.toClose = w, append(s.toClose, w)
	s.outlets = append(s.outlets, outlet{from: r, to: to, meter: s.meter})
	return nil
}

// useFile gives the program f itself, or the null device if f is nil.
func (s *streams) useFile(fd int, f *os.File, flag int) error {
	if f == nil {
		null, err := os.OpenFile(os.DevNull, flag, 0)
		if err != nil {
			return err
		}
		f, s.toClose = null, append(s.toClose, null)
	}
	s.child[fd] = f
	return nil
}

// closeChild closes pawl's copies of the program's ends, after the start.
func (s *streams) closeChild() {
	for _, f := range s.toClose {
		f.Close()
	}
}

// closeOwn closes the other ends of a program that did not start.
func (s *streams) closeOwn() {
	for _, o := range s.outlets {
		o.from.Close()
	}
	if s.inlet != nil {
		s.inlet.to.Close()
	}
}

// startCopying starts to copy. It ends when the program's side is closed, or soon
// after the call of waitForCopying.
func (s *streams) startCopying() {
	for _, o := range s.outlets {
		s.pumps.Go(o.copyOutput)
	}
	if s.inlet != nil {
		go s.inlet.copyInput()
	}
}

// waitForCopying returns when nothing more is written to the caller's writers. It is
// called after the program has ended.
func (s *streams) waitForCopying() {
	for _, o := range s.outlets {
		if err := o.from.SetReadDeadline(time.Now().Add(linger)); errors.Is(err, os.ErrNoDeadline) {
			timer := time.AfterFunc(linger, func() { o.from.Close() })
			defer timer.Stop()
		}
	}
	s.pumps.Wait()
	if s.inlet != nil {
		s.inlet.stopCopying()
	}
}

// buffers are reused, because most programs are short and write little.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// copyOutput copies until the program's side is closed or the deadline has passed.
func (o outlet) copyOutput() {
	defer o.from.Close()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var broken bool
	pass := func() (int, error) {
		n, err := o.from.Read(*buf)
		fits := o.meter.takeBytes(n)
		if fits > 0 && !broken {
			_, failed := o.to.Write((*buf)[:fits])
			broken = failed != nil
		}
		if fits < n {
			o.meter.exceed(OutputLimit)
		}
		return n, err
	}
	var err error
	for err == nil {
		_, err = pass()
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	// A slow writer may have used up the time while output was still in the pipe.
	for left := lateBytes; left > 0; {
		err := o.from.SetReadDeadline(time.Now().Add(lateRead))
		n := 0
		if err == nil {
			n, err = pass()
		}
		if err != nil {
			return
		}
		left -= n
	}
}

// copyInput copies until the reader ends or the program no longer reads, which is not
// an error.
func (i *inlet) copyInput() {
	defer close(i.ended)
	defer i.to.Close()
	_, _ = io.Copy(i.to, i.from)
}

// stopCopying ends copyInput after the program has ended. If a Read does not return,
// its goroutine stays until it does.
func (i *inlet) stopCopying() {
	_ = i.to.SetWriteDeadline(time.Now())
	timer := time.NewTimer(lateInput)
	defer timer.Stop()
	select {
	case <-i.ended:
	case <-timer.C:
	}
}

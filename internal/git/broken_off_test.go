//go:build unix

package git

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// breaking kills one process in the middle of what it writes.
type breaking struct {
	mu      sync.Mutex
	in      int   // so many processes from now on
	keep    int   // how many bytes it writes before
	written []int // by each process
	struck  bool
}

// breakingOutput is the output of one process.
type breakingOutput struct {
	*breaking
	io.Writer
	process int
	kill    context.CancelFunc // nil: it is not the one that is killed
}

func (o *breakingOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.written[o.process]
	o.written[o.process] += len(p)
	if o.kill == nil || had+len(p) <= o.keep {
		return o.Writer.Write(p)
	}
	o.struck = true
	_, _ = o.Writer.Write(p[:max(0, o.keep-had)])
	o.kill()
	return 0, io.ErrClosedPipe
}

func (b *breaking) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	b.mu.Lock()
	out := &breakingOutput{breaking: b, Writer: spec.Stdout, process: len(b.written)}
	b.written = append(b.written, 0)
	b.in--
	if b.in == 0 {
		out.kill = kill
	}
	b.mu.Unlock()
	if spec.Stdout != nil {
		spec.Stdout = out
	}
	res, err := proc.Plain{}.Run(ctx, spec)
	b.mu.Lock()
	defer b.mu.Unlock()
	if out.kill != nil && b.struck {
		return proc.Result{Exit: 128 + 9, Ended: proc.Signaled}, nil
	}
	return res, err
}

// A process that the system kills has written a part of its answer, or nothing: a
// list would be shorter, a file empty, and a merge without conflicts.
func TestNoVerbBelievesAnAnswerThatBreaksOff(t *testing.T) {
	try := func(do verb, g given, in, keep int) (written []int, struck bool, err error) {
		b := &breaking{}
		r, err := OpenWith(t.Context(), b, g.dir)
		must(t, err)
		b.in, b.keep, b.written = in, keep, nil
		err = do(t.Context(), r, g)
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(b.written), b.struck, err
	}
	advance := movers["Advance"]
	written, _, err := try(advance, newGiven(t), 0, 0)
	must(t, err)
	for i, n := range written {
		if _, struck, err := try(advance, newGiven(t), i+1, n/2); struck && err == nil {
			t.Errorf("Advance = no error though process %d was killed after %d of %d bytes", i+1, n/2, n)
		}
	}
	g := newGiven(t)
	for name, do := range verbs {
		written, _, err := try(do, g, 0, 0)
		if err != nil {
			t.Fatalf("%s = %v", name, err)
		}
		for i, n := range written {
			keeps := slices.Compact([]int{0, n / 2, n - 1})
			for _, keep := range keeps {
				if n == 0 {
					continue
				}
				if _, struck, err := try(do, g, i+1, keep); struck && err == nil {
					t.Errorf("%s = no error though process %d was killed after %d of %d bytes", name, i+1, keep, n)
				}
			}
		}
	}
}

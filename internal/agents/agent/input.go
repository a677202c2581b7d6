package agent

import (
	"io"
	"sync"
)

// Input is the standard input of a program that one converses with. Write never
// blocks, so that the reader of the program's output can answer it. The zero
// Input is ready to use; it must not be copied.
type Input struct {
	mu     sync.Mutex
	more   sync.Cond
	text   []byte
	closed bool
}

// Write queues p. After Close it returns io.ErrClosedPipe.
func (i *Input) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return 0, io.ErrClosedPipe
	}
	i.text = append(i.text, p...)
	i.wakeReaders()
	return len(p), nil
}

// Close lets Read return io.EOF after everything was read. It may be called more
// than once.
func (i *Input) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.wakeReaders()
	return nil
}

// Read blocks until there is something to read, or Close.
func (i *Input) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.text) == 0 && !i.closed {
		i.cond().Wait()
	}
	if len(i.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, i.text)
	i.text = i.text[n:]
	return n, nil
}

func (i *Input) wakeReaders() { i.cond().Broadcast() }

// cond returns the condition. It binds it to the mutex, since the zero Input has
// none.
func (i *Input) cond() *sync.Cond {
	i.more.L = &i.mu
	return &i.more
}

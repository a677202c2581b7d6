package agent

import (
	"io"
	"sync"
)

// Input is standard input for a program that is talked with. Write never
// blocks, so that whoever reads the program's output can answer it. The zero
// Input is ready; it must not be copied.
type Input struct {
	mu     sync.Mutex
	more   sync.Cond
	text   []byte
	closed bool
}

// Write queues p. After Close it is io.ErrClosedPipe.
func (i *Input) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return 0, io.ErrClosedPipe
	}
	i.text = append(i.text, p...)
	i.wake()
	return len(p), nil
}

// Close lets Read return io.EOF once everything was read. It can be called
// more than once.
func (i *Input) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.wake()
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

func (i *Input) wake() { i.cond().Broadcast() }

// cond is the condition, bound to the mutex when it is first used.
func (i *Input) cond() *sync.Cond {
	i.more.L = &i.mu
	return &i.more
}

package proc

import "bytes"

// Bounded is a writer that keeps the first Limit bytes and drops the rest, so
// that a child is never blocked by a full pipe. The zero Bounded keeps nothing.
// Only one goroutine may use it. Ring may be used by several, and also keeps the end
// of an output.
type Bounded struct {
	bytes.Buffer
	Limit int
	Cut   bool // more bytes were written
}

// Write never fails.
func (b *Bounded) Write(p []byte) (int, error) {
	room := b.Limit - b.Len()
	if len(p) <= room {
		return b.Buffer.Write(p)
	}
	b.Cut = true
	b.Buffer.Write(p[:max(0, room)])
	return len(p), nil
}

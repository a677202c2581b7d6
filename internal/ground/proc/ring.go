package proc

import (
	"fmt"
	"strings"
	"sync"
)

// Ring is a writer that keeps the first and the last bytes written to it, and drops
// and counts those between. Any number of goroutines may use it. The zero Ring keeps
// nothing.
type Ring struct {
	mu    sync.Mutex
	head  []byte // at most first bytes
	tail  []byte // at most last bytes; when full, a ring that starts at next
	first int
	last  int
	next  int
	total int64
}

// NewRing returns a Ring that keeps that many of the first and of the last bytes. It
// allocates memory as it fills.
func NewRing(first, last int) *Ring {
	return &Ring{first: max(first, 0), last: max(last, 0)}
}

// Write takes all of p and never fails.
func (r *Ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	r.total += int64(n)
	if room := r.first - len(r.head); room > 0 {
		taken := min(room, len(p))
		r.head = append(r.head, p[:taken]...)
		p = p[taken:]
	}
	r.keepTail(p)
	return n, nil
}

// keepTail appends p to the tail, and drops the oldest bytes of a full one.
func (r *Ring) keepTail(p []byte) {
	if extra := len(p) - r.last; extra > 0 {
		p = p[extra:]
	}
	if room := r.last - len(r.tail); room > 0 {
		taken := min(room, len(p))
		r.tail = append(r.tail, p[:taken]...)
		p = p[taken:]
	}
	for len(p) > 0 {
		copied := copy(r.tail[r.next:], p)
		r.next = (r.next + copied) % r.last
		p = p[copied:]
	}
}

// Total returns how many bytes were written.
func (r *Ring) Total() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// droppedBytes returns how many bytes were written but not kept.
func (r *Ring) droppedBytes() int64 { return r.total - int64(len(r.head)) - int64(len(r.tail)) }

// Bytes returns a copy of the kept bytes, without a mark where bytes were dropped.
func (r *Ring) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, tail := r.headAndTail()
	return []byte(head + tail)
}

// String returns the kept bytes as valid UTF-8, with each run of invalid bytes
// replaced by U+FFFD. A line in place of dropped bytes says how many there were.
func (r *Ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, tail := r.headAndTail()
	if dropped := r.droppedBytes(); dropped > 0 {
		return validUTF8(head) + fmt.Sprintf("\n[%d bytes dropped]\n", dropped) + validUTF8(tail)
	}
	return validUTF8(head + tail)
}

func (r *Ring) headAndTail() (head, tail string) {
	return string(r.head), string(r.tail[r.next:]) + string(r.tail[:r.next])
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

package proc

import "sync/atomic"

// meter counts the bytes of all outlets of one program. The nil meter has no limit.
type meter struct {
	left   atomic.Int64 // negative once the limit was passed
	exceed func(Limit)
}

func newMeter(limit int64, exceed func(Limit)) *meter {
	if limit <= 0 {
		return nil
	}
	m := &meter{exceed: exceed}
	m.left.Store(limit)
	return m
}

// takeBytes returns how many of the next n bytes may be passed on. Once that is fewer
// than n, it is 0 for all later bytes.
func (m *meter) takeBytes(n int) int {
	if m == nil || n == 0 {
		return n
	}
	left := m.left.Add(int64(-n))
	return max(0, n+int(min(left, 0)))
}

// isPassed reports whether the limit was passed.
func (m *meter) isPassed() bool { return m != nil && m.left.Load() < 0 }

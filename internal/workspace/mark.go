package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// mark is how a file was left when its tree was made. A file whose mark still
// holds was not written since; every other file is read.
type mark struct {
	mode uint32
	id   string

	size     int64
	modified time.Time
	stamp    stamp
	sure     bool // set by seal; false: the mark proves nothing
}

// stamp is what a program cannot set back: the time of the last change of the
// inode, and its number.
type stamp struct {
	changed int64 // nanoseconds since 1970
	inode   uint64
}

// setFrom records the file that info describes. The mark proves nothing before seal.
func (m *mark) setFrom(info fs.FileInfo) {
	m.stamp, _ = stampOf(info)
	m.size, m.modified, m.sure = info.Size(), info.ModTime(), false
}

// isUntouched reports whether the file is untouched, executable bit included.
func (m *mark) isUntouched(info fs.FileInfo) bool {
	if !m.sure || m.size != info.Size() || !m.modified.Equal(info.ModTime()) {
		return false
	}
	s, ok := stampOf(info)
	return ok && s == m.stamp
}

// sealMarks makes the marks of a complete tree sure. The present time is asked from
// the file system, by a file that is made for that, because its clock is coarser
// than any other. That file has the one name that no tree holds.
func (c *checkout) sealMarks(dir string) {
	now, ok := presentStamp(dir)
	if !ok {
		return
	}
	for i := range c.marks {
		c.marks[i].sealBefore(now)
	}
}

// sealBefore makes a mark sure if it was taken before the tick of the file system's
// clock that holds now: a write within the same tick leaves the same stamp, so
// that a mark of this tick would hold for a file that was written after it.
func (m *mark) sealBefore(now int64) { m.sure = m.stamp.changed < now }

// presentStamp makes a file in dir for a moment and returns its stamp. The file is
// changed once after it was looked at: newer kernels have a finer time for such a
// change, and for every later one of a file that note has looked at.
func presentStamp(dir string) (int64, bool) {
	probe, err := os.Create(filepath.Join(dir, ".git"))
	if err != nil {
		return 0, false
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	if _, err := probe.Stat(); err != nil {
		return 0, false
	}
	if err := probe.Chmod(0o600); err != nil {
		return 0, false
	}
	info, err := probe.Stat()
	if err != nil {
		return 0, false
	}
	s, ok := stampOf(info)
	return s.changed, ok
}

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// mark describes a file when its tree was made. A file that still matches its mark was not
// written since; any other file is read.
type mark struct {
	mode uint32
	id   string

	size     int64
	modified time.Time
	stamp    stamp
	sure     bool // set by sealBefore; false: the mark proves nothing
}

// stamp is what a program cannot set: the number of the inode, and the time of its last
// change.
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

// sealMarks makes the marks of a complete tree sure. It gets the time from the file
// system, by making a file with a name that no tree has, because the clock of file systems
// is coarser than others.
func (c *checkout) sealMarks(dir string) {
	now, ok := presentStamp(dir)
	if !ok {
		return
	}
	for i := range c.marks {
		c.marks[i].sealBefore(now)
	}
}

// sealBefore makes a mark sure if it is from before now, the current tick of the file
// system's clock: a later write in the same tick would leave the same stamp, and the mark
// would match a changed file.
func (m *mark) sealBefore(now int64) { m.sure = m.stamp.changed < now }

// presentStamp makes a temporary file in dir and returns its time. It changes the file
// once after reading its time: newer kernels give a finer time to a change after a read,
// as they do for files that have a mark.
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

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
	sure     bool // false: the mark proves nothing
}

// stamp is what a program cannot set back: the time of the last change of the
// inode, and its number.
type stamp struct {
	changed int64 // nanoseconds since 1970
	inode   uint64
}

// note records the file that info describes.
func (m *mark) note(info fs.FileInfo) {
	s, ok := stampOf(info)
	m.size, m.modified, m.stamp, m.sure = info.Size(), info.ModTime(), s, ok
}

// holds reports whether the file is untouched, executable bit included.
func (m *mark) holds(info fs.FileInfo) bool {
	if !m.sure || m.size != info.Size() || !m.modified.Equal(info.ModTime()) {
		return false
	}
	s, ok := stampOf(info)
	return ok && s == m.stamp
}

// seal makes marks unsure that were taken in the file system's present tick:
// a later write within the same tick would leave the same stamp. The present is
// asked from the file system, by a file made for that, because its clock is
// coarser than any other. The file has the one name that no tree holds. Everything that is written after seal has a stamp
// that is not earlier.
func (t *Tree) seal(dir string) {
	now, ok := present(dir)
	for i := range t.marks {
		m := &t.marks[i]
		m.sure = m.sure && ok && m.stamp.changed < now
	}
}

// present makes a file in dir for a moment and returns its stamp.
func present(dir string) (int64, bool) {
	probe, err := os.Create(filepath.Join(dir, ".git"))
	if err != nil {
		return 0, false
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	info, err := probe.Stat()
	if err != nil {
		return 0, false
	}
	s, ok := stampOf(info)
	return s.changed, ok
}

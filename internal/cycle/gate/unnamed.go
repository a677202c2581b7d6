package gate

import (
	"io"
	"slices"
	"strings"
)

// unnamed removes from pytest's output what the gate's author did not request:
// the names of tests that passed, and the heading above them if it becomes empty.
type unnamed struct {
	to      io.Writer
	lines   lines
	heading []byte
	err     error
}

// Write fails if the underlying writer has failed.
func (u *unnamed) Write(b []byte) (int, error) {
	u.lines.cutLines(b, u.takeLine, u.writeOut)
	if u.err != nil {
		return 0, u.err
	}
	return len(b), nil
}

func (u *unnamed) flush() {
	u.lines.endLine(u.takeLine)
	u.writeOut(u.heading)
}

func (u *unnamed) writeOut(b []byte) {
	if u.err == nil && len(b) > 0 {
		_, u.err = u.to.Write(b)
	}
}

func (u *unnamed) takeLine(b []byte) {
	s := visibleText(b)
	if strings.Trim(s, "= ") == "short test summary info" {
		u.writeOut(u.heading)
		u.heading = slices.Clone(b)
		return
	}
	if _, _, ok := pytestTest(s); ok && strings.HasPrefix(s, "PASSED ") {
		return
	}
	var last pytestCount
	if last.addLine(s); !last.spoke {
		u.writeOut(u.heading)
	}
	u.heading = nil
	u.writeOut(b)
}

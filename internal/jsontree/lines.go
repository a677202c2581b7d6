package jsontree

import (
	"sort"
	"unicode/utf8"
)

// Lines finds places in a text.
type Lines struct {
	src    []byte
	starts []int
}

// NewLines returns the lines of a text that Parse has read.
func NewLines(src []byte) *Lines {
	l := &Lines{src: trimMark(src), starts: []int{0}}
	for i, c := range l.src {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// Place returns the line and the column of a byte, both from 1; columns are characters.
func (l *Lines) Place(at int) (line, column int) {
	at = min(at, len(l.src))
	line = sort.SearchInts(l.starts, at+1)
	return line, utf8.RuneCount(l.src[l.starts[line-1]:at]) + 1
}

package jsontree

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// Place returns the line and the column of a byte of a text, both from 1; columns are
// characters. Lines is faster for many.
func Place(src []byte, at int) (line, column int) {
	src = trimMark(src)
	before := src[:min(at, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// Lines finds many places in a text.
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

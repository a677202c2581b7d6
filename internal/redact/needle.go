package redact

import "slices"

// node is a place between two bytes of a cell. A cell is one unit of a value,
// such as a character, in all its spellings: a trie, named by its root.
type node struct {
	next []edge
	end  bool // a spelling ends here; in a root: the cell may be left out
}

type edge struct {
	b  byte
	to *node
}

func (n *node) step(b byte) *node {
	for i := range n.next {
		if n.next[i].b == b {
			return n.next[i].to
		}
	}
	return nil
}

func (n *node) insert(spelling string) {
	for i := range len(spelling) {
		to := n.step(spelling[i])
		if to == nil {
			to = &node{}
			n.next = append(n.next, edge{spelling[i], to})
		}
		n = to
	}
	n.end = true
}

// needle is a value in one encoding: one cell after the other.
type needle []*node

// place is how far a match has come.
type place struct {
	cell int
	at   *node
}

// enter adds the places that are reached with at, and says whether the needle
// may end there.
func (n needle) enter(to []place, cell int, at *node) ([]place, bool) {
	for {
		if p := (place{cell, at}); len(at.next) > 0 && !slices.Contains(to, p) {
			to = append(to, p)
		}
		if !at.end {
			return to, false
		}
		cell++
		if cell == len(n) {
			return to, true
		}
		at = n[cell]
	}
}

// match returns how many bytes at the start of text are the needle, the most
// if there is a choice, and whether more text could change the answer. It keeps
// every place that is possible at once, so that no text makes it go back.
func (n needle) match(text []byte) (length int, more bool) {
	var first, second [8]place
	now, then := append(first[:0], place{0, n[0]}), second[:0]
	for i, b := range text {
		then = then[:0]
		for _, p := range now {
			to := p.at.step(b)
			if to == nil {
				continue
			}
			var done bool
			if then, done = n.enter(then, p.cell, to); done {
				length = i + 1
			}
		}
		if len(then) == 0 {
			return length, false
		}
		now, then = then, now
	}
	return length, true
}

// heads tells every way in which the needle can begin.
func (n needle) heads(add func([headLen]byte)) {
	var head [headLen]byte
	n.walk(place{0, n[0]}, head, 0, add)
}

func (n needle) walk(p place, head [headLen]byte, size int, add func([headLen]byte)) {
	for _, e := range p.at.next {
		head[size] = e.b
		if size+1 == headLen {
			add(head)
			continue
		}
		var room [4]place
		reached, _ := n.enter(room[:0], p.cell, e.to)
		for _, q := range reached {
			n.walk(q, head, size+1, add)
		}
	}
}

package redact

import "slices"

// node is a place between two bytes of a cell. A cell is one unit of a value,
// such as a character, in all its spellings. It is a trie, and is identified by
// its root.
type node struct {
	next []edge
	end  bool // a spelling ends here; in a root: the cell may be left out
}

type edge struct {
	b  byte
	to *node
}

func (n *node) child(b byte) *node {
	for i := range n.next {
		if n.next[i].b == b {
			return n.next[i].to
		}
	}
	return nil
}

func (n *node) insert(spelling string) {
	for i := range len(spelling) {
		to := n.child(spelling[i])
		if to == nil {
			to = &node{}
			n.next = append(n.next, edge{spelling[i], to})
		}
		n = to
	}
	n.end = true
}

// needle is a value in one encoding: a sequence of cells.
type needle []*node

// place is how far a match has come.
type place struct {
	cell int
	at   *node
}

// addPlaces adds the places that are reached at a node, and reports whether the
// needle may end there.
func (n needle) addPlaces(to []place, cell int, at *node) ([]place, bool) {
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

// matchPrefix returns how many bytes at the start of text match the needle, at
// most, and whether more text could change the answer. It follows all possible
// places at the same time and never goes back, so that its time is linear.
func (n needle) matchPrefix(text []byte) (length int, more bool) {
	var first, second [8]place
	now, then := append(first[:0], place{0, n[0]}), second[:0]
	for i, b := range text {
		then = then[:0]
		for _, p := range now {
			to := p.at.child(b)
			if to == nil {
				continue
			}
			var done bool
			if then, done = n.addPlaces(then, p.cell, to); done {
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

// eachHead calls add with every head that the needle can begin with.
func (n needle) eachHead(add func([headLen]byte)) {
	var head [headLen]byte
	n.walkHeads(place{0, n[0]}, head, 0, add)
}

func (n needle) walkHeads(p place, head [headLen]byte, size int, add func([headLen]byte)) {
	for _, e := range p.at.next {
		head[size] = e.b
		if size+1 == headLen {
			add(head)
			continue
		}
		var room [4]place
		reached, _ := n.addPlaces(room[:0], p.cell, e.to)
		for _, q := range reached {
			n.walkHeads(q, head, size+1, add)
		}
	}
}

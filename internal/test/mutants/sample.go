package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
)

// sample chooses n mutants of each group: those with the lowest hashes. A change
// of one function therefore changes the choice in no other, apart from filling or
// taking the places of the mutants that the change removed or added. Operators
// take turns, so that the many constants do not crowd out the few fences. The
// groups of the result are mixed, so that a hunt that is cut short has seen some
// of each. n of 0 is all.
func sample(all []bug, groups []string, n int, seed uint64) []bug {
	var chosen [][]bug
	for _, group := range groups {
		byOp := map[string][]bug{}
		for _, m := range all {
			if m.Group == group {
				byOp[m.Op] = append(byOp[m.Op], m)
			}
		}
		ops := []string{opDelete, opError, opNegate, opShift, opConstant, opSQL}
		for _, op := range ops {
			sortByHash(byOp[op], seed)
		}
		var some []bug
		for turn := 0; ; turn++ {
			before := len(some)
			for _, op := range ops {
				if turn < len(byOp[op]) && (n == 0 || len(some) < n) {
					some = append(some, byOp[op][turn])
				}
			}
			if len(some) == before {
				break
			}
		}
		chosen = append(chosen, some)
	}
	var mixed []bug
	for turn := 0; ; turn++ {
		before := len(mixed)
		for _, some := range chosen {
			if turn < len(some) {
				mixed = append(mixed, some[turn])
			}
		}
		if len(mixed) == before {
			return mixed
		}
	}
}

// sortByHash orders mutants by a hash of the seed and of what each changes: the
// group, the function, the line, the change and the ordinal among those that are
// alike in the function. Neither its number nor its file counts, because both
// change with other code.
func sortByHash(mutants []bug, seed uint64) {
	hashes := map[int][]byte{}
	for _, m := range mutants {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %q %q %q %d", seed, m.Group, m.Func, m.Op, m.Text, m.Before, m.After, m.Nth))
		hashes[m.ID] = sum[:]
	}
	slices.SortFunc(mutants, func(a, b bug) int {
		return cmp.Or(bytes.Compare(hashes[a.ID], hashes[b.ID]), cmp.Compare(a.ID, b.ID))
	})
}

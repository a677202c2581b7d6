package main

import (
	"math/rand/v2"
	"slices"
)

// sample chooses n mutants of each group, the same ones for the same seed and
// the same sources. Operators take turns, so that the many constants do not
// crowd out the few fences. It returns them with the groups mixed, so that a
// hunt that is cut short has seen some of each. n of 0 is all.
func sample(all []bug, groups []string, n int, seed uint64) []bug {
	var chosen [][]bug
	for _, group := range groups {
		// A generator of its own, so that a group does not depend on the others.
		random := rand.New(rand.NewPCG(seed, uint64(slices.Index(named, group))))
		byOp := map[string][]bug{}
		for _, m := range all {
			if m.Group == group {
				byOp[m.Op] = append(byOp[m.Op], m)
			}
		}
		ops := []string{opDelete, opError, opNegate, opShift, opConstant, opSQL}
		for _, op := range ops {
			random.Shuffle(len(byOp[op]), func(i, j int) { byOp[op][i], byOp[op][j] = byOp[op][j], byOp[op][i] })
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

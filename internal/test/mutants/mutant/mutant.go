// Package mutant is the switch that planted bugs stand behind. `make mutants`
// builds the tests with copies of the sources in which every bug is written
// beside the original code, and each process of such a test asks here which one
// of them is on. The copies import it and nothing else does.
//
// A process learns its bug from a limit that children inherit whatever becomes
// of their environment, see [LimitOf]; without one no bug is on.
package mutant

import "cmp"

// Capacity is one more than the highest number that a mutant may have.
const Capacity = 1 << 17

// What the limit says: 1 to Capacity-1 is the mutant that is on, and from
// recordFrom to recordEnd a process records which mutants it reaches.
const (
	recordFrom = 300_000
	recordEnd  = 700_000
)

// dir holds the records, one file for each test. The linker sets it.
var dir string

var active, reached = choose()

// RecordOf is the limit under which a process notes what it reaches in the
// record with that number, which is below 400,000.
func RecordOf(number int) uint64 { return uint64(recordFrom + number) }

// LimitOf is the limit that turns a mutant on. 0 is none of them.
func LimitOf(id int) uint64 { return uint64(id) }

// On reports whether the mutant is on, and notes that it was reached.
func On(id int) bool {
	if reached != nil {
		reached[id] = 1
	}
	return id == active
}

// Pick returns a, and b when the mutant is on.
func Pick[T any](id int, a, b T) T {
	if On(id) {
		return b
	}
	return a
}

// Err returns err, and nil when the mutant is on.
func Err(id int, err error) error {
	if On(id) {
		return nil
	}
	return err
}

// Less is a < b, and a <= b when the mutant is on.
func Less[T cmp.Ordered](id int, a, b T) bool {
	if On(id) {
		return a <= b
	}
	return a < b
}

// LessEqual is a <= b, and a < b when the mutant is on.
func LessEqual[T cmp.Ordered](id int, a, b T) bool {
	if On(id) {
		return a < b
	}
	return a <= b
}

// More is a > b, and a >= b when the mutant is on.
func More[T cmp.Ordered](id int, a, b T) bool {
	if On(id) {
		return a >= b
	}
	return a > b
}

// MoreEqual is a >= b, and a > b when the mutant is on.
func MoreEqual[T cmp.Ordered](id int, a, b T) bool {
	if On(id) {
		return a > b
	}
	return a >= b
}

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

// PerProcess is how many records a process of tests has. The first is for what
// is reached before any test, the others for its tests.
const PerProcess = 1000

// record has a byte for each mutant, by number: 1 if it was reached, with values for
// which it makes a difference where that is known on the spot.
type record [Capacity]byte

// dir holds the records, one file for each test. The linker sets it.
var dir string

var active, number, reached = choose()

// RecordOf is the limit under which a process notes what it reaches in the
// record with that number, which is below 400,000.
func RecordOf(number int) uint64 { return uint64(recordFrom + number) }

// LimitOf is the limit that turns a mutant on. 0 is none of them.
func LimitOf(id int) uint64 { return uint64(id) }

// Recording reports whether the process records what it reaches.
func Recording() bool { return reached.Load() != nil }

// Begin is called first in each test, with its place among those of the
// package: what is reached from now on, in child processes too, is noted for
// that test. In a child it does nothing, because all that a child does is noted
// for the test that started it.
func Begin(test int) {
	if Recording() && number%PerProcess == 0 {
		move(number + 1 + test)
	}
}

// On reports whether the mutant is on, and notes that it was reached.
func On(id int) bool {
	if notes := reached.Load(); notes != nil {
		notes[id] = 1
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

// Err returns err, and nil when the mutant is on. To drop an error that is nil
// makes no difference, and is not noted.
func Err(id int, err error) error {
	if err != nil && On(id) {
		return nil
	}
	return err
}

// either returns a, and b when the mutant is on. Where they are equal the mutant
// makes no difference, and it is not noted that it was reached.
func either(id int, a, b bool) bool {
	if a != b && On(id) {
		return b
	}
	return a
}

// Less is a < b, and a <= b when the mutant is on.
func Less[T cmp.Ordered](id int, a, b T) bool { return either(id, a < b, a <= b) }

// LessEqual is a <= b, and a < b when the mutant is on.
func LessEqual[T cmp.Ordered](id int, a, b T) bool { return either(id, a <= b, a < b) }

// More is a > b, and a >= b when the mutant is on.
func More[T cmp.Ordered](id int, a, b T) bool { return either(id, a > b, a >= b) }

// MoreEqual is a >= b, and a > b when the mutant is on.
func MoreEqual[T cmp.Ordered](id int, a, b T) bool { return either(id, a >= b, a > b) }

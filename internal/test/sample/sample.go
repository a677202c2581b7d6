// Package sample says how much of what a test can try it does try: a sample in
// `make test`, all of it in `make test-all`.
package sample

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// tablesVariable names a file. Where it is set, everything is tried, and tests append
// the tables of what they found to the file.
const tablesVariable = "PAWL_TEST_ALL"

// seedVariable is the seed of the cases that rapid draws where everything is to be
// tried. Without it they are others each time.
const seedVariable = "PAWL_TEST_SEED"

// TablesFile is the file to which tests append their tables, or empty.
func TablesFile() string { return os.Getenv(tablesVariable) }

// All reports whether everything is to be tried.
func All() bool { return TablesFile() != "" }

// Size is some, or all if everything is to be tried.
func Size(some, all int) int {
	if All() {
		return all
	}
	return some
}

// Checks makes rapid try n cases in a test instead of its usual 100. If everything is
// to be tried, there are 100, of the seed in PAWL_TEST_SEED if it is set. What is given
// as -rapid.checks or -rapid.seed counts more. The test and its neighbours must not be
// parallel.
func Checks(t *testing.T, n int) {
	t.Helper()
	if !All() {
		setFlag(t, "rapid.checks", strconv.Itoa(n))
	} else if seed := os.Getenv(seedVariable); seed != "" {
		setFlag(t, "rapid.seed", seed)
	}
}

// SameChecks is Checks, but the n cases are the same each time.
func SameChecks(t *testing.T, n int) {
	t.Helper()
	Checks(t, n)
	if !All() {
		setFlag(t, "rapid.seed", "1")
	}
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	given := flag.Lookup(name)
	if given.Value.String() != given.DefValue {
		return
	}
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, given.DefValue); err != nil {
			t.Fatal(err)
		}
	})
}

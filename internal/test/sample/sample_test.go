package sample

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestChecksAreWhatIsAskedForUnlessAllAre(t *testing.T) {
	for _, c := range []struct {
		tables string
		size   int
	}{{"", 7}, {"tables.txt", 100}} {
		t.Run(c.tables, func(t *testing.T) {
			t.Setenv(tablesVariable, c.tables)
			if got := Size(7, 100); got != c.size || All() != (c.tables != "") || TablesFile() != c.tables {
				t.Errorf("Size = %d, All = %v, TablesFile = %q", got, All(), TablesFile())
			}
			Checks(t, 7)
			checks := 0
			rapid.Check(t, func(*rapid.T) { checks++ })
			if checks != c.size {
				t.Errorf("%d checks, want %d", checks, c.size)
			}
		})
	}
}

// withoutSeed makes the test run as without RAPID_SEED, which make test sets.
func withoutSeed(t *testing.T) {
	t.Helper()
	seed := flag.Lookup("rapid.seed")
	value, byDefault := seed.Value.String(), seed.DefValue
	set := func(value, byDefault string) {
		seed.DefValue = byDefault
		if err := flag.Set(seed.Name, value); err != nil {
			t.Fatal(err)
		}
	}
	set("0", "0")
	t.Cleanup(func() { set(value, byDefault) })
}

func TestCasesAreTheSameWhereThatIsAskedFor(t *testing.T) {
	withoutSeed(t)
	for name, c := range map[string]struct {
		tables, seed string
		checks       func(*testing.T, int)
		same         bool
	}{
		"a sample":                  {"", "", Checks, false},
		"the same sample":           {"", "", SameChecks, true},
		"all of a seed":             {"tables.txt", "7", Checks, true},
		"all that chance has":       {"tables.txt", "", Checks, false},
		"all that chance has, same": {"tables.txt", "", SameChecks, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tablesVariable, c.tables)
			t.Setenv(seedVariable, c.seed)
			var drawn [2][]int64
			for i := range drawn {
				t.Run("", func(t *testing.T) {
					c.checks(t, 100)
					rapid.Check(t, func(t *rapid.T) { drawn[i] = append(drawn[i], rapid.Int64().Draw(t, "n")) })
				})
			}
			if same := slices.Equal(drawn[0], drawn[1]); same != c.same || len(drawn[1]) != 100 {
				t.Errorf("%d cases, the same twice = %v, want 100 and %v", len(drawn[1]), same, c.same)
			}
		})
	}
}

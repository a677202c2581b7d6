package sample

import (
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

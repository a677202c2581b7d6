package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A [ in the path of pawl's home once hid records and parked copies from whoever
// collects what nothing needs any more.
func TestABracketInThePathOfTheHomeHidesNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home[1")
	parked := filepath.Join(home, parkedName+"-1000")
	if err := os.MkdirAll(parked, 0o700); err != nil {
		t.Fatal(err)
	}
	trees := &Trees{root: home}
	if err := trees.writeRecord("tree", record{From: "base"}); err != nil {
		t.Fatal(err)
	}
	if records := trees.readRecords(); len(records) != 1 || records[0].From != "base" {
		t.Errorf("records = %+v, want that of the tree", records)
	}
	if all := (&layerCache{dir: home}).allParkedDirs(); !slices.Contains(all, parked) {
		t.Errorf("parked copies are in %q, want %s among them", all, parked)
	}
}

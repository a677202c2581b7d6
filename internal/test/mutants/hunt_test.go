package main

import (
	"slices"
	"testing"
	"time"
)

// reaching is a test that takes so long and reaches these mutants.
func reaching(name string, took time.Duration, ids ...int) test {
	t := test{Name: name, Took: took, Reached: make([]byte, 2)}
	for _, id := range ids {
		t.Reached[id/8] |= 1 << (id % 8)
	}
	return t
}

func TestTheTestsThatGoWhereFewGoComeRightBehindTheQuickOnes(t *testing.T) {
	all := []bug{
		{ID: 1, File: "internal/rules/plan/a.go", Func: "f"},
		{ID: 2, File: "internal/rules/plan/a.go", Func: "f"},
		{ID: 3, File: "internal/rules/plan/a.go", Func: "g"},
		{ID: 4, File: "internal/rules/plan/b.go", Func: "f"},
	}
	own := &suite{binary: binary{Name: "rules/plan"}, Tests: []test{
		reaching("Special", 6*time.Second, 1, 2),
		reaching("PassesThrough", 5*time.Second, 1),
		reaching("Elsewhere", 5*time.Second, 1, 3, 4),
		reaching("Quick", time.Second, 1),
		reaching("NotHere", time.Millisecond, 2),
	}}
	own.Tests = append(own.Tests, test{Name: "Broken", Took: 1, Reached: []byte{0xff}, Broken: "it fails"})
	other := &suite{binary: binary{Name: "cycle/engine"}, Tests: []test{reaching("Whole", 3*time.Second, 1)}}
	h := newHunter(nil, []*suite{other, own}, all, 0)
	var got []string
	for _, b := range h.batches(all[0]) {
		got = append(got, b.names...)
	}
	if want := []string{"Quick", "Special", "PassesThrough", "Elsewhere", "Whole"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

func TestWhoHadNoTurnBeforeATestHungIsTriedWithoutIt(t *testing.T) {
	said := `=== RUN   TestEnded
--- PASS: TestEnded (0.00s)
=== RUN   TestPaused
=== PAUSE TestPaused
=== RUN   TestHangs
=== RUN   TestHangs/in_part
panic: test timed out after 20s
`
	got := outcome{said: said}.unfinished([]string{"TestEnded", "TestPaused", "TestHangs", "TestLater"})
	if want := []string{"TestPaused", "TestLater"}; !slices.Equal(got, want) {
		t.Errorf("unfinished are %v, want %v", got, want)
	}
}

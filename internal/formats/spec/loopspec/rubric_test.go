package loopspec

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARubricIsTheChecksOfReviewerGates(t *testing.T) {
	gates := []loop.Gate{
		{Name: "t", Kind: loop.GateCommand, Check: "go test"},
		{Name: "a", Kind: loop.GateReviewer, Check: " It is short. "},
		{Name: "i", Kind: loop.GateInvariant, Check: "diff.files < 3"},
		{Name: "b", Kind: loop.GateReviewer, Check: "It is true."},
		{Name: "c", Kind: loop.GateReviewer, Check: " "},
	}
	r := SeedRubric(gates, "rb_0000001", noon)
	want := Rubric{ID: "rb_0000001", Criteria: []string{"It is short.", "It is true."}, UpdatedAt: noon.UnixMilli()}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if empty := SeedRubric(gates[:1], "rb_0000002", noon); empty.Criteria == nil || len(empty.Criteria) > 0 {
		t.Errorf("criteria %q, want none", empty.Criteria)
	}
}

func TestAFlagTakesThePlaceOfTheCriteriaThatContainIt(t *testing.T) {
	later := noon.Add(time.Hour)
	r := Rubric{ID: "rb_0000001", Criteria: []string{"Check Links to pages", "Spelling", "no dead links"}, UpdatedAt: noon.UnixMilli()}
	before := slices.Clone(r.Criteria)
	got := r.Refine("  LINKS\n", later)
	want := Rubric{ID: r.ID, Criteria: []string{"Spelling", "Human-flagged miss: LINKS"}, UpdatedAt: later.UnixMilli()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(r.Criteria, before) {
		t.Errorf("the rubric itself became %q", r.Criteria)
	}
	if again := got.Refine("links", later); !slices.Equal(again.Criteria, []string{"Spelling", "Human-flagged miss: links"}) {
		t.Errorf("flagged again it is %q", again.Criteria)
	}
	for _, flag := range []string{"", " \t\n"} {
		if got := r.Refine(flag, later); !cmp.Equal(got, r) {
			t.Errorf("an empty flag makes it %+v", got)
		}
	}
}

func TestRefiningKeepsOneCriterionForEachFlag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rubric{Criteria: rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "criteria")}
		flag := rapid.StringMatching(`[a-c ]{0,3}`).Draw(t, "flag")
		got := r.Refine(flag, noon)
		trimmed := strings.TrimSpace(flag)
		if trimmed == "" {
			if !cmp.Equal(got, r) {
				t.Fatalf("%q changed it", flag)
			}
			return
		}
		last := got.Criteria[len(got.Criteria)-1]
		with := slices.IndexFunc(got.Criteria, func(c string) bool { return strings.Contains(strings.ToLower(c), trimmed) })
		if last != "Human-flagged miss: "+trimmed || with != len(got.Criteria)-1 {
			t.Fatalf("%q: %q", flag, got.Criteria)
		}
		if twice := got.Refine(flag, noon); !slices.Equal(twice.Criteria, got.Criteria) {
			t.Fatalf("%q twice: %q, once %q", flag, twice.Criteria, got.Criteria)
		}
	})
}

func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var random [IDBytes]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), IDBytes, IDBytes).Draw(t, "random"))
		id, rubric := NewID(random), RubricID(random)
		if len(id) != 10 || !IsID(id) || rubric != "rb_"+strings.TrimPrefix(id, "lp_") {
			t.Fatalf("ids %s and %s", id, rubric)
		}
	})
	if a, b := NewID([IDBytes]byte{7: 0}), NewID([IDBytes]byte{7: 1}); a != "lp_0000000" || b != "lp_1000000" {
		t.Errorf("ids %s and %s", a, b)
	}
	for text, want := range map[string]bool{
		"lp_0a1b2cz": true, "lp_0123456789abcdef": true, "lp_0123456789abcdeg": false, "lp_0A1B2CZ": false, "lp_0a1b2c": false, "lp_0a1b2czz": false,
		"0a1b2cz": false, "lp_": false, "": false, "lp_0a1b2c\n": false, "rb_0a1b2cz": false,
	} {
		if IsID(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

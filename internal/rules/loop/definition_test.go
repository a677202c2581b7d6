package loop_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// pinned is a definition as a user may have recorded it long ago.
var pinned = loop.Definition{
	Name: "ci-watch", Protocol: loop.ProtocolSpine, Pattern: "ci-watcher", Tier: loop.TierAssisted,
	Cadence: "10m", Goal: "keep the build green", Scope: []string{"src/**", "docs/**"},
	Verify: "go test ./...", Guard: "go vet ./...", MaxIterations: 3, MaxStepTimeout: 10 * time.Minute,
	BudgetTokens: 50_000, Env: []string{"GOFLAGS"},
}

func TestTheDigestOfARecordedDefinitionNeverChanges(t *testing.T) {
	// Runs and approvals are bound to digests. A new optional key must not
	// give another digest to a definition that does not use it.
	const want = "fa31c0c69d1b7df76c4fb6c87477e9cf8679c6f290f7a15c2f4dcb2d504d180c"
	if got := pinned.Digest(); got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}

func TestEveryFieldOfADefinitionIsPartOfItsDigest(t *testing.T) {
	digests := map[string]string{pinned.Digest(): "none", loop.Definition{}.Digest(): "all"}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[loop.Definition]()) {
		changed := pinned
		change(t, reflect.ValueOf(&changed).Elem().Field(i))
		digest := changed.Digest()
		if other, taken := digests[digest]; taken {
			t.Errorf("a change of %s gives the digest of a change of %s", field.Name, other)
		}
		digests[digest] = field.Name
	}
}

// change gives a field another value than it has.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(v.String() + "x")
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case kind == reflect.Bool:
		v.SetBool(!v.Bool())
	case kind == reflect.Slice:
		longer := reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1)
		reflect.Copy(longer, v)
		v.Set(longer)
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		t.Fatalf("no way to change a %s; add one here", v.Type())
	}
}

func TestTheOrderOfAListIsPartOfTheDigest(t *testing.T) {
	swapped := pinned
	swapped.Scope = []string{"docs/**", "src/**"}
	if swapped.Digest() == pinned.Digest() {
		t.Error("two orders of scope have one digest")
	}
}

func TestDefaultsFillOnlyWhatIsAbsent(t *testing.T) {
	once := pinned.WithDefaults()
	if diff := cmp.Diff(once, once.WithDefaults()); diff != "" {
		t.Errorf("defaults applied twice (-once +twice):\n%s", diff)
	}
	was, is := reflect.ValueOf(pinned), reflect.ValueOf(once)
	for i, field := range reflect.VisibleFields(was.Type()) {
		if !was.Field(i).IsZero() && !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			t.Errorf("%s was %v and became %v", field.Name, was.Field(i), is.Field(i))
		}
	}
	if got := (loop.Definition{Tier: loop.TierReport}).WithDefaults().MaxIterations; got != 1 {
		t.Errorf("max_iterations of an L1 loop = %d, want 1", got)
	}
	if got := (loop.Definition{Tier: loop.TierUnattended}).WithDefaults().MaxIterations; got != 3 {
		t.Errorf("max_iterations of an L3 loop = %d, want 3", got)
	}
}

func TestAnOverrideChangesTheDigestThatTheRunPins(t *testing.T) {
	if got := (loop.Overrides{}).Apply(pinned).Digest(); got != pinned.Digest() {
		t.Errorf("no override gives another digest: %s", got)
	}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[loop.Overrides]()) {
		if slices.Contains([]string{"Base", "Step", "Hint", "RequestBy"}, field.Name) {
			continue // They say what one run works on, and not how.
		}
		var o loop.Overrides
		change(t, reflect.ValueOf(&o).Elem().Field(i))
		if o.Apply(pinned).Digest() == pinned.Digest() {
			t.Errorf("overriding %s does not change the digest", field.Name)
		}
	}
}

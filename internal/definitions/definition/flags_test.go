package definition

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestFlagsAreReadAsAFileIs(t *testing.T) {
	var got loop.Definition
	f := Flags{Setup: "make deps", Guard: "make lint", BaseURL: "https://llm.example.com/v1/", BudgetUSDDay: "2.50", Network: []string{"none", "a.example"}, Env: []string{"CI"}}
	if err := f.Apply(&got); err != nil {
		t.Fatal(err)
	}
	want := loop.Definition{Setup: "make deps", Guard: "make lint", BaseURL: "https://llm.example.com/v1", BudgetUSDDay: 2_500_000, Network: []string{"a.example"}, Env: []string{"CI"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	if err := (Flags{}).Apply(&got); err != nil || !cmp.Equal(got, loop.Definition{}) {
		t.Errorf("without flags it is %+v, %v", got, err)
	}
	for flag, f := range map[string]Flags{
		"--base-url": {BaseURL: "llm"}, "--usd": {BudgetUSDDay: "much"}, "--network": {Network: []string{"a.example", "https://b.example"}}, "--env": {Env: []string{"a b"}},
	} {
		err, ok := errors.AsType[*loop.Fault](f.Apply(&got))
		if !ok || err.Exit != loop.ExitUsage || err.What != flag+" cannot be used" || slices.Contains([]string{err.Why, err.Fix}, "") && flag != "--base-url" && flag != "--usd" {
			t.Errorf("%+v: %+v, want a fault about %s", f, err, flag)
		}
	}
}

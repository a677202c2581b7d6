package spend

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAnEighthMoreThanIsNeededIsAskedFor(t *testing.T) {
	var asked loop.Amount
	a := &Account{Grant: loop.Amount{Output: 1, MicroUSD: 1}, Price: dollar, More: func(_ context.Context, need loop.Amount) (loop.Amount, error) {
		asked = need
		return need, nil
	}}
	use := loop.Usage{Input: 1600, Output: 800, Source: loop.UsageEstimated}
	if !a.OpenReported("priced").Progress(t.Context(), use) {
		t.Fatal("it is cut though it was given what it asked for")
	}
	want := loop.Amount{Tokens: 2400 * 9 / 8, Output: 800 * 9 / 8, MicroUSD: 24_000_000 * 9 / 8}
	if asked != want {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
}

func TestWhatIsToldIsBoundByTheGrantOfAllTurns(t *testing.T) {
	asked := 0
	a := &Account{Grant: loop.Amount{Output: 100}, Price: dollar, More: func(_ context.Context, need loop.Amount) (loop.Amount, error) {
		asked++
		return loop.Amount{Output: min(need.Output, 1000)}, nil
	}}
	first := a.OpenReported("priced")
	for n := int64(1); n <= 600; n++ {
		if !first.Progress(t.Context(), loop.Usage{Output: n, Source: loop.UsageEstimated}) {
			t.Fatalf("cut at %d of 1000", n)
		}
	}
	if asked > 20 {
		t.Errorf("asked for more %d times", asked)
	}
	first.Finish([]loop.ModelUsage{{Model: "priced", Usage: loop.Usage{Output: 500, Source: loop.UsageReported}}})
	first.Finish([]loop.ModelUsage{{Model: "priced", Usage: loop.Usage{Output: 500}}})
	second := a.OpenReported("priced")
	if !second.Progress(t.Context(), loop.Usage{Output: 500}) || second.Progress(t.Context(), loop.Usage{Output: 501}) {
		t.Error("the second turn is not bound by what the first has left")
	}
	if second.Progress(t.Context(), loop.Usage{Output: 1}) {
		t.Error("an account that is exhausted gives again")
	}
	select {
	case <-a.Exhausted():
	default:
		t.Error("it is not exhausted")
	}
	other := &Account{}
	if f, ok := errors.AsType[*loop.Fault](other.Exhaust(io.EOF)); !ok || f.Why != io.EOF.Error() {
		t.Errorf("it ends for %+v, want what the call said", f)
	}
	if err := a.Exhaust(io.EOF); !errors.Is(err, a.Cause()) || errors.Is(err, io.EOF) {
		t.Errorf("it ends once more = %v, want the first cause, %v", err, a.Cause())
	}
	second.Finish([]loop.ModelUsage{{Usage: loop.Usage{Output: 501}}})
	if total, _ := a.Total(); total.Output != 1001 {
		t.Errorf("total = %+v", total)
	}
}

package waiting_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
)

// told returns the lines of what fn does with a context.
func told(t *testing.T, fn func(ctx context.Context)) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fn(waiting.With(t.Context(), func(line string) { lines = append(lines, line) }))
		synctest.Wait()
	})
	return lines
}

func sleepIn(ctx context.Context, what string, d time.Duration) {
	defer waiting.For(ctx, what, nil)()
	time.Sleep(d)
}

func TestAWaitIsToldOnceItLastsLongerThanPatience(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(ctx context.Context)
		want []string
	}{
		"a short one is not": {func(ctx context.Context) { sleepIn(ctx, "x", waiting.Patience-time.Millisecond) }, nil},
		"a long one is, once": {
			func(ctx context.Context) { sleepIn(ctx, "x", 60*time.Second) }, []string{"waiting for x (since 2 s)"},
		},
		"with who holds it": {func(ctx context.Context) {
			defer waiting.For(ctx, "x", func() string { return "process 7" })()
			time.Sleep(3 * time.Second)
		}, []string{"waiting for x (since 2 s; held by process 7)"}},
		"without who, if nobody knows": {func(ctx context.Context) {
			defer waiting.For(ctx, "x", func() string { return "" })()
			time.Sleep(3 * time.Second)
		}, []string{"waiting for x (since 2 s)"}},
		"the inner one says most": {func(ctx context.Context) {
			defer waiting.For(ctx, "outer", nil)()
			time.Sleep(500 * time.Millisecond)
			sleepIn(ctx, "inner", 30*time.Second)
		}, []string{"waiting for inner (since 2 s)"}},
		"many short inner ones hide nothing": {func(ctx context.Context) {
			defer waiting.For(ctx, "outer", nil)()
			for range 100 {
				sleepIn(ctx, "inner", 300*time.Millisecond)
			}
		}, []string{"waiting for outer (since 2 s)"}},
		"side by side both are": {func(ctx context.Context) {
			done := make(chan struct{})
			go func() { sleepIn(ctx, "a", 5*time.Second); close(done) }()
			time.Sleep(3 * time.Second)
			sleepIn(ctx, "b", 5*time.Second)
			<-done
		}, []string{"waiting for a (since 2 s)", "waiting for b (since 2 s)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(t, c.do); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhereNobodyListensNothingIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { sleepIn(t.Context(), "x", time.Minute) })
}

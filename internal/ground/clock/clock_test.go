package clock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/ground/clock"
)

var errEnough = errors.New("enough")

func TestNowKeepsTheMonotonicReading(t *testing.T) {
	// Only a time with a monotonic reading prints one.
	if now := (clock.System{}).Now(); !strings.Contains(now.String(), " m=") {
		t.Errorf("Now() = %v without a monotonic reading", now)
	}
}

func TestSleepEndsAfterItsDurationOrWithItsContext(t *testing.T) {
	cases := map[string]struct {
		sleep, cancelAfter time.Duration // cancelAfter: -1 is never, 0 is before
		want               error
		took               time.Duration
	}{
		"nobody cancels":                      {time.Hour, -1, nil, time.Hour},
		"cancelled half way":                  {time.Hour, 30 * time.Minute, errEnough, 30 * time.Minute},
		"cancelled before":                    {time.Hour, 0, errEnough, 0},
		"nothing to sleep":                    {0, -1, nil, 0},
		"a negative sleep":                    {-time.Hour, -1, nil, 0},
		"nothing to sleep, cancelled already": {0, 0, errEnough, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				switch {
				case c.cancelAfter == 0:
					cancel(errEnough)
				case c.cancelAfter > 0:
					time.AfterFunc(c.cancelAfter, func() { cancel(errEnough) })
				}
				start := time.Now()
				if err := (clock.System{}).Sleep(ctx, c.sleep); !errors.Is(err, c.want) {
					t.Errorf("Sleep = %v, want %v", err, c.want)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("Sleep took %v, want %v", took, c.took)
				}
			})
		})
	}
}

func TestEveryLeavesOutPeriodsThatPassDuringASlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		var calls []time.Duration
		err := clock.System{}.Every(ctx, time.Minute, func() {
			calls = append(calls, time.Since(start))
			switch len(calls) {
			case 2:
				time.Sleep(150 * time.Second)
			case 5:
				cancel(errEnough)
			}
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("Every = %v, want the cause of the end", err)
		}
		// The call at 2m lasts until 4m30s. The tick of 3m waited for it, the
		// one of 4m found that place taken.
		want := []time.Duration{
			time.Minute, 2 * time.Minute, 4*time.Minute + 30*time.Second, 5 * time.Minute, 6 * time.Minute,
		}
		if !slices.Equal(calls, want) {
			t.Errorf("called at %v, want %v", calls, want)
		}
	})
}

func TestEveryDoesNothingOnceItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		err := clock.System{}.Every(ctx, time.Second, func() { t.Error("called after the end") })
		if !errors.Is(err, errEnough) {
			t.Errorf("Every = %v, want the cause of the end", err)
		}
	})
}

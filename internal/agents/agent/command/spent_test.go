//go:build unix

package command_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAProgramIsCountedWhileItPrintsAndNotBeyondItsCap(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := request(t, "head -c 200000000 /dev/zero; sleep 60")
	kept := 0
	r.Output = writer(func(p []byte) (int, error) {
		kept += len(p)
		return len(p), nil
	})
	var calls, last int64
	r.OnUsage = func(u loop.Usage) bool {
		if u.Output < last {
			t.Errorf("%d tokens after %d", u.Output, last)
		}
		calls, last = calls+1, u.Output
		if u.Output <= 200_000 {
			return true
		}
		cancel() // As the engine does.
		return false
	}
	began := time.Now()
	res, err := turnOn(ctx, proc.Tree{}, r)
	if err != nil || res.Ended != proc.Canceled {
		t.Fatalf("Turn = %+v, %v; want canceled", res, err)
	}
	if res.Usage.Output != last || last > 210_000 || calls < 2 || kept > 4*210_000 {
		t.Errorf("used %+v, told %d times, at last %d, %d bytes kept", res.Usage, calls, last, kept)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s to end it", took)
	}
}

func TestWhatAnEndpointCountsIsNotToldAsWell(t *testing.T) {
	r, _ := request(t, "echo hello")
	r.Models = agent.Endpoint{URL: "http://127.0.0.1:1"}
	r.OnUsage = func(loop.Usage) bool {
		t.Error("told")
		return true
	}
	if res := turn(t, r); !res.Usage.Zero() {
		t.Errorf("usage = %+v", res.Usage)
	}
}

func TestMuchOutputTakesUpNoMemory(t *testing.T) {
	r, _ := request(t, "head -c 100000000 /dev/zero")
	r.Output = writer(func(p []byte) (int, error) { return len(p), nil })
	r.OnUsage = func(loop.Usage) bool { return true }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := turn(t, r)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; res.Usage.Output != 25_000_001 || grown > 16<<20 {
		t.Errorf("used %+v, %d bytes were allocated", res.Usage, grown)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

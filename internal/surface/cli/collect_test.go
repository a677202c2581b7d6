package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestAfterTheFirstCollectionGarbageIsCollectedAsUsual(t *testing.T) {
	t.Setenv("GOGC", "")
	usual := debug.SetGCPercent(90)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	collectLater()
	for wait := 0; ; wait++ {
		runtime.GC()
		now := debug.SetGCPercent(90)
		if now == 90 {
			return
		}
		debug.SetGCPercent(now)
		if wait == 1000 {
			t.Fatalf("after %d collections the percentage is %d, want 90 as before", wait, now)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestWhoeverSetsGOGCDecidesWhenGarbageIsCollected(t *testing.T) {
	t.Setenv("GOGC", "90")
	usual := debug.SetGCPercent(90)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	collectLater()
	if now := debug.SetGCPercent(90); now != 90 {
		t.Errorf("the percentage is %d, want 90", now)
	}
}

package spend

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestWhatTwoRequestsHaveInCommonIsNoMoreThanEitherHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) []byte {
			return []byte(strings.Repeat(rapid.StringMatching(`[ab]`).Draw(t, name), rapid.IntRange(0, 9000).Draw(t, name+" times")))
		}
		head, tail := text("head"), text("tail")
		a := append(append(append([]byte{}, head...), text("first")...), tail...)
		b := append(append(append([]byte{}, head...), text("second")...), tail...)
		x, y := OutlineOf(a), OutlineOf(b)
		if got := x.commonBytes(y); got != y.commonBytes(x) || got > int64(min(len(a), len(b))) {
			t.Fatalf("%d and %d bytes have %d and %d in common", len(a), len(b), got, y.commonBytes(x))
		}
		if got := x.commonBytes(x); got != int64(len(a)/blockSize*blockSize) {
			t.Fatalf("%d bytes have %d in common with themselves", len(a), got)
		}
	})
}

func TestOnlyWholeBlocksAreRemembered(t *testing.T) {
	for size, want := range map[int]int{0: 0, blockSize - 1: 0, blockSize: 1, 2*blockSize - 1: 1, 2 * blockSize: 2} {
		if o := OutlineOf(make([]byte, size)); len(o.front) != want || len(o.back) != want {
			t.Errorf("%d bytes have %d and %d blocks, want %d", size, len(o.front), len(o.back), want)
		}
	}
}

func TestWhatAProviderCachesIsExpectedForFiveMinutes(t *testing.T) {
	a, o := &Account{}, OutlineOf([]byte(strings.Repeat("x", 30<<10)))
	a.Remember("m", o, loop.Usage{CacheRead: 100, Source: loop.UsageMetered}, noon)
	for after, want := range map[time.Duration]bool{cacheTime - time.Nanosecond: true, cacheTime: false} {
		if got := a.CachedBytes("m", o, noon.Add(after)); (got > 0) != want {
			t.Errorf("after %s, %d bytes are cached", after, got)
		}
	}
	if got := a.CachedBytes("other", o, noon); got != 0 {
		t.Errorf("%d bytes are cached by a model that was not asked", got)
	}
}

func TestOnlyACallWhoseProviderReadFromItsCacheIsRemembered(t *testing.T) {
	o := OutlineOf([]byte(strings.Repeat("x", 30<<10)))
	for name, c := range map[string]struct {
		usage loop.Usage
		want  bool
	}{
		"one token of two":   {loop.Usage{Input: 1, CacheRead: 1, Source: loop.UsageMetered}, true},
		"one that was put":   {loop.Usage{CacheWrite: 1, Source: loop.UsageMetered}, true},
		"none":               {loop.Usage{Input: 9, Source: loop.UsageMetered}, false},
		"an estimate of all": {loop.Usage{CacheRead: 9, Source: loop.UsageEstimated}, false},
	} {
		a := &Account{}
		a.Remember("m", o, c.usage, noon)
		if got := a.CachedBytes("m", o, noon); (got > 0) != c.want {
			t.Errorf("%s: %d bytes are cached", name, got)
		}
	}
}

// Calls of several sub-agents end side by side. A map that is read and written at
// once ends the process.
func TestWhatIsCachedIsReadAndWrittenByOneAtATime(t *testing.T) {
	a, o := &Account{}, OutlineOf([]byte("x"))
	for name, use := range map[string]func(){
		"reading": func() { a.CachedBytes("m", o, noon) },
		"writing": func() { a.Remember("m", o, loop.Usage{CacheRead: 1, Source: loop.UsageMetered}, noon) },
	} {
		unlock, done := a.lock(), make(chan struct{})
		go func() {
			use()
			close(done)
		}()
		select {
		case <-done:
			t.Errorf("%s does not wait for who has the account", name)
		case <-time.After(50 * time.Millisecond):
		}
		unlock()
		<-done
	}
}

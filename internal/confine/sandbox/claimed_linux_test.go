package sandbox

import (
	"sync"
	"testing"
)

// Many first runs at once, as after an upgrade: each tests the host for itself, and
// removes what looks left over.
func TestSelfTestsThatSweepAtTheSameTimeAllGetTheirNames(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				name, claim, err := claimName(dir)
				if err != nil {
					t.Errorf("claimed = %v", err)
					return
				}
				removeLeftovers(dir)
				if err := removeAndRelease(dir, name, claim); err != nil {
					t.Errorf("release = %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

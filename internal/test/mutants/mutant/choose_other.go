//go:build !linux

package mutant

import "sync/atomic"

func choose() (int, int, *atomic.Pointer[record]) { return 0, 0, &atomic.Pointer[record]{} }

func move(int) {}

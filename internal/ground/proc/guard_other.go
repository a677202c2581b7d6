//go:build !linux

package proc

import "time"

// Guard does nothing on this platform: programs of a process that is stopped go on until
// it is continued or killed.
type Guard struct{}

// Hold does nothing here.
func (*Guard) Hold(string, func()) {}

// Extend does nothing here.
func (*Guard) Extend(string, time.Duration, time.Duration) {}

// Overdue returns false here.
func (*Guard) Overdue(string) bool { return false }

// Release does nothing here.
func (*Guard) Release(string) {}

// Prepare does nothing here.
func (*Guard) Prepare(string) {}

// Close does nothing here.
func (*Guard) Close() {}

func (*Guard) hasKilled(string) bool { return false }

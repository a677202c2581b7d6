package proc

import (
	"runtime"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// How often the use of a tree is measured; lookSoon if it uses more than half of a
// limit or the host has many more processes than at the last time.
const (
	lookEvery = 250 * time.Millisecond
	lookSoon  = 25 * time.Millisecond
)

// watchLimits measures what the tree uses of the limits that no control group
// enforces.
func (c *staged) watchLimits(exceed func(Limit)) {
	left := c.limits
	if c.group.BoundsProcesses() {
		left.Processes = 0
	}
	if c.group.BoundsMemory() {
		left.Memory = 0
	}
	if left.Processes == 0 && left.Memory == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer stage.RaisePriority()()
	ticker := time.NewTicker(lookSoon)
	defer ticker.Stop()
	var next time.Time
	crowd := 0
	for {
		select {
		case <-c.done():
			return
		case now := <-ticker.C:
			grown := left.Processes > 0 && stage.CountThreads()-crowd > left.Processes/2
			if now.Before(next) && !grown {
				continue
			}
			used := left.measureUse(c.pid)
			if passed := left.passedBy(used); passed != "" {
				exceed(passed)
				return
			}
			next, crowd = now.Add(left.lookInterval(used)), stage.CountThreads()
		}
	}
}

// use is what a tree uses at one moment.
type use struct {
	processes int
	memory    int64
}

// measureUse adds up what the descendants of root use. It measures memory only if l
// limits it.
func (l Limits) measureUse(root int) use {
	var sum use
	all := stage.ReadDescendants(root)
	for _, p := range all {
		sum.processes += p.Threads
	}
	if l.Memory == 0 {
		return sum
	}
	for _, p := range all {
		sum.memory += stage.ResidentMemory(p.PID)
	}
	if sum.memory <= l.Memory {
		return sum
	}
	// Shared memory was counted for each process. The exact sum takes the kernel
	// longer, so it is measured only now.
	sum.memory = 0
	for _, p := range all {
		sum.memory += stage.ProportionalMemory(p.PID)
	}
	return sum
}

// passedBy returns the limit that u is beyond, "" if none.
func (l Limits) passedBy(u use) Limit {
	switch {
	case l.Processes > 0 && u.processes > l.Processes:
		return ProcessesLimit
	case l.Memory > 0 && u.memory > l.Memory:
		return MemoryLimit
	default:
		return ""
	}
}

// lookInterval returns how long to wait before the next measurement.
func (l Limits) lookInterval(u use) time.Duration {
	if l.Processes > 0 && u.processes > l.Processes/2 || l.Memory > 0 && u.memory > l.Memory/2 {
		return lookSoon
	}
	return lookEvery
}

// limitHit recognises the limit of file sizes by the status, also if a shell passed on
// the status of a program that hit it.
func (c *staged) limitHit(end status) Limit {
	if c.limits.FileBytes > 0 && end.exit == 128+int(syscall.SIGXFSZ) {
		return FileSizeLimit
	}
	return c.ran
}

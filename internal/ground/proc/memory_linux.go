package proc

import (
	"sync"

	"golang.org/x/sys/unix"
)

// MachineMemory returns how many bytes of memory the machine has, 0 if unknown.
var MachineMemory = sync.OnceValue(func() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
})

package proc

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes of memory the machine has, 0 where that is not known.
var Memory = sync.OnceValue(func() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
})

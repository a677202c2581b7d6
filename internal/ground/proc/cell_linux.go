package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// setCellNamespaces makes sys start a process in the namespaces of a cell. Root keeps
// the ids of the host, so that the stage can read everybody's files until it changes
// its user; for any other user only the own id is mapped.
func setCellNamespaces(sys *syscall.SysProcAttr) {
	sys.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	} else {
		sys.UidMappings, sys.GidMappings = knownIDs("uid"), knownIDs("gid")
		sys.GidMappingsEnableSetgroups = true
	}
	// Exec by a user other than 0 drops all but ambient capabilities. An overlay keeps
	// working with the capabilities of the process that mounted it.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		sys.AmbientCaps = append(sys.AmbientCaps, c)
	}
}

// knownIDs maps every id of this user namespace to itself. What is "uid" or "gid".
func knownIDs(what string) []syscall.SysProcIDMap {
	text, err := os.ReadFile("/proc/self/" + what + "_map")
	if err != nil {
		return []syscall.SysProcIDMap{{Size: 1}}
	}
	var ids []syscall.SysProcIDMap
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var inside, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &count); n == 3 {
			ids = append(ids, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: count})
		}
	}
	return ids
}

package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"sync"
)

// nobody is the user that programs with a root of their own become when pawl
// itself is root. It owns nothing on any host and needs no capability.
const nobody = 65534

// Owner returns the ids with which programs in the tier run: those of nobody if pawl
// is root and the tier has a root of its own, and otherwise those of pawl. What a
// program may write must belong to them. Programs that see the host's root keep
// pawl's ids, because another user could not reach pawl's home.
func (t Tier) Owner() (uid, gid int) {
	if uid, gid = os.Geteuid(), os.Getegid(); uid == 0 && t.HasOwnRoot() && hasNobody() {
		return nobody, nobody
	}
	return uid, gid
}

// hasNobody reports whether the user nobody exists in this user namespace. In that of
// a container it may not; programs then stay root there, without capabilities.
var hasNobody = sync.OnceValue(func() bool { return mapsNobody("uid") && mapsNobody("gid") })

func mapsNobody(what string) bool {
	text, err := os.ReadFile("/proc/self/" + what + "_map")
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var inside, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &count); n == 3 && inside <= nobody && nobody < inside+count {
			return true
		}
	}
	return false
}

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

// Owner returns the ids by which programs in the tier run: those of pawl, but
// nobody's where pawl is root and the tier has a root of its own. What such a
// program is to write must be theirs. Where programs see the host's root, they
// stay who pawl is: another user would find no way to what pawl keeps at home.
func (t Tier) Owner() (uid, gid int) {
	if uid, gid = os.Geteuid(), os.Getegid(); uid == 0 && t.HasOwnRoot() && hasNobody() {
		return nobody, nobody
	}
	return uid, gid
}

// hasNobody reports whether this root knows nobody. That of a container may
// know no other user than itself; what it starts then stays that user, without
// a capability, and whoever that is outside.
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

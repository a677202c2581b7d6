package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

// KillTagged kills every process whose environment has exactly the entry tag,
// NAME=VALUE, and all their descendants, and returns how many it killed. It repeats
// that until it has found nothing twice. It never kills this process and its
// ancestors.
//
// It finds only processes whose environment this user may read: for root all, and
// otherwise the user's own. A process that overwrote its environment is found only
// as a descendant of one that did not. The error is that of a malformed tag or the
// cause of ctx.
func KillTagged(ctx context.Context, tag string) (killed int, err error) {
	if !isTag(tag) {
		return 0, fmt.Errorf("kill tagged processes: tag %q is not NAME=VALUE", tag)
	}
	killed, clean := stage.KillAll(
		func() []stage.Process { return findTagged(tag) },
		func() bool { return ctx.Err() != nil },
	)
	if !clean {
		return killed, fmt.Errorf("kill processes tagged %s: %w", tag, context.Cause(ctx))
	}
	return killed, nil
}

// findTagged returns the living processes with tag and their descendants.
func findTagged(tag string) []stage.Process {
	all := stage.ListProcesses()
	ours := selfAndAncestors(all)
	has := map[int]bool{}
	var found []stage.Process
	for _, p := range all {
		if !p.Dead && !ours[p.PID] && environHas(p.PID, tag) {
			has[p.PID] = true
			found = append(found, p)
		}
	}
	for _, p := range stage.FindDescendants(all, func(p stage.Process) bool { return has[p.PID] }) {
		if !ours[p.PID] {
			found = append(found, p)
		}
	}
	return found
}

// selfAndAncestors returns the pids of this process and its ancestors.
func selfAndAncestors(all []stage.Process) map[int]bool {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.PID] = p.Parent
	}
	ours := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !ours[pid]; pid = parents[pid] {
		ours[pid] = true
	}
	return ours
}

// environHas reports whether tag is in the environment with which pid was started.
func environHas(pid int, tag string) bool {
	block, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		if string(entry) == tag {
			return true
		}
	}
	return false
}

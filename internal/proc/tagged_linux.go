package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/pawl-run/pawl/internal/proc/stage"
)

// KillTagged kills every process whose environment holds exactly the entry tag,
// NAME=VALUE, and everything below those, and returns how many it killed. It
// looks again until it has found nothing twice. This process and those that
// started it are never killed.
//
// Only processes whose environment this user may read are found: its own, or for
// root all. A process that overwrote its environment is found only below one
// that did not. The error is that of a malformed tag or the cause of ctx.
func KillTagged(ctx context.Context, tag string) (killed int, err error) {
	if !isTag(tag) {
		return 0, fmt.Errorf("kill tagged processes: tag %q is not NAME=VALUE", tag)
	}
	killed, clean := stage.Hunt(
		func() []stage.Process { return tagged(tag) },
		func() bool { return ctx.Err() != nil },
	)
	if !clean {
		return killed, fmt.Errorf("kill processes tagged %s: %w", tag, context.Cause(ctx))
	}
	return killed, nil
}

// tagged lists the living processes with tag and those below them.
func tagged(tag string) []stage.Process {
	all := stage.List()
	ours := lineage(all)
	has := map[int]bool{}
	var found []stage.Process
	for _, p := range all {
		if !p.Dead && !ours[p.PID] && holds(p.PID, tag) {
			has[p.PID] = true
			found = append(found, p)
		}
	}
	for _, p := range stage.Below(all, func(p stage.Process) bool { return has[p.PID] }) {
		if !ours[p.PID] {
			found = append(found, p)
		}
	}
	return found
}

// lineage is this process and its ancestors.
func lineage(all []stage.Process) map[int]bool {
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

// holds reports whether the environment that pid was started with has tag.
func holds(pid int, tag string) bool {
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

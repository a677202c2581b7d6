package proc

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// errGroup means that the program could not enter its control group and was not
// started.
var errGroup = errors.New("enter its control group")

// cgroups remembers where this pawl makes control groups.
var cgroups struct {
	mu    sync.Mutex
	found *cgroup.Home // untried
	tried bool
	home  cgroup.Home
}

// untriedGroupHome returns where this pawl may make control groups. The first call
// removes the groups that dead pawls left there. The caller has cgroups.mu.
func untriedGroupHome() cgroup.Home {
	if cgroups.found == nil {
		h := cgroup.FindHome()
		sweepGroups(h)
		cgroups.found = &h
	}
	return *cgroups.found
}

// groupHome returns where this pawl makes control groups. The first call starts a
// program to see whether groups of version 2 work. Like strongestKind it remembers only
// an answer that will not change.
func groupHome() cgroup.Home {
	cgroups.mu.Lock()
	defer cgroups.mu.Unlock()
	if cgroups.tried {
		return cgroups.home
	}
	h := untriedGroupHome()
	var err error
	if h.CanKill() {
		if err = tryGroup(h); err != nil {
			h = h.WithoutUnified()
		}
	}
	cgroups.home, cgroups.tried = h, !isTemporary(err)
	return h
}

// stagedGroupHome is groupHome for a stage that confines itself: it can no longer enter
// a group of version 2 then, so that nothing has to be tried.
func stagedGroupHome() cgroup.Home {
	cgroups.mu.Lock()
	defer cgroups.mu.Unlock()
	return untriedGroupHome().WithoutUnified()
}

// tryGroup starts a program in a group of h. A container may show the hierarchy and
// refuse the system call, which later looks like a failed exec.
func tryGroup(h cgroup.Home) error {
	// A stage without an order ends at once.
	p := program{path: "/proc/self/exe", argv: []string{"pawl", stage.Arg}, env: []string{}}
	p.group = h.MakeGroup(newGroupName(), cgroup.Limits{Kill: true})
	if p.group == nil {
		return errGroup
	}
	if err := tryStage(stage.KindSubreaper, p); err != nil {
		_ = p.group.Remove()
		return err
	}
	return nil
}

// startInGroup starts p in a new group if its limits or the method need one. If p
// cannot enter it and the method does not need it, p is started without a group.
func (w treeMethod) startInGroup(ctx context.Context, p program, stdio [3]*os.File) (child, error) {
	p.stage, p.cell = w.stage, w.kind == stage.KindCell
	p.group = w.makeGroup(p.limits)
	c, err := startStage(ctx, w.kind, p, stdio)
	if err == nil {
		p.group.TightenAfterStart()
		return c, nil
	}
	_ = p.group.Remove()
	if w.method != CGroup && errors.Is(err, errGroup) {
		p.group = nil
		return startStage(ctx, w.kind, p, stdio)
	}
	return nil, err
}

func (w treeMethod) makeGroup(l Limits) *cgroup.Group {
	if w.method != CGroup && l.Processes == 0 && l.Memory == 0 {
		return nil
	}
	home := groupHome
	if w.stage != "" {
		home = stagedGroupHome
	}
	return home().MakeGroup(newGroupName(), cgroup.Limits{
		Processes: l.Processes, Memory: l.Memory, Kill: w.method == CGroup,
	})
}

// stageBounds returns the limits and groups that the stage has to apply.
func stageBounds(p program) stage.Bounds {
	b := stage.Bounds{FileBytes: uint64(p.limits.FileBytes), Group: p.group.UnifiedDir(), Tasks: p.group.TaskDirs()}
	if p.cell {
		b.User = p.limits.Processes
	}
	return b
}

// leaveGroup records which limit the group hit, and removes it.
func (c *staged) leaveGroup() {
	processes, memory := c.group.LimitsHit()
	switch {
	case memory:
		c.ran = MemoryLimit
	case processes:
		c.ran = ProcessesLimit
	}
	_ = c.group.Remove()
}

const groupPrefix = "pawl-"

// groups counts the groups that this process made, to give each another name.
var groups atomic.Int64

// newGroupName returns a name from which a later pawl can tell whether this one lives.
func newGroupName() string {
	id := Self()
	return fmt.Sprintf("%s%d-%d-%s-%d", groupPrefix, id.PID, id.Start, bootMark(), groups.Add(1))
}

// bootMark returns a hash of Identity.Boot, which is too long for a name.
func bootMark() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(Self().Boot))
	return strconv.FormatUint(h.Sum64(), 36)
}

// isOrphaned reports whether the group belonged to a pawl that is dead. It is false
// for a pawl of another PID namespace, which cannot be seen from here.
func isOrphaned(name string) bool {
	parts := strings.Split(strings.TrimPrefix(name, groupPrefix), "-")
	if len(parts) != 4 || parts[2] != bootMark() {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	start, err2 := strconv.ParseInt(parts[1], 10, 64)
	if errors.Join(err, err2) != nil {
		return false
	}
	id := Self()
	id.PID, id.Start = pid, start
	return !Alive(id)
}

// sweepGroups kills and removes the groups that dead pawls left in h.
func sweepGroups(h cgroup.Home) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, name := range h.GroupNames(groupPrefix) {
		if isOrphaned(name) {
			g := h.OpenGroup(name)
			killMembers(ctx, g)
			_ = g.Remove()
		}
	}
}

// killMembers kills the members of g, one by one if the group cannot be killed as a
// whole, until none is left or ctx ends.
func killMembers(ctx context.Context, g *cgroup.Group) {
	if g == nil || g.Kill() {
		return
	}
	stage.KillAll(func() []stage.Process {
		var alive []stage.Process
		for _, pid := range g.Members() {
			if p, ok := stage.ReadProcess(pid); ok && !p.Dead {
				alive = append(alive, p)
			}
		}
		return alive
	}, func() bool { return ctx.Err() != nil })
}

// EnforcedLimits names the limits of Spec that Run enforces on this host, each
// with what enforces it, for a report to a person.
func (t Tree) EnforcedLimits() []string {
	kept := []string{string(TimeLimit), string(OutputLimit)}
	if t.Method() == Group {
		return kept
	}
	by := func(limit Limit, kernel string) string {
		if kernel == "" {
			kernel = "watchdog"
		}
		return string(limit) + " by " + kernel
	}
	return append(kept, by(FileSizeLimit, "rlimit"),
		by(ProcessesLimit, groupHome().ProcessLimiter()), by(MemoryLimit, groupHome().MemoryLimiter()))
}

// Package cgroup makes, limits and kills control groups of Linux where this
// process may do so: below its own group if that is the topmost visible one,
// belongs to this user or was delegated to it. It uses version 2 or, for root only,
// the pids and memory controllers of version 1.
//
// It never moves this process, never writes to a group that it did not make
// except to enable the pids and memory controllers for its children, and never
// changes a group that somebody else made to limit pawl. Control groups are
// optional: on a host without them [FindHome] returns a [Home] that offers nothing.
package cgroup

// Limits are the limits of a group. A zero field means no limit.
type Limits struct {
	Processes int   // processes and threads at a time
	Memory    int64 // bytes, swap included; page cache counts only while it cannot be dropped
	Kill      bool  // the group must offer Kill
}

// Home is where this process may make groups. The zero Home offers none.
type Home struct {
	unified   string // the directory of version 2; empty: none
	processes controllerDir
	memory    controllerDir
}

// controllerDir is where groups with one controller can be made.
type controllerDir struct {
	dir     string // empty: nowhere
	unified bool   // version 2; dir is then Home.unified
}

// CanKill reports whether a group made here can be killed as a whole.
func (h Home) CanKill() bool { return h.unified != "" }

// ProcessLimiter returns "cgroup v2" or "cgroup v1", whichever limits the number of
// processes here, or "" if nothing does.
func (h Home) ProcessLimiter() string { return h.processes.String() }

// MemoryLimiter is ProcessLimiter for memory.
func (h Home) MemoryLimiter() string { return h.memory.String() }

// WithoutUnified returns h without version 2, for a host that has it but refuses to
// start a program in it.
func (h Home) WithoutUnified() Home {
	h.unified = ""
	for _, s := range []*controllerDir{&h.processes, &h.memory} {
		if s.unified {
			*s = controllerDir{}
		}
	}
	return h
}

func (s controllerDir) String() string {
	switch {
	case s.dir == "":
		return ""
	case s.unified:
		return "cgroup v2"
	default:
		return "cgroup v1"
	}
}

// Group is one control group, which may have a directory in several hierarchies.
// The nil Group has no members and no limits, and counts as removed.
type Group struct {
	unified             string   // its directory in version 2; empty: none
	tasks               []string // its directories in version 1
	processes           string   // the directory that limits processes; empty: not limited
	memory              string   // the directory that limits memory; empty: not limited
	processesAfterStart int      // the limit that TightenAfterStart sets; 0: it keeps the first one
}

// UnifiedDir returns its directory in version 2, or "" if it has none.
func (g *Group) UnifiedDir() string {
	if g == nil {
		return ""
	}
	return g.unified
}

// TaskDirs returns its directories in version 1.
func (g *Group) TaskDirs() []string {
	if g == nil {
		return nil
	}
	return g.tasks
}

// BoundsProcesses reports whether the group limits processes.
func (g *Group) BoundsProcesses() bool { return g != nil && g.processes != "" }

// BoundsMemory reports whether the group limits memory.
func (g *Group) BoundsMemory() bool { return g != nil && g.memory != "" }

// Package cgroup makes, limits and kills control groups of Linux, where this
// process may have some: below its own group if that is the topmost that it can
// see, belongs to its user or was delegated to it, with version 2 for everything
// or, for root, with the pids and memory controllers of version 1.
//
// It never moves this process, never writes to a group that it did not make
// except to enable the pids and memory controllers for its children, and never
// touches a group that somebody else made to bound pawl. It is strictly
// optional: a host without any of this has a [Home] that offers nothing.
package cgroup

// Limits are what a group shall bound. A zero field means no limit.
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

// controllerDir is where one controller is to be had.
type controllerDir struct {
	dir     string // empty: nowhere
	unified bool   // of version 2, and then dir is Home.unified
}

// CanKill reports whether the groups made here can be killed by one write.
func (h Home) CanKill() bool { return h.unified != "" }

// ProcessLimiter names what bounds the number of processes here, empty if nothing
// does.
func (h Home) ProcessLimiter() string { return h.processes.String() }

// MemoryLimiter names what bounds memory here, empty if nothing does.
func (h Home) MemoryLimiter() string { return h.memory.String() }

// WithoutUnified returns h without version 2, for a host that shows it and then
// refuses to start a program in it.
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

// Group is one control group, which may stand in several hierarchies. The nil
// Group has no members, bounds nothing and is removed already.
type Group struct {
	unified             string   // its directory in version 2, if any
	tasks               []string // its directories in version 1
	processes           string   // the directory that bounds them; empty: not bounded
	memory              string
	processesAfterStart int // how many processes it may have once it is Started; 0: as before
}

// UnifiedDir returns its directory in version 2, empty if there is none.
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

// BoundsProcesses reports whether the kernel holds the limit of processes.
func (g *Group) BoundsProcesses() bool { return g != nil && g.processes != "" }

// BoundsMemory reports whether the kernel holds the limit of memory.
func (g *Group) BoundsMemory() bool { return g != nil && g.memory != "" }

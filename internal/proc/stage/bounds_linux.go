package stage

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds are the limits within which a program is started. The zero Bounds are
// none.
type Bounds struct {
	FileBytes uint64   // size of any one file that is written; 0: not bounded
	User      int      // processes and threads that the program's user may have in its namespace; 0: not bounded
	Group     string   // directory of a control group of version 2
	Tasks     []string // directories of control groups of version 1
}

// appendTo adds the encoded form to b.
func (l Bounds) appendTo(b []byte) []byte {
	b = AppendNumber(appendUint64(b, l.FileBytes), l.User)
	return AppendList(AppendTexts(b, l.Group), l.Tasks)
}

// readBounds is the inverse of Bounds.append.
func (r *Reader) readBounds() Bounds {
	return Bounds{FileBytes: r.readUint64(), User: r.Number(), Group: r.Text(), Tasks: r.List()}
}

// noFD stands for a descriptor that is not open.
const noFD = -1

// groupFDs are the control groups of one program. They are opened before this
// process changes what its paths mean.
type groupFDs struct {
	into        int   // the directory of version 2
	kill        int   // what kills everything in there
	join, leave []int // task lists of version 1, and of the groups above them
}

func openGroups(l Bounds) *groupFDs {
	g := &groupFDs{into: noFD, kill: noFD}
	if l.Group != "" {
		g.into = openGroup(l.Group, unix.O_PATH|unix.O_DIRECTORY)
		g.kill = openGroup(l.Group+"/cgroup.kill", unix.O_WRONLY)
	}
	for _, dir := range l.Tasks {
		g.join = append(g.join, openGroup(dir+"/tasks", unix.O_WRONLY))
		g.leave = append(g.leave, openGroup(dir+"/../tasks", unix.O_WRONLY))
	}
	return g
}

// openGroup opens through a mount of its own, where it may make one: a file that
// is open for writing keeps its mount from being made read-only.
func openGroup(path string, how int) int {
	if tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
		defer unix.Close(tree)
		path = "/proc/self/fd/" + formatNumber(tree)
	}
	fd, err := unix.Open(path, how|unix.O_CLOEXEC, 0)
	if err != nil {
		refuseAndExit(StepGroup, err)
	}
	return fd
}

// forkAsMember runs start as a member of the groups of version 1, which it inherits
// from this thread alone. This process itself is not a member: it must not be
// counted, and must live to collect the others.
func (g *groupFDs) forkAsMember(start func() (int, error)) (int, error) {
	for _, fd := range g.join {
		if err := joinTaskList(fd); err != nil {
			refuseAndExit(StepGroup, err)
		}
	}
	pid, err := start()
	for _, fd := range g.leave {
		_ = joinTaskList(fd)
	}
	return pid, err
}

// joinTaskList puts this thread on a task list.
func joinTaskList(fd int) error {
	_, err := unix.Write(fd, []byte("0"))
	return err
}

// startInGroup makes sys start a process in the group of version 2.
func (g *groupFDs) startInGroup(sys *syscall.SysProcAttr) {
	if g.into != noFD {
		sys.UseCgroupFD, sys.CgroupFD = true, g.into
	}
}

// killMembers kills every member and reports whether that is possible.
func (g *groupFDs) killMembers() bool {
	if g.kill == noFD {
		return false
	}
	_, err := unix.Write(g.kill, []byte("1"))
	return err == nil
}

// applyLimits bounds what this process starts by limits that every process inherits. The
// program has them before its first instruction, so that nothing it starts is
// without them. They bind this process too, which writes no files.
func applyLimits(l Bounds) {
	if l.FileBytes > 0 {
		if err := lowerLimit(unix.RLIMIT_FSIZE, l.FileBytes); err != nil {
			refuseAndExit(StepLimit, err)
		}
	}
	if l.User > 0 {
		readyThreads()
		if err := lowerLimit(unix.RLIMIT_NPROC, uint64(l.User)); err != nil {
			refuseAndExit(StepProcesses, err)
		}
	}
}

// lowerLimit sets a limit of this process, unless it is lower already, and reads it
// back.
func lowerLimit(resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	if now.Max != most {
		return unix.EPERM
	}
	return nil
}

// readyThreads starts the threads that this process may need later. It may be of
// the same user as the program, and the runtime ends a process that cannot start
// a thread, which would be the end of the program too.
func readyThreads() {
	const enough = 8 // more than ever run or wait in here at a time
	started, done := make(chan bool), make(chan bool)
	for range enough {
		go func() {
			runtime.LockOSThread() // Each then has a thread of its own, which stays.
			defer runtime.UnlockOSThread()
			started <- true
			<-done
		}()
	}
	for range enough {
		<-started
	}
	close(done)
}

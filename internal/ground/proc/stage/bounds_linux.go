package stage

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Bounds are the limits and control groups of a program. The zero Bounds set no
// limit.
type Bounds struct {
	FileBytes uint64   // size of any one file that is written; 0: no limit
	User      int      // processes and threads that the program's user may have in its namespace; 0: no limit
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

// noFD is the number of a descriptor that is not open.
const noFD = -1

// groupFDs are the opened control groups of one program. They are opened before
// this process mounts anything, which could change what their paths mean.
type groupFDs struct {
	into        int   // the directory of version 2
	kill        int   // its file cgroup.kill
	join, leave []int // task lists of the groups of version 1, and of their parents
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

// openGroup opens path through a mount of its own if it may make one, because a
// mount cannot be made read-only while a file in it is open for writing.
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

// forkAsMember calls start while this thread is in the groups of version 1, so that
// the started process is in them too. This process leaves them again: it must not
// be counted, and must survive their end to reap the others.
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

// killMembers kills all members of the group of version 2. It reports false if there
// is no such group.
func (g *groupFDs) killMembers() bool {
	if g.kill == noFD {
		return false
	}
	_, err := unix.Write(g.kill, []byte("1"))
	return err == nil
}

// applyLimits sets resource limits of this process, which everything it starts
// inherits. So the program has them from its first instruction on. They also apply
// to this process, which writes no files.
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

// lowerLimit sets a limit of this process, unless it is already lower, and reads it
// back to check it.
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

// readyThreads starts the threads that this process may need later. If it runs as
// the program's user, it shares the limit of threads with the program, and the Go
// runtime ends a process that cannot start a thread, which would end the program.
func readyThreads() {
	const enough = 8 // more than ever run or wait in this process at a time
	started, done := make(chan bool), make(chan bool)
	for range enough {
		go func() {
			runtime.LockOSThread() // Each then has a thread of its own, which the runtime keeps.
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

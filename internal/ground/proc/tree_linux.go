package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/cgroup"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
	"github.com/pawl-run/pawl/internal/ground/waiting"
)

// Method returns the method that Run uses. The first call in this process tries what
// the host allows.
func (t Tree) Method() Method {
	if t.Want != "" {
		return t.Want
	}
	way, err := t.chooseMethod()
	if err != nil {
		return Group
	}
	return way.method
}

// Run starts s and waits for its end. When it returns, every process that the
// program started is dead, including those that detached themselves, ignore SIGTERM
// or are stopped; all of them also die when pawl is killed. With [Group] only the
// guarantees of Plain.Run hold.
//
// With [PIDNamespace] the program sees only its own processes. If pawl is not root,
// the program then also runs in a user namespace without other users: files of
// others appear as nobody's, and set-uid programs have no effect.
//
// Errors are those of Plain.Run, and errors.ErrUnsupported for a method that
// the host does not offer. On cancellation the process group of the program
// gets SIGTERM, and after Spec.Grace everything is killed.
func (t Tree) Run(ctx context.Context, s Spec) (Result, error) {
	if t.Want == Group && t.Stage == "" {
		return Plain{}.Run(ctx, s)
	}
	tried := waiting.For(ctx, "a first process that shows how this host keeps processes apart", nil)
	way, err := t.chooseMethod() //nolint:contextcheck // What the host offers is found out once for all runs.
	tried()
	if err != nil && t.Want == "" && t.Stage == "" {
		return Plain{}.Run(ctx, s)
	}
	if err != nil {
		return Result{Exit: -1, Ended: NotStarted}, err
	}
	find := resolveProgram
	if t.Stage != "" {
		find = takeUnresolved
	}
	return runProgram(ctx, s, find, way.startInGroup)
}

// treeMethod is a method and the stage that it uses.
type treeMethod struct {
	method Method
	kind   stage.Kind
	stage  string // Tree.Stage
}

func (t Tree) chooseMethod() (treeMethod, error) {
	if t.Cell {
		return treeMethod{method: PIDNamespace, kind: stage.KindCell, stage: t.Stage}, nil
	}
	if t.Want == Subreaper {
		return treeMethod{method: Subreaper, kind: stage.KindSubreaper, stage: t.Stage}, nil
	}
	if t.Want == CGroup && groupHome().CanKill() {
		return treeMethod{method: CGroup, kind: stage.KindSubreaper, stage: t.Stage}, nil
	}
	kind, err := strongestKind()
	offered := treeMethod{method: PIDNamespace, kind: kind, stage: t.Stage}
	if kind == stage.KindSubreaper {
		offered.method = Subreaper
		if groupHome().CanKill() {
			offered.method = CGroup
		}
	}
	if err == nil && t.Want != "" && t.Want != offered.method {
		return treeMethod{}, fmt.Errorf("start a process tree by %s: %w: the host offers %s", t.Want, errors.ErrUnsupported, offered.method)
	}
	return offered, err
}

// staged is a program that a stage started. The root of the tree is the stage.
type staged struct {
	*waitedProcess
	kind stage.Kind
	tag  string
	link *os.File

	ended func() // tells the guard that the root is dead

	limits Limits
	group  *cgroup.Group
	ran    Limit // the limit that the group hit; known after reap
}

// startStage starts a stage with its order, and returns when the program's exec has
// succeeded.
func startStage(ctx context.Context, kind stage.Kind, p program, stdio [3]*os.File) (child, error) {
	c, err := launchStage(kind, p, stdio)
	if err != nil {
		return nil, fmt.Errorf("start %s: set up its process tree: %w", p.argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.link.SetReadDeadline(time.Now()) })
	defer stop()
	last, err := c.readReport()
	if err == nil && last.Event == stage.Starting {
		if last, err = c.readReport(); err != nil {
			// The program may be running, so the caller waits for its end.
			return c, nil
		}
	}
	switch {
	case err == nil && last.Event == stage.Started:
		return c, nil
	case err == nil:
		c.closeAndReap()
		return nil, refusalError(p, last)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	c.kill()
	<-c.done()
	c.closeAndReap()
	return nil, fmt.Errorf("start %s: set up its process tree: %w", p.argv[0], err)
}

// launchStage forks the stage. Its environment has only the tag, so that no variable
// for the program changes how the stage itself behaves.
func launchStage(kind stage.Kind, p program, stdio [3]*os.File) (*staged, error) {
	order, err := orderFile(stage.Order{Kind: kind, Dir: p.dir, Path: p.path, Argv: p.argv, Env: p.env, Bounds: stageBounds(p)})
	if err != nil {
		return nil, err
	}
	defer order.Close()
	link, far, err := linkPair()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	attr := &syscall.ProcAttr{Env: []string{}, Sys: stageAttributes(kind)}
	if p.tag != "" {
		attr.Env = []string{p.tag}
	}
	files := append([]*os.File{stdio[0], stdio[1], stdio[2], order, far}, p.extra...)
	argv := []string{"pawl", cmp.Or(p.stage, stage.Arg)}
	p.guard.waitReady(p.tag)
	var w *waitedProcess
	switch {
	case kind == stage.KindSubreaper:
		w, err = spawnAndAwait(awaitZombieAndRevive, "/proc/self/exe", argv, files, attr)
	case attr.Sys.Cloneflags&syscall.CLONE_NEWUSER != 0:
		w, err = spawnInUserNamespace(argv, files, attr)
	default:
		w, err = spawnProcess("/proc/self/exe", argv, files, attr)
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	ended := p.guard.watch(p.tag, kind, w.pid)
	_, _ = link.Write([]byte{stage.Go}) // A stage that is dead already is found out by its reports.
	return &staged{waitedProcess: w, kind: kind, tag: p.tag, link: link, ended: ended, limits: p.limits, group: p.group}, nil
}

// stageAttributes returns the attributes for the fork of a stage. A subreaper is not
// killed with pawl: it sees the end of the link, and kills the tree first.
func stageAttributes(kind stage.Kind) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true}
	if kind == stage.KindSubreaper {
		// The tree may have stopped it.
		sys.Pdeathsig = syscall.SIGCONT
		return sys
	}
	sys.Pdeathsig = syscall.SIGKILL
	sys.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if kind == stage.KindCell {
		setCellNamespaces(sys)
	}
	if kind == stage.KindUser {
		uid, gid := os.Geteuid(), os.Getegid()
		sys.Cloneflags |= syscall.CLONE_NEWUSER
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Exec by a user other than 0 drops all but ambient capabilities.
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return sys
}

// orderFile writes o to a file in memory without a name. A pipe would have to be
// written while the stage reads it.
func orderFile(o stage.Order) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl-order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create the order: %w", err)
	}
	f := os.NewFile(uintptr(fd), "pawl-order")
	if _, err := f.Write(o.Encode()); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the order: %w", err)
	}
	return f, nil
}

// linkPair returns pawl's end of a link, which has deadlines, and the stage's, which
// blocks.
func linkPair() (ours, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create the link: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("create the link: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pawl-link"), os.NewFile(uintptr(fds[1]), "pawl-link-far"), nil
}

// refusalError explains a report of a stage that could not start the program.
func refusalError(p program, r stage.Report) error {
	if r.Step == stage.StepExec {
		return execError(p, r.Errno)
	}
	if r.Step == stage.StepDir {
		return fmt.Errorf("start %s: enter the working directory: %w", p.argv[0],
			&fs.PathError{Op: "chdir", Path: p.dir, Err: r.Errno})
	}
	if r.Step == stage.StepGroup {
		return fmt.Errorf("start %s: %w: %w", p.argv[0], errGroup, r.Errno)
	}
	return fmt.Errorf("start %s: set up its process tree: %s: %w", p.argv[0], r.Step, r.Errno)
}

// readReport reads one report. It returns io.ErrUnexpectedEOF if the link ends, which
// means that the stage was killed.
func (c *staged) readReport() (stage.Report, error) {
	var b [stage.ReportSize]byte
	if _, err := io.ReadFull(c.link, b[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return stage.Report{}, err
	}
	return stage.ParseReport(b), nil
}

// closeAndReap waits for the end of a stage without descendants and reaps it.
func (c *staged) closeAndReap() {
	<-c.done()
	c.link.Close()
	c.ended()
	c.reapStatus()
}

// term has no effect if the stage is dead; its tree is dead then too.
func (c *staged) term() { _, _ = c.link.Write([]byte{stage.Term}) }

// kill kills the tree. In a PID namespace killing PID 1 kills everything. A subreaper
// must live longer than what it adopts, so it is killed only if it does not end by
// itself when nothing is left.
func (c *staged) kill() {
	const soon, late = 100 * time.Millisecond, time.Second
	killed := c.group.Kill()
	if c.kind == stage.KindSubreaper {
		if killed && c.endsWithin(soon) {
			return
		}
		runtime.LockOSThread()
		stage.KillDescendants(c.pid)
		runtime.UnlockOSThread()
		if c.endsWithin(late) {
			return
		}
	}
	_ = syscall.Kill(c.pid, syscall.SIGKILL)
}

func (c *staged) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done():
		return true
	case <-timer.C:
		return false
	}
}

// reap returns the status that the stage reported: from the stage's exit status a
// program that exited with 137 looks like one that was killed.
func (c *staged) reap() status {
	_ = c.link.SetReadDeadline(time.Now().Add(time.Second))
	last, err := c.readReport()
	for err == nil && last.Event != stage.Ended {
		last, err = c.readReport()
	}
	c.closeAndReap()
	defer c.leaveGroup()
	if err == nil {
		return exitStatus(last.Status)
	}
	if c.kind == stage.KindSubreaper {
		c.killOrphans()
	}
	// The stage did not report, so all that is known is that the tree was killed.
	return status{exit: 128 + int(syscall.SIGKILL), signaled: true}
}

// killOrphans kills what is left of a tree whose subreaper was killed, as far as it is
// in the group or has the tag.
func (c *staged) killOrphans() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	killMembers(ctx, c.group)
	if c.tag != "" {
		_, _ = KillTagged(ctx, c.tag)
	}
}

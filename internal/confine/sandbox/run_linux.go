package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Run starts s in the box and waits for its end, as [proc.Tree] does. Spec.Dir
// and the program are looked up inside the box. Run sets HOME, TMPDIR and the
// variables of the ports in place of those in Spec.Env.
//
// If the box could not be set up, the error is a *SetupError and the result
// proc.NotStarted: the program did not run.
func (b Box) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	switch b.Tier {
	case "", None, External:
		return proc.Tree{}.Run(ctx, s)
	case Full:
		return b.runCell(ctx, s)
	case Landlock:
		return b.runBound(ctx, s)
	case Seatbelt:
	}
	return notStarted(s, b.unsupportedTierError())
}

// runCell runs s in namespaces and a root of its own.
func (b Box) runCell(ctx context.Context, s proc.Spec) (proc.Result, error) {
	if err := errors.Join(b.checkPaths(), b.clearWork()); err != nil {
		return notStarted(s, err)
	}
	order := b.newOrder()
	order.Cell, order.Host, order.Local = true, "pawl", true
	order.Mounts, order.Rules = b.rootMounts(), b.cellRules()
	lent := b.lendSources(order.Mounts, stage.MoreFD)
	// Layers whose owners are not mapped are used at their own paths.
	order.Mounts = slices.DeleteFunc(order.Mounts, func(m stage.Mount) bool { return m.Kind == stage.Lower && m.FD == 0 })
	defer func() {
		for _, f := range lent {
			f.Close()
		}
	}()
	env := proc.WithVariables(s.Env, "HOME="+b.Home)
	for _, p := range b.Ports {
		order.Ports = append(order.Ports, p.Number)
		env = proc.WithVariables(env, p.Env(fmt.Sprintf("127.0.0.1:%d", p.Number))...)
	}
	s.Env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") })
	return b.startStage(ctx, s, order, proc.Tree{Stage: stage.Arg, Cell: true}, lent...)
}

// newOrder returns an order with the ids of the program and nothing else. They are set
// only if pawl is root; the stage then also leaves root's groups.
func (b Box) newOrder() stage.Order {
	o := stage.Order{User: -1, Group: -1}
	if os.Geteuid() == 0 {
		o.User, o.Group = b.Tier.Owner()
	}
	return o
}

// clearWork makes the work directories of overlays anew: the kernel refuses one that a
// volatile overlay has used before.
func (b Box) clearWork() error {
	var all []Overlay
	if b.Layers != nil {
		all = append(all, *b.Layers)
	}
	for _, v := range b.Views {
		all = append(all, v.Overlay)
	}
	for _, o := range all {
		if o.Upper == "" {
			continue
		}
		err := RemoveTree(o.Work)
		if err == nil {
			err = os.Mkdir(o.Work, 0o700)
		}
		if err != nil {
			return fmt.Errorf("clear %s: %w", o.Work, err)
		}
	}
	return nil
}

// startStage runs s in tree: the running binary is executed again as a stage with the
// order and the lent files, sets up the box and starts the program.
func (b Box) startStage(ctx context.Context, s proc.Spec, order stage.Order, tree proc.Tree, lent ...*os.File) (proc.Result, error) {
	if !isTerminal(s.Stdin) {
		s.Stdout, s.Stderr = noTerminal(s.Stdout), noTerminal(s.Stderr)
	}
	file, err := orderFile(order)
	if err != nil {
		return notStarted(s, err)
	}
	defer file.Close()
	l, far, err := newStageLink()
	if err != nil {
		return notStarted(s, err)
	}
	s.Extra = append([]*os.File{file, far}, lent...)
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { l.receivePorts(ctx, b.Ports) })
	res, err := tree.Run(ctx, s)
	far.Close()
	cancel()
	listening.Wait()
	if l.refused != nil {
		return notStarted(s, l.refused)
	}
	return res, err
}

// noTerminal hides that w is a terminal, so that the box gets a pipe and not the
// descriptor: a program that has it could read what is typed.
func noTerminal(w io.Writer) io.Writer {
	if isTerminal(w) {
		return struct{ io.Writer }{w}
	}
	return w
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { _, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	return err == nil
}

// orderFile writes the order to a file in memory without a name.
func orderFile(o stage.Order) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl-cell", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create the order: %w", err)
	}
	f := os.NewFile(uintptr(fd), "pawl-cell")
	if _, err := f.Write(o.Encode()); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the order: %w", err)
	}
	return f, nil
}

// stageLink is pawl's end of the link to a stage.
type stageLink struct {
	conn    *net.UnixConn
	refused error
}

func newStageLink() (*stageLink, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create the link: %w", err)
	}
	ours, far := os.NewFile(uintptr(fds[0]), "pawl-link"), os.NewFile(uintptr(fds[1]), "pawl-link-far")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		far.Close()
		return nil, nil, fmt.Errorf("create the link: %w", err)
	}
	return &stageLink{conn: conn.(*net.UnixConn)}, far, nil //nolint:forcetypeassert // It is what FileConn makes of a UNIX socket.
}

// receivePorts reads the messages of the stage and serves the ports that it opens. It
// returns once the stage's end of the link is closed and ctx has ended.
func (l *stageLink) receivePorts(ctx context.Context, ports []Port) {
	defer l.conn.Close()
	var serving sync.WaitGroup
	defer serving.Wait()
	packet, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := l.conn.ReadMsgUnix(packet, rights)
		if err != nil || n == 0 {
			return
		}
		m, ok := stage.ParseMessage(packet[:n])
		switch {
		case !ok:
			l.refused = &SetupError{Step: "read the link", Err: unix.EBADMSG}
		case m.Port == 0:
			l.refused = &SetupError{Step: m.Step, Err: m.Errno}
		default:
			l.servePort(ctx, &serving, ports, m.Port, rights[:oobn])
		}
	}
}

// servePort serves a port at the listening socket in rights.
func (l *stageLink) servePort(ctx context.Context, serving *sync.WaitGroup, ports []Port, number int, rights []byte) {
	listener, err := listenerFrom(rights)
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Number == number })
	if err != nil || i < 0 {
		return // Connections of programs to the port are never accepted.
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	serving.Go(func() {
		defer stop()
		defer listener.Close()
		ports[i].Serve(ctx, listener)
	})
}

func listenerFrom(rights []byte) (net.Listener, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.ErrUnsupported)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(err, errors.ErrUnsupported)
	}
	unix.CloseOnExec(fds[0])
	f := os.NewFile(uintptr(fds[0]), "pawl-port")
	defer f.Close()
	return net.FileListener(f)
}

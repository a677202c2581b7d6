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

	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/sandbox/stage"
)

// Run starts s in the box and waits for its end, as [proc.Tree] does. Spec.Dir
// and the program are looked up as programs in the box see them, and HOME,
// TMPDIR and what the ports need are set over Spec.Env.
//
// A box that could not be set up is a *SetupError beside a result that is
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

// runCell starts s in namespaces and a root of its own.
func (b Box) runCell(ctx context.Context, s proc.Spec) (proc.Result, error) {
	if err := errors.Join(b.checkPaths(), b.clearWork()); err != nil {
		return notStarted(s, err)
	}
	order := b.newOrder()
	order.Cell, order.Host, order.Local = true, "pawl", true
	order.Mounts, order.Rules = b.rootMounts(), b.cellRules()
	lent := b.lendSources(order.Mounts, stage.MoreFD)
	// Layers that are nobody else's are read as they stand.
	order.Mounts = slices.DeleteFunc(order.Mounts, func(m stage.Mount) bool { return m.Kind == stage.Lower && m.FD == 0 })
	defer closeFiles(lent)
	env := proc.WithVariables(s.Env, "HOME="+b.Home)
	for _, p := range b.Ports {
		order.Ports = append(order.Ports, p.Number)
		env = proc.WithVariables(env, p.Env(fmt.Sprintf("127.0.0.1:%d", p.Number))...)
	}
	s.Env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") })
	return b.startStage(ctx, s, order, proc.Tree{Stage: stage.Arg, Cell: true}, lent...)
}

// newOrder is an order that only says as whom the program runs. A program of root
// also leaves root's groups.
func (b Box) newOrder() stage.Order {
	o := stage.Order{User: -1, Group: -1}
	if os.Geteuid() == 0 {
		o.User, o.Group = b.Tier.Owner()
	}
	return o
}

// clearWork makes the working directories of overlays anew: the kernel refuses
// one that it did not see let go of.
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

// startStage re-executes the running binary as a stage with the order and what is lent
// to it, below what tree makes, and becomes s there.
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

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// noTerminal keeps a terminal out of the box that is only to be written to:
// whoever has its descriptor can read what is typed there.
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

// orderFile puts o into a file without a name.
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

// stageLink is our end of what a stage says.
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

// receivePorts serves the ports that the stage opens, until its end of the link is
// closed and ctx has ended.
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

// servePort hands a listening socket to the port that it is for.
func (l *stageLink) servePort(ctx context.Context, serving *sync.WaitGroup, ports []Port, number int, rights []byte) {
	listener, err := listenerFrom(rights)
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Number == number })
	if err != nil || i < 0 {
		return // Programs find the port dead.
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

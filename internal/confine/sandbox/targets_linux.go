package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage/selftest"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// targets are what a self-test tries to reach on the host: servers and a process.
type targets struct {
	token     string
	listeners map[string]net.Listener // by the name of the self-test's parameter
	packets   net.PacketConn
	path      string

	stop     context.CancelFunc
	working  sync.WaitGroup
	received atomic.Bool
	waited   proc.Result
	closing  sync.Once
}

// newTargets starts them. It makes dir for the socket with a path.
func newTargets(ctx context.Context, dir string) (*targets, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Only the sandbox is to keep programs off it.
		return nil, err
	}
	t := &targets{token: rand.Text(), listeners: map[string]net.Listener{}, path: filepath.Join(dir, "socket")}
	ctx, t.stop = context.WithCancel(ctx)
	var l net.ListenConfig
	for what, at := range map[string][2]string{
		selftest.TCP4: {"tcp4", "127.0.0.1:0"}, selftest.TCP6: {"tcp6", "[::1]:0"},
		selftest.Path: {"unix", t.path}, selftest.Abstract: {"unix", "@" + t.token},
	} {
		listener, err := l.Listen(ctx, at[0], at[1])
		if err != nil && what == selftest.TCP6 {
			continue // A host without IPv6 cannot be reached by it.
		}
		if err != nil {
			t.closeAll()
			return nil, err
		}
		t.listeners[what] = listener
		t.working.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		})
	}
	packets, err := l.ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		t.closeAll()
		return nil, err
	}
	t.packets = packets
	t.working.Go(t.receiveDatagrams)
	if err := os.Chmod(t.path, 0o777); err != nil { //nolint:gosec // Only the sandbox is to keep programs off it.
		t.closeAll()
		return nil, err
	}
	if err := t.startWaitingProcess(ctx); err != nil {
		t.closeAll()
		return nil, err
	}
	return t, nil
}

// lastDatagram is a datagram that no self-test sends, and lastWait how long to wait
// for it.
const (
	lastDatagram = "last"
	lastWait     = 2 * time.Second
)

// receiveDatagrams sets t.received when a datagram of the self-test arrives, and
// returns after lastDatagram.
func (t *targets) receiveDatagrams() {
	packet := make([]byte, 64)
	for {
		n, _, err := t.packets.ReadFrom(packet)
		if err != nil || string(packet[:n]) == lastDatagram {
			return
		}
		if string(packet[:n]) == t.token {
			t.received.Store(true)
		}
	}
}

// startWaitingProcess starts the process that the self-test tries to find and signal,
// and returns when it runs.
func (t *targets) startWaitingProcess(ctx context.Context) error {
	ready, there := io.Pipe()
	t.working.Go(func() {
		var err error
		t.waited, err = proc.Plain{}.Run(ctx, proc.Spec{
			Argv: []string{"/proc/self/exe", selftest.Arg, selftest.Wait, t.token}, Env: []string{"PAWL_TRIAL=" + t.token}, Stdout: there,
		})
		there.CloseWithError(err) // A nil error reads as the end of the file.
	})
	if _, err := ready.Read(make([]byte, 32)); err != nil {
		return fmt.Errorf("start a process to be found: %w", err)
	}
	return nil
}

// parameters returns the self-test's parameters for these targets.
func (t *targets) parameters() []string {
	port := func(what string) string {
		if l, ok := t.listeners[what]; ok {
			return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // It listens on TCP.
		}
		return ""
	}
	udp := t.packets.LocalAddr().(*net.UDPAddr).Port //nolint:forcetypeassert // It listens on UDP.
	return []string{
		selftest.TCP4 + "=" + port(selftest.TCP4), selftest.TCP6 + "=" + port(selftest.TCP6), selftest.UDP + "=" + strconv.Itoa(udp),
		selftest.Path + "=" + t.path, selftest.Abstract + "=" + t.token, selftest.Token + "=" + t.token,
	}
}

// closeAll ends them all, and reports whether a datagram of the self-test arrived and
// whether somebody else's signal ended the process. Datagrams over the loopback
// arrive in order, so lastDatagram comes after every other.
func (t *targets) closeAll() (received, signalled bool) {
	t.closing.Do(func() {
		t.stop()
		for _, l := range t.listeners {
			l.Close()
		}
		if t.packets != nil {
			if conn, err := net.Dial("udp4", t.packets.LocalAddr().String()); err != nil { //nolint:noctx // A datagram socket connects without waiting.
				t.packets.Close()
			} else {
				_, _ = conn.Write([]byte(lastDatagram))
				conn.Close()
				// A host that is short of buffers drops datagrams, even on the loopback.
				late := time.AfterFunc(lastWait, func() { t.packets.Close() })
				defer late.Stop()
			}
		}
		t.working.Wait()
		_ = os.RemoveAll(filepath.Dir(t.path))
		if t.packets != nil {
			t.packets.Close()
		}
	})
	return t.received.Load(), t.waited.Ended == proc.Signaled
}

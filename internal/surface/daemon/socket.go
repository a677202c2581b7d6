package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// maxSocketPath is how long the path of a socket can be on every system.
const maxSocketPath = 103

// socket returns the path of the socket of the seat: if its folder has too long a name
// for a socket, one in the folder for temporary files.
func (s Seat) socket() string {
	path := filepath.Join(s.settings.Sockets, s.name()+".sock")
	if len(path) > maxSocketPath {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("pawl-%d", os.Getuid()), shortHash(s.file())+".sock")
	}
	return path
}

// Listen opens the socket of the seat, for processes of the same user only. What an
// earlier daemon left there is removed.
func (c *Claimed) Listen(ctx context.Context) (net.Listener, error) {
	path := c.seat.socket()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	elsewhere := "PAWL_HOME"
	if dir != filepath.Clean(c.seat.settings.Sockets) {
		elsewhere = "TMPDIR"
	}
	if err := checkOwnFolder(dir, elsewhere); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier daemon: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil && len(path) > maxSocketPath { // Some systems take a little more.
		return nil, &loop.Fault{
			Exit: loop.ExitNotReady, What: "the socket of the daemon cannot be at " + path, Why: fmt.Sprintf("the path has %d bytes, and that of a socket at most %d", len(path), maxSocketPath),
			Fix: "set TMPDIR to a folder with a shorter name", Err: err,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), l.Close())
	}
	return sameUser{l}, nil
}

// checkOwnFolder refuses a folder in which somebody else could put another socket. The variable
// elsewhere leads to another one.
func checkOwnFolder(dir, elsewhere string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of the socket: %w", err)
	}
	f := &loop.Fault{Exit: loop.ExitRefused, What: "the socket of the daemon cannot be in " + dir}
	switch {
	case !info.IsDir() || !isOwn(info):
		f.Why, f.Fix = "it is not a folder of this user", "set "+elsewhere+" to a folder of your own"
	case info.Mode().Perm()&0o022 != 0:
		f.Why, f.Fix, f.Actions = "other users can write there", "{1}", []loop.Command{loop.HostCommand("chmod", "700", dir)}
	default:
		return nil
	}
	return f
}

// sameUser accepts connections of processes of this user only.
type sameUser struct{ net.Listener }

// Accept waits for the next connection.
func (l sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUser(c.(*net.UnixConn)); err == nil && uid == os.Getuid() {
			return c, nil
		}
		_ = c.Close()
	}
}

// The bounds of a server. Those of a request's body and its answer are in httpguard.
const (
	headTime = 10 * time.Second // until the head of a request has arrived
	idleTime = time.Minute      // between two requests of a connection
	mostHead = 60 << 10         // bytes; net/http adds 4096

	mostLocal  = 4096 // connections to the socket at once; more have to wait
	mostRemote = 256  // of each TCP listener
)

// Serve answers requests on a listener until stop is called, which ends those that follow
// something and waits, until its ctx ends, for those that are being answered. The handler bounds
// bodies and answers by itself, as httpguard does.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) (stop func(ctx context.Context)) {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHead, DisableGeneralOptionsHandler: true,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return serving },
	}
	most := mostRemote
	if l.Addr().Network() == "unix" {
		most = mostLocal
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(netutil.LimitListener(l, most)) // It ends with stop.
	}()
	return func(ctx context.Context) {
		end()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-done
	}
}

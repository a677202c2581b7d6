package cli_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/surface/daemon"
)

func TestTheUnitReloadsByTheSignalThatUpListensFor(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	signal, ok := daemon.ReloadSignals()[0].(syscall.Signal)
	if want := "ExecReload=/bin/kill -" + strings.TrimPrefix(unix.SignalName(signal), "SIG") + " $MAINPID\n"; !ok || !strings.Contains(p.pawl("service", "install", "--user", "--print"), want) {
		t.Errorf("the unit has no line %s", want)
	}
}

// The messages of systemd's protocol, on its real kind of socket.
func TestUpTellsItsServiceManagerThatItIsReadyAliveAndEnding(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	withLoop()(p)
	path := filepath.Join(p.dir, "n")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // After which a hanging test is given up.
		t.Fatal(err)
	}
	cmd := exec.Command("pawl", "up")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), append(p.env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=200000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var told []string
	buf := make([]byte, 1024)
	for len(told) < 5 {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("told %q: %v", told, err)
		}
		if len(told) == 2 {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		if told = append(told, string(buf[:n])); told[len(told)-1] == "STOPPING=1" {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if said := strings.Join(told, " "); !strings.HasPrefix(said, "READY=1 WATCHDOG=1 ") || !strings.HasSuffix(said, " STOPPING=1") {
		t.Errorf("told %q", told)
	}
}

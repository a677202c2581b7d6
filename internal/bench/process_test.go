package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/surface/daemon"
)

// daemonProcess is a `pawl up` in a process of its own, so that what is measured is what the
// program uses, without the fixture.
type daemonProcess struct {
	b       *testing.B
	pid     int
	running daemon.Running
	http    http.Client
	end     func() // ends it; may be called again
}

// up starts `pawl up` for the repository and the store of a fixture, and waits until it is at
// work.
func (s *fixture) up(bin, database string) *daemonProcess {
	s.b.Helper()
	settings, err := config.Load(config.Settings{Home: s.home, Database: database}, nil)
	s.must(err)
	cmd := exec.Command(bin, "up")
	cmd.Dir, cmd.Stderr = s.root, os.Stderr
	cmd.Env = append(os.Environ(), config.EnvHome+"="+settings.Home, config.EnvDatabase+"="+settings.Database)
	s.must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	d := &daemonProcess{b: s.b, pid: cmd.Process.Pid, end: sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
		<-ended
	})}
	s.b.Cleanup(d.end)
	d.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.running.Socket)
	}}
	for d.running.Socket == "" {
		select {
		case err := <-ended:
			ended <- err
			s.b.Fatalf("pawl up has ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		d.running, _, err = daemon.SeatOf(settings).Find()
		s.must(err)
	}
	return d
}

// metric reads one of the numbers that the daemon publishes.
func (d *daemonProcess) metric(name string) (n float64) {
	d.b.Helper()
	resp, err := d.http.Get("http://pawl/metrics")
	if err != nil {
		d.b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n"+name+" ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		d.b.Fatalf("%s is not among the metrics: %v", name, err)
	}
	return n
}

// settle waits until no run is queued or at work.
func (d *daemonProcess) settle() {
	d.b.Helper()
	for d.metric("pawl_queue_depth")+d.metric("pawl_runs_working") > 0 {
		time.Sleep(100 * time.Millisecond)
	}
}

// usage is what a process has used, without its children. All but commits is 0 where nobody
// says.
type usage struct {
	cpu     time.Duration
	woken   float64 // how often threads have gone on after they waited, without those that have ended
	commits float64 // transactions that wrote
}

// used is what the daemon has used so far.
func (d *daemonProcess) used() (u usage) {
	d.b.Helper()
	u.commits = d.metric("pawl_commits_total")
	proc := filepath.Join("/proc", strconv.Itoa(d.pid))
	stat, _ := os.ReadFile(filepath.Join(proc, "stat"))
	_, numbers, _ := strings.Cut(string(stat), ") ") // The name of the program is before them.
	if fields := strings.Fields(numbers); len(fields) > 12 {
		const tick = 10 * time.Millisecond // of every Linux that Go runs on
		for _, field := range fields[11:13] {
			n, _ := strconv.Atoi(field)
			u.cpu += time.Duration(n) * tick
		}
	}
	threads, _ := filepath.Glob(filepath.Join(proc, "task/*/status"))
	for _, file := range threads {
		u.woken += statusField(file, "voluntary_ctxt_switches")
	}
	return u
}

// since is what was used after an earlier moment.
func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.woken - before.woken, u.commits - before.commits}
}

// memory is what the daemon has in memory now, and had at most.
func (d *daemonProcess) memory() string {
	file := filepath.Join("/proc", strconv.Itoa(d.pid), "status")
	return fmt.Sprintf("%.0f MB, at most %.0f MB", statusField(file, "VmRSS")*1024/1e6, statusField(file, "VmHWM")*1024/1e6)
}

// statusField is a number in a status file of /proc; 0 if it is not there.
func statusField(file, name string) (n float64) {
	text, _ := os.ReadFile(file) // A thread may have ended.
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			_, _ = fmt.Sscan(value, &n)
		}
	}
	return n
}

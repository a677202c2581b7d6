package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser owns everything in a cluster. It needs no password on the socket, which only
// processes of this user can reach.
const superuser = "pawl"

// watchdog waits until its standard input ends, because the test process closes it or
// dies. Then it kills the server and removes the directory. The normal end uses it too, so
// that it is known to work.
const watchdog = `
read -r _
if read -r pid <data/postmaster.pid; then
	kill -QUIT "$pid"
	n=0
	while [ -e data/postmaster.pid ] && [ $n -lt 500 ]; do sleep 0.02; n=$((n + 1)); done
fi 2>/dev/null
rm -rf "$1"`

// cluster is a running server with its directory: data/, log and the socket.
type cluster struct {
	dir    string
	begin  func() (*exec.Cmd, error) // starts the server; set when the data directory exists
	leash  *os.File                  // the write end of the watchdog's standard input
	guard  *exec.Cmd
	server *os.Process
	exited chan error // has the server's end

	byFiles string // makes CREATE DATABASE copy files; set when the server is ready

	mu   sync.Mutex
	conn *pgx.Conn // to maintenance; made at the first use
}

// startCluster makes a cluster and returns when it accepts connections.
func startCluster(settings []string) (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := findPrograms(debian, os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	c, err := newGuarded()
	if err != nil {
		return nil, err
	}
	if err := c.launchServer(ctx, p, who, settings); err != nil {
		return nil, errors.Join(err, c.stopServer())
	}
	return c, nil
}

// newGuarded makes the directory of a cluster and starts its watchdog, before there is
// anything to clean up.
func newGuarded() (*cluster, error) {
	dir, err := os.MkdirTemp("", "pawl-pgtest-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the cluster: %w", err)
	}
	c, err := startWatchdog(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog of %s: %w", dir, err), os.RemoveAll(dir))
	}
	return c, nil
}

func startWatchdog(dir string) (*cluster, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// It gets no context, because it must outlive everything in this process.
	cmd := exec.Command("/bin/sh", "-c", watchdog, "pgtest-watchdog", dir) //nolint:noctx // It outlives every context of the tests.
	cmd.Dir, cmd.Stdin = dir, r
	runAs(cmd, nil)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	return &cluster{dir: dir, leash: w, guard: cmd}, r.Close()
}

func (c *cluster) launchServer(ctx context.Context, p programs, who *account, settings []string) error {
	if err := who.giveFile(c.dir); err != nil {
		return err
	}
	if err := makeData(ctx, p, who, c.dir); err != nil {
		return err
	}
	args := []string{
		"-D", filepath.Join(c.dir, "data"), "-k", c.dir,
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "max_connections=200",
	}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	c.begin = func() (*exec.Cmd, error) {
		log, err := os.Create(c.log())
		if err != nil {
			return nil, fmt.Errorf("make the log of the server: %w", err)
		}
		defer log.Close()
		// It gets no context, because only the watchdog ends it.
		cmd := exec.Command(p.postgres(), args...) //nolint:noctx // It outlives every context of the tests.
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = c.dir, log, log, plainEnv()
		runAs(cmd, who)
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", p.postgres(), err)
		}
		return cmd, nil
	}
	if err := c.startServer(ctx); err != nil {
		return err
	}
	// That is half the work of writing all pages into the log as well, which has been the
	// default since version 15. Earlier ones know no other way, and no word for it.
	if major, _, _ := strings.Cut(c.conn.PgConn().ParameterStatus("server_version"), "."); major >= "15" {
		c.byFiles = " STRATEGY FILE_COPY"
	}
	return nil
}

// startServer starts the server and returns when it answers.
func (c *cluster) startServer(ctx context.Context) error {
	cmd, err := c.begin()
	if err != nil {
		return err
	}
	c.server = cmd.Process
	c.exited = make(chan error, 1)
	go func(exited chan error) {
		exited <- cmd.Wait()
		// The pid may be used again, and must not be killed later.
		_ = os.Remove(filepath.Join(c.dir, "data", "postmaster.pid"))
		close(exited)
	}(c.exited)
	return c.waitReady(ctx)
}

// waitReady waits until the server answers a query or has ended.
func (c *cluster) waitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.execAdmin(ctx, "SELECT")
		if err == nil {
			return nil
		}
		select {
		case end := <-c.exited:
			return fmt.Errorf("the server ended before it was ready: %w\n%s", end, c.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w\n%s", err, c.lastWords())
		case <-tick.C:
		}
	}
}

// stopServer ends the server, removes the directory and returns when both are done.
func (c *cluster) stopServer() error {
	err := errors.Join(c.leash.Close(), c.guard.Wait())
	if c.exited != nil {
		for range c.exited {
			// The error of a killed server is expected.
		}
	}
	return err
}

func (c *cluster) log() string { return filepath.Join(c.dir, "log") }

// lastWords returns the end of the server's log.
func (c *cluster) lastWords() string {
	body, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// plainEnv returns the environment without settings of the user (PGDATA, LC_ALL).
func plainEnv() []string {
	return []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

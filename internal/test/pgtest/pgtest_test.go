//go:build unix

package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestMain turns the test binary into the victim of the kill test: it starts a
// cluster, says where, and waits for its end.
func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_VICTIM") == "" {
		os.Exit(Main(m))
	}
	c, err := startCluster(nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.dir)
	time.Sleep(time.Hour)
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func ask(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func TestEachCallGivesADatabaseOfItsOwn(t *testing.T) {
	one, two := connect(t, URL(t)), connect(t, URL(t))
	if _, err := one.Exec(t.Context(), "CREATE TABLE mine (n int)"); err != nil {
		t.Fatal(err)
	}
	const tables = "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'"
	if got := ask(t, one, tables); got != "1" {
		t.Errorf("the first database has %s tables, want 1", got)
	}
	if got := ask(t, two, tables); got != "0" {
		t.Errorf("the second database has %s tables, want 0", got)
	}
}

func TestADatabaseIsDroppedWithItsTestWhoeverIsConnected(t *testing.T) {
	var name string
	t.Run("the test", func(t *testing.T) {
		address := URL(t)
		conn, err := pgx.Connect(t.Context(), address) // left open
		if err != nil {
			t.Fatal(err)
		}
		name = ask(t, conn, "SELECT current_database()")
	})
	conn := connect(t, URL(t))
	if got := ask(t, conn, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"); got != "0" {
		t.Errorf("database %s outlived its test", name)
	}
}

func TestDatabasesAreMadeAtTheSameTime(t *testing.T) {
	for range 4 {
		t.Run("one of four", func(t *testing.T) {
			t.Parallel()
			connect(t, URL(t))
		})
	}
}

func TestTheServerIsDurableAndOnNoNetwork(t *testing.T) {
	conn := connect(t, URL(t))
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "", "data_checksums": "on",
	} {
		if got := ask(t, conn, "SHOW "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
}

func TestASettingOfThePackageReachesTheServer(t *testing.T) {
	c, err := startCluster([]string{"fsync=off"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, connect(t, c.databaseURL(maintenance)), "SHOW fsync"); got != "off" {
		t.Errorf("fsync = %q, want off", got)
	}
	if err := c.stopServer(); err != nil {
		t.Fatal(err)
	}
	gone(t, c.dir)
}

func TestAServerThatCannotStartSaysWhyAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", shared(t))
	_, err := startCluster([]string{"no_such_setting=1"})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("start = %v, want the server's own words", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// shared is a temporary directory that the account of the server can reach;
// those of the testing package are not when the tests run as root.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgtest-shared-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNothingOutlivesATestProcessThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "PGTEST_VICTIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("the victim said %q: %v", line, err)
	}
	pid := postmaster(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as wanted
	gone(t, dir)
	eventually(t, fmt.Sprintf("server %d has ended", pid), func() bool { return !running(pid) })
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(body), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// running reports whether the process lives; one that has ended and waits to
// be reaped does not.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func gone(t *testing.T, dir string) {
	t.Helper()
	eventually(t, dir+" is removed", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist)
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 2000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not true after 20 s: %s", what)
}

func BenchmarkStartAndStop(b *testing.B) {
	for b.Loop() {
		c, err := startCluster(nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.stopServer(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDatabase(b *testing.B) {
	URL(b)
	for b.Loop() {
		URL(b)
	}
}

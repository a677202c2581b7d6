package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// frozenEnv names a store that the test binary, started again with a read-only
// mount of its folder, is to read.
const frozenEnv = "PAWL_TEST_FROZEN"

// frozenReader is a process that sees the folder of a store mounted read-only.
type frozenReader struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func newFrozenReader(t *testing.T, path string) *frozenReader {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsAReaderOfAReadOnlyFolder$")
	cmd.Env = append(os.Environ(), frozenEnv+"="+path, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatalf("start a process with mounts of its own: %v", err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	return &frozenReader{in, bufio.NewReader(out), cmd}
}

// says returns the next line of the reader.
func (r *frozenReader) says(t *testing.T) string {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the reader said %q and ended: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// TestAsAReaderOfAReadOnlyFolder is the process of newFrozenReader. It tells of
// the store that it cannot be written, what the last number of the loop is, and
// then, after a line of its parent, what a View that has lasted until then says.
func TestAsAReaderOfAReadOnlyFolder(t *testing.T) {
	path := os.Getenv(frozenEnv)
	if path == "" {
		return // The tests below start it.
	}
	dir := filepath.Dir(path)
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if err != nil {
		fmt.Println("mount:", err)
		return
	}
	_, err = store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		fmt.Println("write:", f.Why, f.Fix)
	} else {
		fmt.Println("write:", err)
	}
	s, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now, ReadOnly: true})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	view := func(wait func()) {
		var l loop.Loop
		err := s.View(t.Context(), func(r *store.Reader) (err error) {
			l, err = r.LoopNamed(t.Context(), "ws", loop.ProtocolSpine, "ci")
			wait()
			return err
		})
		fmt.Println("read:", l.LastN, err)
	}
	view(func() {})
	view(func() {
		fmt.Println("reading")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	})
	if err := s.Close(); err != nil {
		fmt.Println("close:", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	fmt.Println("left:", len(left), err)
}

func TestAStoreInAFolderThatCannotBeWrittenIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		live bool // a process has it open that may write
		log  bool // a dead process left rows that are only in the log
	}{
		"nobody has it open": {}, "another process writes": {live: true}, "a dead process left its log": {log: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "deep", "pawl.db")
			s, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			fire(t, s, seed(t, s, "ci"), "-1", alice)
			if c.log {
				path = copied(t, path)
			}
			if !c.live {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r := newFrozenReader(t, path)
			if said := r.says(t); !strings.Contains(said, "pawl's home is read-only here") || !strings.Contains(said, "PAWL_HOME") {
				t.Errorf("who wants to write reads %q", said)
			}
			for _, want := range []string{"read: 1 <nil>", "reading"} {
				if said := r.says(t); said != want {
					t.Fatalf("the reader said %q, want %q", said, want)
				}
			}
			_, _ = io.WriteString(r.in, "\n")
			for _, want := range []string{"read: 1 <nil>", "left: 0 <nil>"} {
				if said := r.says(t); said != want {
					t.Errorf("the reader said %q, want %q", said, want)
				}
			}
		})
	}
}

// copied is the store as it is found when its machine died: with the log, and
// without what the processes shared.
func copied(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "pawl.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestAStoreThatChangesWhileItIsReadFromAReadOnlyFolderIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	write := func() {
		s, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		l := seed(t, s, "ci")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Number(ctx, "ws", l.Protocol, l.Name)
			return err
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write()
	r := newFrozenReader(t, path)
	for _, want := range []string{"PAWL_HOME", "read: 1 <nil>", "reading"} {
		if said := r.says(t); !strings.Contains(said, want) {
			t.Fatalf("the reader said %q, want %q", said, want)
		}
	}
	write()
	_, _ = io.WriteString(r.in, "\n")
	if said := r.says(t); !strings.Contains(said, "another process has written to it in the meantime") {
		t.Errorf("the reader said %q", said)
	}
}

//go:build unix

package flock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/waiting"
)

func mustTry(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAClaimIsHeldByOneUntilItIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "claim")
	f := mustTry(t, path)
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("Try = %v, want that it is held", err)
	}
	f.Close()
	mustTry(t, path)
}

func TestAClaimEndsWithItsProcess(t *testing.T) {
	if path := os.Getenv("HOLD"); path != "" {
		if _, err := Try(path); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("held\n")
		time.Sleep(time.Minute) // A select without cases would be a deadlock, and end it.
	}
	path := filepath.Join(t.TempDir(), "claim")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("Try = %v, want that it is held", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	mustTry(t, path)
}

func TestAWaitForAClaimIsToldWithWhoHoldsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claim")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAClaimEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	told := make(chan string, 9)
	ctx, cancel := context.WithCancel(waiting.With(t.Context(), func(line string) { told <- line }))
	go func() {
		defer cancel()
		select {
		case line := <-told:
			want := "waiting for the lock " + path + " (since 2 s"
			if runtime.GOOS == "linux" {
				want += fmt.Sprintf("; held by process %d (", cmd.Process.Pid)
			}
			if !strings.HasPrefix(line, want) {
				t.Errorf("told %q, want %q", line, want)
			}
		case <-time.After(20 * time.Second):
			t.Error("nothing was told")
		}
	}()
	if _, err := Wait(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
}

func TestSharedClaimsKeepOutOneThatIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claim")
	for range 2 {
		f, err := WaitShared(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("Try = %v, want that it is held", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claim")
	mustTry(t, path)
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, why)
	defer cancel()
	if _, err := Wait(ctx, path); !errors.Is(err, why) {
		t.Errorf("Wait = %v, want %v", err, why)
	}
}

func TestOneAtATimeHoldsAClaimWhoseFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claim")
	var inside sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				f, err := Wait(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() {
					t.Error("two hold the claim")
					return
				}
				inside.Unlock()
				if err := errors.Join(os.Remove(path), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestWhatIsNoFileCannotBeClaimed(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink(path+".target", path) },
		"a socket": func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "claim")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			if f, err := Try(path); err == nil || errors.Is(err, ErrHeld) {
				t.Errorf("Try = %v, %v", f, err)
			}
			if _, err := os.Lstat(path + ".target"); err == nil {
				t.Error("the target of the link was made")
			}
		})
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/test/mutants/mutant"
)

// stageArg makes this program the first process of a run.
const stageArg = "in-stage"

// most is what a mutant that never ends may take of memory and of a file.
const most = 4 << 30

// sharedMemory is where every user can keep files in memory.
const sharedMemory = "/dev/shm"

// staged makes cmd the run: behind a limit that carries the mutant and, where
// the kernel lets us, in a mount namespace in which only the writable
// directories can be changed, and in a process namespace that ends as a whole.
func staged(cmd *exec.Cmd, r run) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args = self, []string{self, stageArg, string(body)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if confined() {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	}
	return nil
}

// confined reports whether runs can be shut in.
func confined() bool { return os.Geteuid() == 0 }

// stage is the first process of a run. It returns its exit status.
func stage(body string) int {
	var r run
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		return 125
	}
	if err := r.enter(); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		return 125
	}
	if !confined() {
		fmt.Fprintln(os.Stderr, "stage:", syscall.Exec(r.File, append([]string{r.File}, r.Args...), os.Environ()))
		return 125
	}
	// The first process of a namespace takes the place of init: it waits for
	// whatever is left behind, and its end is the end of all.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	pid, err := syscall.ForkExec(r.File, append([]string{r.File}, r.Args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		return 125
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 125
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid && status.Exited():
			return status.ExitStatus()
		}
	}
}

func (r run) enter() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(mutant.Limit, &limit); err != nil {
		return err
	}
	limit.Cur = r.Limit
	if err := syscall.Setrlimit(mutant.Limit, &limit); err != nil {
		return fmt.Errorf("choose the mutant: %w", err)
	}
	for _, resource := range []int{unix.RLIMIT_DATA, unix.RLIMIT_FSIZE} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	if !confined() {
		return os.Chdir(r.Dir)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part the mounts: %w", err)
	}
	var readable []string
	if r.Tmp != "" {
		readable = append(readable, r.Root)
	}
	for _, dir := range []string{filepath.Dir(r.File), r.Dir} {
		if strings.HasPrefix(dir, sharedMemory+"/") {
			readable = append(readable, dir)
		}
	}
	shown := slices.Concat(readable, r.Writable)
	// They can lie below what is about to be covered.
	held := make([]int, len(shown))
	for i, dir := range shown {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		held[i] = fd
	}
	if r.Tmp != "" {
		if err := unix.Mount(r.Tmp, "/tmp", "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover /tmp: %w", err)
		}
	}
	// It is below /dev, which stays writable, and others keep files in it.
	if err := unix.Mount("tmpfs", sharedMemory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cover %s: %w", sharedMemory, err)
	}
	for i, dir := range shown {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", held[i]), dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", dir, err)
		}
		if err := unix.Close(held[i]); err != nil {
			return err
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if r.Tmp != "" {
		// Not what is below it: that can be the checkout.
		if err := unix.MountSetattr(unix.AT_FDCWD, "/tmp", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make /tmp writable: %w", err)
		}
	}
	writable := func(dirs ...string) error {
		for _, dir := range dirs {
			if err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("make %s writable: %w", dir, err)
			}
		}
		return nil
	}
	if err := writable("/dev", "/sys"); err != nil {
		return err
	}
	for _, dir := range readable { // It can be below one of them.
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", dir, err)
		}
	}
	if err := writable(r.Writable...); err != nil {
		return err
	}
	// A directory that was entered before lies below the mounts.
	return os.Chdir(r.Dir)
}

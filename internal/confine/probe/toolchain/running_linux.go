package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

const (
	answerTime = 10 * time.Second
	lookEvery  = 10 * time.Millisecond
	looks      = 3 // how often the same program must be seen
	smallPipe  = 4 << 10
)

// answeringProgram asks a script for its version with a full pipe as its output, so that the
// program which answers has to wait, and returns that program.
func (r *resolver) answeringProgram(ctx context.Context, path string) (string, error) {
	reader, writer, id, err := fullPipe()
	if err != nil {
		return "", err
	}
	defer reader.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := r.prober.Exec.Run(ctx, proc.Spec{
			Argv: []string{path, "--version"}, Dir: r.prober.Home, Env: r.prober.OfflineEnviron(),
			Stdout: writer, Stderr: writer, Timeout: answerTime,
		})
		ended <- errors.Join(err, writer.Close())
	}()
	exe := waitForWriter(id, ended)
	// Reading lets the program end, and Run return.
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return "", fmt.Errorf("read what %s says: %w", path, err)
	}
	if exe == "" {
		return "", errors.Join(errors.New("nothing answered"), <-ended)
	}
	return exe, <-ended
}

// waitForWriter looks for the program that waits to write into the pipe until it sees
// one or the command has ended. It puts back what it takes from ended.
func waitForWriter(id string, ended chan error) string {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, seen := "", 0
	for {
		select {
		case err := <-ended:
			ended <- err
			return ""
		case <-tick.C:
		}
		exe := writerOf(id)
		if exe != last {
			last, seen = exe, 0
		}
		if seen++; exe != "" && seen >= looks {
			return exe
		}
	}
}

// fullPipe makes a pipe that takes nothing before something is read, and returns the
// kernel's name of it.
func fullPipe() (reader, writer *os.File, id string, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, "", fmt.Errorf("make a pipe: %w", err)
	}
	reader, writer = os.NewFile(uintptr(fds[0]), "answer"), os.NewFile(uintptr(fds[1]), "answer")
	size, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, smallPipe)
	if err == nil {
		_, err = writer.Write(bytes.Repeat([]byte("\n"), size))
	}
	var stat unix.Stat_t
	if err == nil {
		err = unix.Fstat(fds[1], &stat)
	}
	if err != nil {
		return nil, nil, "", errors.Join(fmt.Errorf("fill a pipe: %w", err), reader.Close(), writer.Close())
	}
	return reader, writer, fmt.Sprintf("pipe:[%d]", stat.Ino), nil
}

// writerOf returns the program that has the pipe as its output and waits to write,
// the youngest if there are several.
func writerOf(id string) string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	youngest, exe := -1, ""
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid < youngest {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		if out, err := os.Readlink(filepath.Join(dir, "fd", "1")); err != nil || out != id {
			continue
		}
		path, err := os.Readlink(filepath.Join(dir, "exe"))
		if err == nil && waitsForPipe(dir, path) && isThere(path) {
			youngest, exe = pid, path
		}
	}
	return exe
}

// waitsForPipe reports whether a process waits for a full pipe. If the kernel does not say
// so, a process that sleeps does, unless it is a shell, which also sleeps until its
// programs end.
func waitsForPipe(dir, exe string) bool {
	if text, err := os.ReadFile(filepath.Join(dir, "wchan")); err == nil && len(text) > 1 {
		return bytes.Contains(text, []byte("pipe_write"))
	}
	return isSleeping(dir) && !slices.Contains(shells, filepath.Base(exe))
}

func isSleeping(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	// The name in parentheses may contain parentheses.
	_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	return strings.HasPrefix(rest, "S")
}

//go:build linux

package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestInputIsCopiedAndClosed(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<16)
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			s := shellSpec("cat")
			s.Stdin = strings.NewReader(text)
			if got := mustOutput(t, r, s); got != text {
				t.Errorf("got %d bytes, want %d", len(got), len(text))
			}
		})
	}
}

func TestInputThatIsNotReadDoesNotHoldTheEnd(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			silent, feeder := io.Pipe()
			defer feeder.Close()
			for name, in := range map[string]io.Reader{
				"more than a pipe holds": bytes.NewReader(make([]byte, 10<<20)),
				"nothing for ever":       silent,
			} {
				s := shellSpec("exit 5")
				s.Stdin = in
				if got := mustRun(t, r, s); got.Exit != 5 || got.Took > long {
					t.Errorf("%s: %+v", name, got)
				}
			}
		})
	}
}

func TestFilesAreHandedOver(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			in, err := os.Open("/proc/self/comm")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			s := shellSpec("readlink /proc/self/fd/1 /proc/self/fd/0")
			s.Stdin, s.Stdout = in, out
			mustRun(t, r, s)
			got, err := os.ReadFile(out.Name())
			want := fmt.Sprintf("%s\n", out.Name())
			if err != nil || !strings.HasPrefix(string(got), want) || !strings.HasSuffix(string(got), "/comm\n") {
				t.Errorf("%q, %v; want %q and a comm", got, err, want)
			}
		})
	}
}

func TestTheEndOfAStreamIsSeenWhenTheProgramClosesIt(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			in, feeder := io.Pipe()
			out, end, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			s := shellSpec("echo said; exec >&-; read x")
			asked := make(chan struct{})
			s.Stdin, s.Stdout, s.Timeout = &announcedReader{in, asked}, end, long
			var ended sync.WaitGroup
			ended.Go(func() { mustRun(t, r, s) })
			if err := out.SetReadDeadline(time.Now().Add(long / 2)); err != nil {
				t.Error(err)
			}
			first := make([]byte, 5)
			if _, err := io.ReadFull(out, first); err != nil {
				t.Error(err)
			}
			<-asked // The program has its own copy of end by then.
			end.Close()
			rest, err := io.ReadAll(out)
			if string(first) != "said\n" || len(rest) > 0 || err != nil {
				t.Errorf("got %q, %q, %v", first, rest, err)
			}
			feeder.Close()
			ended.Wait()
		})
	}
}

// announcedReader is a reader that announces its first Read.
type announcedReader struct {
	io.Reader
	asked chan struct{}
}

func (a *announcedReader) Read(p []byte) (int, error) {
	if a.asked != nil {
		close(a.asked)
		a.asked = nil
	}
	return a.Reader.Read(p)
}

func TestOneWriterForBothStreamsKeepsTheirOrder(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			got := mustOutput(t, r, shellSpec("for i in 1 2 3 4 5; do echo out; echo err >&2; done"))
			if want := strings.Repeat("out\nerr\n", 5); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// failingWriter is a writer that fails at its second write.
type failingWriter struct{ writes int }

func (f *failingWriter) Write(p []byte) (int, error) {
	f.writes++
	if f.writes == 2 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

func TestAWriterThatFailsIsLeftAloneAndTheProgramGoesOn(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			out := &failingWriter{}
			s := shellSpec("head -c 3000000 /dev/zero && exit 6")
			s.Stdout = out
			if got := mustRun(t, r, s); got.Exit != 6 || out.writes != 2 {
				t.Errorf("%+v after %d writes", got, out.writes)
			}
		})
	}
}

// slowWriter is a writer that takes longer for one write than output is read after the
// program's end.
type slowWriter struct{ bytes int }

func (s *slowWriter) Write(p []byte) (int, error) {
	if s.bytes == 0 {
		time.Sleep(linger + 50*time.Millisecond)
	}
	s.bytes += len(p)
	return len(p), nil
}

func TestASlowWriterLosesNothing(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			out := &slowWriter{}
			s := shellSpec("head -c 90000 /dev/zero")
			s.Stdout = out
			if mustRun(t, r, s); out.bytes != 90000 {
				t.Errorf("got %d bytes", out.bytes)
			}
		})
	}
}

func TestManyRunsAtOnceDoNotMeet(t *testing.T) {
	for name, r := range allRunners() {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for n := range 16 {
				all.Go(func() {
					var out strings.Builder
					s := shellSpec(fmt.Sprintf("echo %d; cat; exit %d", n, n))
					s.Stdin, s.Stdout = strings.NewReader(fmt.Sprint("in", n)), &out
					got, err := r.Run(t.Context(), s)
					if want := fmt.Sprintf("%d\nin%d", n, n); err != nil || got.Exit != n || out.String() != want {
						t.Errorf("run %d: %+v, %q, %v", n, got, out.String(), err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestAScriptJustWrittenStartsWhileOthersFork(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	var forking sync.WaitGroup
	for range 2 {
		forking.Go(func() {
			for stopping.Err() == nil {
				if _, err := (Plain{}).Run(t.Context(), shellSpec("exit 0")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	defer forking.Wait()
	defer stop()
	for n := range 50 {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := (Plain{}).Run(t.Context(), Spec{Argv: []string{path}}); err != nil {
			t.Fatalf("script %d: %v", n, err)
		}
	}
}

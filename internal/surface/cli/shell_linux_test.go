package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A shell on a terminal: what is typed reaches it, an interrupt ends what runs in it and
// not the shell, and its status is that of pawl.
func TestAShellHasATerminalOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	withProposal()(p)
	cmd := exec.Command("pawl", "shell", "tidy")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "repo"), append(p.env, "SHELL=/bin/sh", "TERM=dumb")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	// The time is that after which a hanging test is given up.
	hangs := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hangs.Stop()
	var said strings.Builder
	until := func(text string) {
		t.Helper()
		buf := make([]byte, 4096)
		for from := said.Len(); !strings.Contains(said.String()[from:], text); {
			n, err := terminal.Read(buf)
			said.Write(buf[:n])
			if err != nil {
				t.Fatalf("no %q: %v\n%s", text, err, said.String())
			}
		}
	}
	typing := func(text string) {
		t.Helper()
		if _, err := terminal.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	until("thrown away")
	typing("cat src/a.txt; echo $((6*7)); sleep 607.5\n")
	until("42")
	// A signal that comes before the shell has made sleep the terminal's is the shell's own, and
	// sleep goes on: a person presses the keys once more.
	prompt := make(chan struct{})
	var pressing sync.WaitGroup
	pressing.Go(func() {
		for again := time.NewTicker(2 * time.Second); ; {
			_, _ = terminal.WriteString("\x03")
			select {
			case <-prompt:
				again.Stop()
				return
			case <-t.Context().Done():
				return
			case <-again.C:
			}
		}
	})
	until("$ ") // The terminal forgets what is typed before it has passed the signal on.
	close(prompt)
	pressing.Wait()
	typing("echo still $((40+4)); exit 3\n")
	until("still 44")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ends with %v, want status 3:\n%s", err, said.String())
	}
	if !strings.Contains(said.String(), "better") {
		t.Errorf("the shell does not see the proposal:\n%s", said.String())
	}
}

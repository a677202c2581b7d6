package store_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
)

// writerEnv names a store to which the test binary, started again, writes until
// its standard input ends.
const writerEnv = "PAWL_TEST_WRITER"

func TestAsAnotherWriter(t *testing.T) {
	path := os.Getenv(writerEnv)
	if path == "" {
		return // The test below starts it.
	}
	s := open(t, path)
	err := s.Update(t.Context(), func(*store.Tx) error {
		fmt.Println("writing")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAWaitForTheStoreIsToldWithWhoWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsAnotherWriter$")
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "writing\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	var told []string
	ctx := waiting.With(t.Context(), func(line string) {
		told = append(told, line)
		_ = in.Close()
	})
	late := time.AfterFunc(20*time.Second, func() { _ = in.Close() })
	defer late.Stop()
	if err := s.Update(ctx, func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := "waiting for the store " + path + " to answer (since 2 s"
	if runtime.GOOS == "linux" {
		want += fmt.Sprintf("; held by process %d (", cmd.Process.Pid)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

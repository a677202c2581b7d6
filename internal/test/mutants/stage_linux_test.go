package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary the first process of a run, as the tool is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == stageArg {
		os.Exit(stage(os.Args[2]))
	}
	if dir := os.Getenv("PAWL_TEST_DISK"); dir != "" { // What is below /dev is not what these tests make.
		os.Setenv("TMPDIR", dir)
	}
	os.Exit(m.Run())
}

func needRoot(t *testing.T) {
	t.Helper()
	if !confined() {
		t.Skip("needs root: only root can shut mutants into namespaces; an ordinary user runs them without, so this code does not run")
	}
}

func shell(t *testing.T, line string, writable ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh")
	if err := staged(cmd, run{File: "/bin/sh", Args: []string{"-c", line}, Dir: "/", Writable: writable}); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestARunChangesItsOwnDirectoriesAndNothingElse(t *testing.T) {
	needRoot(t)
	own, other := t.TempDir(), t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := shell(t, "rm -rf "+other+"; echo gone >"+precious+"; echo made >"+own+"/file && echo done >/dev/null && echo ok", own).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok") || !strings.Contains(string(out), "cannot create "+precious) {
		t.Errorf("the run said %v %q, want only its own directory to be writable", err, out)
	}
	if body, err := os.ReadFile(precious); string(body) != "kept" {
		t.Errorf("a file outside reads %q, %v", body, err)
	}
	if body, err := os.ReadFile(filepath.Join(own, "file")); string(body) != "made\n" {
		t.Errorf("its own file reads %q, %v", body, err)
	}
}

// /dev is writable as a whole, and others keep files below it.
func TestARunDoesNotSeeTheSharedMemoryOfOthers(t *testing.T) {
	needRoot(t)
	other, err := os.MkdirTemp("/dev/shm", "mutants-") //nolint:usetesting // t.TempDir follows TMPDIR, and this test is about /dev/shm.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := shell(t, "rm -rf "+other+"; echo gone >"+precious+"; echo own >"+other+"-own && echo ok", t.TempDir()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok") {
		t.Errorf("the run said %v %q, want a /dev/shm of its own", err, out)
	}
	if body, err := os.ReadFile(precious); string(body) != "kept" {
		t.Errorf("a file of others reads %q, %v", body, err)
	}
	if _, err := os.Lstat(other + "-own"); !os.IsNotExist(err) {
		t.Errorf("the run has written into the shared memory of all: %v", err)
	}
}

func TestARunHasATmpOfItsOwnAndStillSeesTheCheckoutBelowIt(t *testing.T) {
	needRoot(t)
	tmp, root := t.TempDir(), t.TempDir() // below /tmp, if TMPDIR does not say otherwise
	precious := filepath.Join(root, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh")
	line := "cat " + precious + "; echo made >/tmp/made && echo ok; rm -rf " + root
	if err := staged(cmd, run{File: "/bin/sh", Args: []string{"-c", line}, Dir: root, Tmp: tmp, Root: root}); err != nil {
		t.Fatal(err)
	}
	out, _ := cmd.CombinedOutput() // rm fails, as it has to
	if !strings.HasPrefix(string(out), "keptok") {
		t.Errorf("the run said %q", out)
	}
	if body, err := os.ReadFile(precious); string(body) != "kept" {
		t.Errorf("the checkout reads %q, %v", body, err)
	}
	if body, err := os.ReadFile(filepath.Join(tmp, "made")); string(body) != "made\n" {
		t.Errorf("its /tmp reads %q, %v", body, err)
	}
}

func TestNothingOutlivesARun(t *testing.T) {
	needRoot(t)
	own := t.TempDir()
	file := filepath.Join(own, "file")
	if out, err := shell(t, "setsid sh -c 'sleep 1; echo alive >"+file+"' >/dev/null 2>&1 & exit 0", own).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	time.Sleep(2 * time.Second) // real, because a real process is to have ended
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a process that was left behind wrote a file: %v", err)
	}
}

func TestTheStatusOfARunIsThatOfItsProgram(t *testing.T) {
	for line, want := range map[string]int{"exit 0": 0, "exit 3": 3} {
		cmd := shell(t, line)
		_ = cmd.Run() // its status is what is asked for
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q ended with %d, want %d", line, got, want)
		}
	}
}

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// listSurvivors lists what is left on the host of a box whose programs carry mark.
func listSurvivors(t *testing.T, mark string) (left []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if command, _ := os.ReadFile(path); bytes.Contains(command, []byte(mark)) {
			left = append(left, path+" "+string(command))
		}
	}
	return left
}

func TestAttack092NothingOutlivesItsBox(t *testing.T) {
	scripts := map[string]string{
		"a double fork with a session of its own": `(setsid sh -c "sleep $MARK & sleep $MARK" &) ; sleep 0.1`,
		"what ignores every signal":               `trap '' TERM INT HUP QUIT; (trap '' TERM HUP; sleep $MARK) & sleep $MARK`,
		"what stopped itself":                     `sh -c 'kill -STOP $$' $MARK & sleep $MARK`,
		"two hundred at once":                     `i=0; while [ $i -lt 200 ]; do sleep $MARK & i=$((i+1)); done; wait`,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("300.%d", time.Now().UnixNano())
			b := newCell(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := onWrite(func() { time.AfterFunc(300*time.Millisecond, cancel) })
			res, err := b.Run(ctx, proc.Spec{
				Argv: []string{"/bin/sh", "-c", "echo; " + script}, Dir: b.Tree, Stdout: &started, Grace: 100 * time.Millisecond,
				Env: []string{"PATH=/usr/bin:/bin", "MARK=" + mark},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", res)
			if left := listSurvivors(t, mark); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// onWrite is a writer that calls the function at the first write.
type onWrite func()

func (f *onWrite) Write(p []byte) (int, error) {
	if *f != nil {
		(*f)()
		*f = nil
	}
	return len(p), nil
}

func TestAttack094SignalsStayInTheBox(t *testing.T) {
	bystander := exec.Command("sleep", "300")
	if os.Geteuid() == 0 {
		uid, gid := Full.Owner()
		bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = bystander.Process.Kill(), bystander.Wait() }()
	b := newCell(t)
	out, _ := runScript(t, b, `exec 2>&1; kill -KILL 1; kill -STOP 1; kill -TERM 1; kill -INT 1; echo still here
		for pid in $VICTIMS; do kill -KILL $pid && echo "killed $pid"; done`,
		fmt.Sprintf("VICTIMS=%d %d %d", bystander.Process.Pid, os.Getpid(), os.Getppid()))
	if !strings.Contains(out, "still here") || strings.Contains(out, "killed") {
		t.Errorf("printed:\n%s", out)
	}
	if _, err := b.Run(t.Context(), proc.Spec{Argv: []string{"/bin/sh", "-c", "kill -KILL -1"}, Dir: b.Tree, Timeout: 10 * time.Second}); err != nil {
		t.Error(err)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of the host is gone: %v", err)
	}
}

// unprivileged is set when these tests run again as a user without privileges.
const unprivileged = "PAWL_TEST_UNPRIVILEGED"

func TestAllThisHoldsForAnUnprivilegedUser(t *testing.T) {
	if os.Getenv(unprivileged) != "" {
		if os.Geteuid() == 0 {
			t.Error("still root")
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("the other tests ran without privilege; none of them ran as root")
	}
	// Another user than nobody, whose limits other tests may use up.
	const uid = 64321
	exe := filepath.Join(t.TempDir(), "sandbox.test")
	for dir := filepath.Dir(exe); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"TestAttack001", "TestAttack079", "TestAttack092", "TestAttack094", "TestEveryRowOfTheSelfTestHolds"}
	tests := strings.Join(names, "|") + "|" + t.Name()
	if sample.All() {
		tests = "Test"
	}
	cmd := exec.Command(exe, "-test.run="+tests, "-test.v", "-test.timeout=5m")
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", unprivileged + "=1", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not pass without privilege", name)
		}
	}
}

//go:build linux

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

func identityOf(t *testing.T, pid int) Identity {
	t.Helper()
	id := Self()
	id.PID = pid
	var ok bool
	if id.Start, ok = startOf(pid); !ok {
		t.Fatalf("pid %d does not live", pid)
	}
	return id
}

func startSleep(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", newMark())
	cmd.Env = append([]string{systemPath}, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killAndWait(cmd) })
	return cmd
}

func TestOnlyThatVeryProcessIsAlive(t *testing.T) {
	me := Self()
	with := func(change func(*Identity)) Identity { id := me; change(&id); return id }
	cases := map[string]struct {
		id          Identity
		alive, same bool
	}{
		"this process":                    {me, true, true},
		"its pid in the hands of another": {with(func(id *Identity) { id.Start++ }), false, true},
		"its pid on another host":         {with(func(id *Identity) { id.Host += "x" }), false, false},
		"its pid before the last boot":    {with(func(id *Identity) { id.Boot = "earlier" }), false, false},
		"a pid that nobody has":           {with(func(id *Identity) { id.PID = 1 << 30 }), false, true},
		"no process":                      {Identity{}, false, false},
		"a process group":                 {with(func(id *Identity) { id.PID = -id.PID }), false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if Alive(c.id) != c.alive || SameHost(c.id) != c.same {
				t.Errorf("alive %v, same host %v", Alive(c.id), SameHost(c.id))
			}
		})
	}
	if me.PID != os.Getpid() || me.Start == 0 || me.Boot == "" || me.Host == "" {
		t.Errorf("self is %+v", me)
	}
}

func TestAProcessThatEndedIsDeadAlsoBeforeItIsReaped(t *testing.T) {
	cmd := startSleep(t)
	id := identityOf(t, cmd.Process.Pid)
	if !Alive(id) {
		t.Fatal("a living process is dead")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitZombie(cmd.Process.Pid)
	if Alive(id) {
		t.Error("a zombie is alive")
	}
	killAndWait(cmd)
	if Alive(id) {
		t.Error("a reaped process is alive")
	}
}

func TestKillTaggedKillsWhatHasExactlyTheTag(t *testing.T) {
	tag := "PAWL_TAG=" + newMark()
	marked, stopped := startSleep(t, tag), startSleep(t, "A=1", tag, "B=2")
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	spared := []*exec.Cmd{startSleep(t), startSleep(t, tag+"0"), startSleep(t, "X"+tag), startSleep(t, "X="+tag)}
	killed, err := KillTagged(t.Context(), tag)
	if killed != 2 || err != nil {
		t.Errorf("killed %d, %v; want 2", killed, err)
	}
	for _, cmd := range []*exec.Cmd{marked, stopped} {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("a tagged process ended with %v", err)
		}
	}
	for _, cmd := range spared {
		if !Alive(identityOf(t, cmd.Process.Pid)) {
			t.Errorf("%q was killed", cmd.Env)
		}
	}
	if killed, err := KillTagged(t.Context(), tag); killed != 0 || err != nil {
		t.Errorf("again: killed %d, %v", killed, err)
	}
}

func TestKillTaggedAlsoKillsWhatHidItsEnvironmentBelow(t *testing.T) {
	s, mark := markedSpec(t, `env -i sleep $MARK & env -i setsid sleep $MARK & echo; wait`)
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = s.Env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer killAndWait(cmd)
	if !waitUntil(long, func() bool { return len(livingWith(t, mark)) == 3 }) {
		t.Fatalf("only %q started", livingWith(t, mark))
	}
	if killed, err := KillTagged(t.Context(), s.Tag); killed != 3 || err != nil {
		t.Errorf("killed %d, %v; want 3", killed, err)
	}
	if left := livingWith(t, mark); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestKillTaggedNeverKillsItself(t *testing.T) {
	for _, entry := range os.Environ() {
		if isTag(entry) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if killed, err := KillTagged(ctx, entry); killed != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("killed %d, %v", killed, err)
			}
			for _, p := range stage.FindTagged(entry) {
				if p.PID == os.Getpid() || p.PID == os.Getppid() {
					t.Errorf("%q would kill pid %d", entry, p.PID)
				}
			}
		}
	}
}

func TestKillTaggedRefusesWhatIsNoTag(t *testing.T) {
	for _, tag := range []string{"", "=", "NAME", "NAME=", "=value", "A=b\x00C=d"} {
		if killed, err := KillTagged(t.Context(), tag); killed != 0 || err == nil {
			t.Errorf("%q: killed %d, %v", tag, killed, err)
		}
	}
}

func BenchmarkKillTagged(b *testing.B) {
	for b.Loop() {
		if _, err := KillTagged(b.Context(), "PAWL_TAG=nobody"); err != nil {
			b.Fatal(err)
		}
	}
}

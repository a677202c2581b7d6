package spawner

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestARequestArrivesAsItWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 1<<32-1), 3, 3), func(n []int) syscall.SysProcIDMap {
			return syscall.SysProcIDMap{ContainerID: n[0], HostID: n[1], Size: n[2]}
		}), 0, 4)
		texts := rapid.SliceOf(rapid.String())
		r := Request{Argv: texts.Draw(t, "argv"), Env: texts.Draw(t, "env"), Sys: &syscall.SysProcAttr{
			Cloneflags: uintptr(rapid.Uint32().Draw(t, "flags")), UidMappings: ids.Draw(t, "uids"), GidMappings: ids.Draw(t, "gids"),
			GidMappingsEnableSetgroups: rapid.Bool().Draw(t, "setgroups"), Setsid: rapid.Bool().Draw(t, "session"),
			Pdeathsig: syscall.Signal(rapid.IntRange(0, 64).Draw(t, "signal")), AmbientCaps: rapid.SliceOf(rapid.Uintptr()).Draw(t, "caps"),
		}}
		packet := r.Encode()
		if got, ok := parseRequest(packet); !ok || !cmp.Equal(got, r, cmpopts.EquateEmpty()) {
			t.Errorf("ok %v: %s", ok, cmp.Diff(r, got, cmpopts.EquateEmpty()))
		}
		if _, ok := parseRequest(packet[:rapid.IntRange(0, len(packet)-1).Draw(t, "cut")]); ok {
			t.Error("a request that was cut is read")
		}
	})
}

func TestAReplyArrivesAsItWasSent(t *testing.T) {
	for _, want := range []Reply{{PID: 1 << 22}, {Errno: syscall.EPERM}} {
		if got, ok := ParseReply(want.encode()); !ok || got != want {
			t.Errorf("got %v, %v; want %v", got, ok, want)
		}
		if len(want.encode()) != ReplySize {
			t.Errorf("%d bytes, want %d", len(want.encode()), ReplySize)
		}
	}
}

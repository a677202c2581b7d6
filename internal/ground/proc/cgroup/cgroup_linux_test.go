package cgroup

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTheOwnGroupIsFoundWhereItIsMounted(t *testing.T) {
	const (
		hybrid = `24 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw
25 24 0:21 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
26 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
27 24 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
		unified = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		docker  = "30 1 0:26 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
	)
	type spots = map[string]ownGroup
	cases := map[string]struct {
		own, mounts string
		want        spots
	}{
		"version 2 alone": {"0::/user.slice/a.scope\n", unified, spots{"": {"/sys/fs/cgroup/user.slice/a.scope", false}}},
		"the top":         {"0::/\n", unified, spots{"": {"/sys/fs/cgroup", true}}},
		"both versions": {"9:cpu,cpuacct:/x\n8:pids:/\n0::/\n", hybrid, spots{
			"": {"/sys/fs/cgroup/unified", true}, "pids": {"/sys/fs/cgroup/pids", true},
			"cpu": {"/sys/fs/cgroup/cpu,cpuacct/x", false}, "cpuacct": {"/sys/fs/cgroup/cpu,cpuacct/x", false},
		}},
		"a part of a hierarchy":        {"8:pids:/docker/abc/x\n", docker, spots{"pids": {"/sys/fs/cgroup/pids/x", false}}},
		"the top of that part":         {"8:pids:/docker/abc\n", docker, spots{"pids": {"/sys/fs/cgroup/pids", true}}},
		"a group beside what is shown": {"8:pids:/docker/abcd\n", docker, spots{}},
		"a group above what is shown":  {"8:pids:/docker\n", docker, spots{}},
		"a group above the namespace":  {"0::/../x\n", unified, spots{}},
		"a hierarchy without a mount":  {"8:pids:/\n", unified, spots{}},
		"a mount without a hierarchy":  {"", hybrid, spots{}},
		"a mount point with a space":   {"0::/\n", `30 1 0:26 / /my\040groups rw - cgroup2 cgroup2 rw`, spots{}},
		"lines that are cut":           {"0::/\n8:pids\n8\n\n", "30 1 0:26 / /sys\n- cgroup2 a b\n", spots{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, locateOwnGroups(c.own, c.mounts), cmp.AllowUnexported(ownGroup{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("0::/a\n8:pids:/\n", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	f.Add("8:pids:/docker/abc/../x\n", "30 1 0:26 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n")
	f.Add(":::::\n", " - \n")
	f.Fuzz(func(t *testing.T, own, mounts string) {
		for name, s := range locateOwnGroups(own, mounts) {
			if s.dir != path.Clean(s.dir) {
				t.Errorf("%q is at %q, which is not clean", name, s.dir)
			}
		}
	})
}

func TestNoGroupIsFoundOutsideItsMount(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "..", ".", "docker"})
	rapid.Check(t, func(t *rapid.T) {
		root := "/" + strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(t, "root"), "/")
		own := "/" + strings.Join(rapid.SliceOfN(segment, 0, 5).Draw(t, "own"), "/")
		at, ok := pathInMount(root, own)
		if joined := path.Join("/mount", at); ok && joined != "/mount" && !strings.HasPrefix(joined, "/mount/") {
			t.Errorf("%q below %q is at %q", own, root, joined)
		}
	})
}

// findHome returns where groups can be made on this host, and logs what they can do.
func findHome(t *testing.T) Home {
	t.Helper()
	h := FindHome()
	t.Logf("kill %v, processes by %q, memory by %q", h.CanKill(), h.ProcessLimiter(), h.MemoryLimiter())
	return h
}

func groupName(t *testing.T) string {
	t.Helper()
	return "pawltest-" + strconv.Itoa(os.Getpid()) + "-" + t.Name()
}

func TestAGroupOfVersion2KillsItsMembers(t *testing.T) {
	h := findHome(t)
	if !h.CanKill() {
		return
	}
	g := h.MakeGroup(groupName(t), Limits{Kill: true})
	defer func() { _ = g.Remove() }()
	var dead []*exec.Cmd
	for range 3 {
		cmd := exec.Command("sleep", "300")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill() }()
		if err := writeControl(g.UnifiedDir(), "cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(g.Members(), cmd.Process.Pid) {
			t.Errorf("members %v, want %d among them", g.Members(), cmd.Process.Pid)
		}
		dead = append(dead, cmd)
	}
	if got := h.OpenGroup(groupName(t)); got.UnifiedDir() != g.UnifiedDir() {
		t.Errorf("opened %q, want %q", got.UnifiedDir(), g.UnifiedDir())
	}
	if !g.Kill() {
		t.Error("the group does not kill")
	}
	for _, cmd := range dead {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("ended with %v", err)
		}
	}
	if err := g.Remove(); err != nil || slices.Contains(h.GroupNames("pawltest-"), groupName(t)) {
		t.Errorf("%v, groups %q", err, h.GroupNames("pawltest-"))
	}
}

func TestAGroupTellsThatItRefusedToFork(t *testing.T) {
	h := findHome(t)
	if h.ProcessLimiter() == "" {
		return
	}
	g := h.MakeGroup(groupName(t), Limits{Processes: 3})
	defer func() { _ = g.Remove() }()
	if !g.BoundsProcesses() || g.BoundsMemory() {
		t.Fatalf("it bounds processes %v and memory %v", g.BoundsProcesses(), g.BoundsMemory())
	}
	g.TightenAfterStart()
	dir := g.processes
	if processes, memory := g.LimitsHit(); processes || memory {
		t.Error("a new group was hit")
	}
	const script = `echo $$ > "$0/cgroup.procs"; for i in 1 2 3 4; do sleep 0.01 & done; wait`
	out, err := exec.Command("/bin/sh", "-c", script, dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "fork") {
		t.Errorf("%v, %q; want it refused to fork", err, out)
	}
	if processes, memory := g.LimitsHit(); !processes || memory {
		t.Errorf("hit processes %v, memory %v", processes, memory)
	}
}

func TestAGroupWithMembersIsNotRemoved(t *testing.T) {
	h := findHome(t)
	if !h.CanKill() {
		return
	}
	g := h.MakeGroup(groupName(t), Limits{Kill: true})
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := writeControl(g.UnifiedDir(), "cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
		t.Error(err)
	}
	began := time.Now()
	if err := g.Remove(); err == nil || time.Since(began) < time.Second {
		t.Errorf("removed with %v after %v, want patience and an error", err, time.Since(began))
	}
	g.Kill()
	_ = cmd.Wait()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if err := g.Remove(); err != nil {
		t.Errorf("removed again: %v", err)
	}
}

func TestNothingIsMadeWithoutAHome(t *testing.T) {
	var h Home
	if g := h.MakeGroup(groupName(t), Limits{Kill: true, Processes: 1, Memory: 1}); g != nil {
		t.Errorf("made %+v", g)
	}
	var g *Group
	processes, memory := g.LimitsHit()
	if g.Kill() || len(g.Members()) > 0 || processes || memory || g.Remove() != nil || g.BoundsMemory() || g.BoundsProcesses() {
		t.Error("the nil group does something")
	}
	second := controllerDir{dir: "/a", unified: true}
	h = Home{unified: "/a", processes: second, memory: controllerDir{dir: "/m"}}.WithoutUnified()
	if want := (Home{memory: controllerDir{dir: "/m"}}); h != want {
		t.Errorf("without version 2: %+v, want %+v", h, want)
	}
}

func TestCountsAreReadByName(t *testing.T) {
	dir := t.TempDir()
	const text = "low 0\nhigh 3\nmax 12\noom 1\noom_kill 4\noom_group_kill 9\nbad x\n"
	if err := os.WriteFile(path.Join(dir, "memory.events"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"max": 12, "oom_kill": 4, "none": 0, "bad": 0, "low": 0} {
		if got := readCount(dir, "memory.events", name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	if got := readCount(dir, "no such file", "max"); got != 0 {
		t.Errorf("a file that is not there: %d", got)
	}
}

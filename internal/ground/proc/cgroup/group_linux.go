package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MakeGroup makes the group name with those limits that this home offers; the
// group's methods say which it has. It returns nil if it has none.
func (h Home) MakeGroup(name string, l Limits) *Group {
	g := &Group{}
	if l.Kill && h.unified != "" {
		g.makeDir(controllerDir{dir: h.unified, unified: true}, name)
	}
	if l.Processes > 0 {
		first := l.Processes
		if !h.processes.unified {
			// In version 1 the thread that forks the program is in the group too.
			g.processesAfterStart = l.Processes
			first++
		}
		if dir := g.makeDir(h.processes, name); dir != "" && limitProcesses(dir, first) {
			g.processes = dir
		}
	}
	if l.Memory > 0 {
		if dir := g.makeDir(h.memory, name); dir != "" && limitMemory(dir, h.memory, l.Memory) {
			g.memory = dir
		}
	}
	if g.unified == "" && len(g.tasks) == 0 {
		return nil
	}
	return g
}

// makeDir makes the directory of the group at s, unless it was made before, and
// returns it, or "" if it cannot be made.
func (g *Group) makeDir(s controllerDir, name string) string {
	if s.dir == "" {
		return ""
	}
	dir := path.Join(s.dir, name)
	if g.unified == dir || slices.Contains(g.tasks, dir) {
		return dir
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return ""
	}
	if s.unified {
		g.unified = dir
	} else {
		g.tasks = append(g.tasks, dir)
	}
	return dir
}

// TightenAfterStart sets the final limit of processes. It is called once the program
// is a member and the thread that started it is no longer one.
func (g *Group) TightenAfterStart() {
	if g.BoundsProcesses() && g.processesAfterStart > 0 {
		limitProcesses(g.processes, g.processesAfterStart)
	}
}

func limitProcesses(dir string, n int) bool {
	return writeControl(dir, "pids.max", strconv.Itoa(n)) == nil
}

func limitMemory(dir string, s controllerDir, n int64) bool {
	limit := strconv.FormatInt(n, 10)
	// Swap is limited only if the kernel counts it. In version 1 the limit of both
	// together must be set after that of memory.
	if s.unified {
		_ = writeControl(dir, "memory.swap.max", "0")
		return writeControl(dir, "memory.max", limit) == nil
	}
	ok := writeControl(dir, "memory.limit_in_bytes", limit) == nil
	_ = writeControl(dir, "memory.memsw.limit_in_bytes", limit)
	return ok
}

// Kill kills all members at once, including those that are being forked. It reports
// false if it cannot, as in version 1. It does not wait until they are dead.
func (g *Group) Kill() bool {
	return g.UnifiedDir() != "" && writeControl(g.unified, "cgroup.kill", "1") == nil
}

// Members returns the pids of its members that this process can see.
func (g *Group) Members() []int {
	var pids []int
	for _, dir := range g.allDirs() {
		b, _ := os.ReadFile(path.Join(dir, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(b)) {
			// A member of another PID namespace shows as 0.
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// LimitsHit reports whether the limit of processes ever made a fork fail, and
// whether that of memory ever made the kernel kill a member.
func (g *Group) LimitsHit() (processes, memory bool) {
	if g.BoundsProcesses() {
		processes = readCount(g.processes, "pids.events", "max") > 0
	}
	if g.BoundsMemory() {
		file := "memory.oom_control"
		if g.memory == g.unified {
			file = "memory.events"
		}
		memory = readCount(g.memory, file, "oom_kill") > 0
	}
	return processes, memory
}

// Remove removes the group, whose members must be dead or dying. It waits up to
// two seconds for them.
func (g *Group) Remove() error {
	var failed error
	for _, dir := range g.allDirs() {
		const patience = 2 * time.Second
		err := removeDir(dir)
		for end := time.Now().Add(patience); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
			time.Sleep(200 * time.Microsecond)
			err = removeDir(dir)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func removeDir(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
}

func (g *Group) allDirs() []string {
	if g.UnifiedDir() == "" {
		return g.TaskDirs()
	}
	return append([]string{g.unified}, g.tasks...)
}

// GroupNames returns the names of the groups here that begin with prefix.
func (h Home) GroupNames(prefix string) []string {
	var names []string
	for _, dir := range h.parentDirs() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// OpenGroup returns a group that an earlier process made here. Its limits are
// unknown, so LimitsHit always reports false.
func (h Home) OpenGroup(name string) *Group {
	g := &Group{}
	for _, dir := range h.parentDirs() {
		at := path.Join(dir, name)
		if _, err := os.Stat(at); err != nil {
			continue
		}
		if dir == h.unified {
			g.unified = at
		} else {
			g.tasks = append(g.tasks, at)
		}
	}
	return g
}

// parentDirs returns the directories in which groups are made.
func (h Home) parentDirs() []string {
	var dirs []string
	for _, dir := range []string{h.unified, h.processes.dir, h.memory.dir} {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// writeControl writes a value to a control file. It never creates the file: if it is
// missing, the kernel does not have the control.
func writeControl(dir, file, value string) error {
	f, err := os.OpenFile(path.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// readCount returns the number after name in a control file, 0 if missing.
func readCount(dir, file, name string) int {
	b, _ := os.ReadFile(path.Join(dir, file))
	for line := range strings.Lines(string(b)) {
		if word, value, _ := strings.Cut(strings.TrimSpace(line), " "); word == name {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

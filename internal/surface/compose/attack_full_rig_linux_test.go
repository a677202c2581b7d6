package compose_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// caged is a workspace whose programs run in the sandbox, which shows them
// nothing but the tree: its agent lies in there.
func caged(t *testing.T, script string, files map[string]string, keys ...string) *victim {
	t.Helper()
	return cagedIn(t, os.Environ(), script, files, keys...)
}

func cagedIn(t *testing.T, environ []string, script string, files map[string]string, keys ...string) *victim {
	t.Helper()
	all := map[string]string{"agent.sh": obedient(script)}
	maps.Copy(all, files)
	v := attackedIn(t, environ, "", all, append([]string{"sandbox", "full", "agent_command", "sh agent.sh"}, keys...)...)
	// The kernel leaves folders there that nobody may read, not even their owner.
	t.Cleanup(func() { must(t, sandbox.RemoveTree(filepath.Join(v.home, "caches"))) })
	return v
}

// obedient is a script that claims to be done in the end.
func obedient(script string) string {
	return script + "\n[ -e \"$PAWL_REPORT\" ] || printf '{\"outcome\":\"done\",\"summary\":\"did it\"}' >\"$PAWL_REPORT\"\n"
}

// commits puts files into the branch that runs start from.
func (v *victim) commits(files map[string]string) {
	v.t.Helper()
	for name, text := range files {
		v.write(name, text)
		v.git("add", "-f", name)
	}
	v.git("commit", "-q", "-m", "more")
	v.main = v.git("rev-parse", "main")
}

// said is what a file of the proposed branch holds.
func (v *victim) said(run runs.View, path string) string {
	v.t.Helper()
	return v.git("show", v.wantProposed(run)+":"+path)
}

// evidence is what the run's first gate printed.
func evidence(t *testing.T, run runs.View) string {
	t.Helper()
	if len(run.Iterations) == 0 || len(run.Iterations[0].Gates) == 0 {
		t.Fatalf("run = %s %s %q, and no gate ran", run.Outcome, run.Reason, run.Detail)
	}
	return run.Iterations[0].Gates[0].Evidence
}

// intact holds that nothing of the host's repository but pawl's own refs and
// new objects differs from before, which is what kept returned.
func (v *victim) intact(before map[string]string) {
	v.t.Helper()
	for name, text := range v.kept() {
		if text != before[name] {
			v.t.Errorf("%s was\n%s\nand is now\n%s", name, before[name], text)
		}
	}
}

// kept is what only its owner may change in a repository.
func (v *victim) kept() map[string]string {
	v.t.Helper()
	all := map[string]string{"refs": v.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/heads/e*", "refs/stash", "refs/tags", "refs/notes")}
	for _, name := range []string{".git/config", ".git/HEAD", ".git/info/exclude"} {
		all[name] = readFile(v.t, filepath.Join(v.root, name))
	}
	hooks, err := filepath.Glob(filepath.Join(v.root, ".git/hooks/*"))
	must(v.t, err)
	all["hooks"] = strings.Join(hooks, "\n")
	return all
}

// alive counts the processes of the host with a word on their command line.
func alive(t *testing.T, word string) (n int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, name := range names {
		// Processes that are gone by now have none.
		if text, err := os.ReadFile(name); err == nil && slices.Contains(strings.Split(string(text), "\x00"), word) {
			n++
		}
	}
	return n
}

// naps counts the times to sleep of this process.
var naps atomic.Int64

// nap is a time to sleep that no other process sleeps.
func nap(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("7%d.%d", os.Getpid(), naps.Add(1))
}

// wantReadOnly holds that a program was told that it cannot write.
func wantReadOnly(t *testing.T, text string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return (strings.Contains(line, path+":") || strings.Contains(line, "'"+path+"':")) && strings.Contains(line, "Read-only file system")
		}) {
			t.Errorf("no word that %s is read-only in:\n%s", path, text)
		}
	}
}

// withoutRights is set for the run of these tests as a user without rights.
const withoutRights = "PAWL_TEST_UNPRIVILEGED"

func TestWholeRunsInFullHoldAsAUserWithoutRightsToo(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv(withoutRights) == "" {
			t.Log("all tests run without rights here")
		}
		return
	}
	const uid = 64322
	all := []string{"001", "022", "039", "043", "047", "049", "050", "053", "055", "056", "059", "061", "062", "067", "068", "073", "077", "088", "092", "122"}
	tests, attacks := "^TestAttack[0-9]*InFull", all
	if !sample.All() {
		attacks = []string{"001", "049", "056", "062"}
		tests = "^TestAttack(" + strings.Join(attacks, "|") + ")InFull"
	}
	dir := t.TempDir()
	must(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)))
	exe, home := filepath.Join(dir, "daemon.test"), filepath.Join(dir, "home")
	binary, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(exe, binary, 0o755))
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, uid, uid))
	tmp, err := os.MkdirTemp("", "") //nolint:usetesting // Sockets are in it, whose paths must be short.
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(tmp)) })
	must(t, os.Chown(tmp, uid, uid))
	cmd := exec.Command(exe, "-test.run="+tests, "-test.v", "-test.timeout=8m")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", withoutRights + "=1", "TMPDIR=" + tmp, "HOME=" + home}
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GIT_AUTHOR_") || strings.HasPrefix(kv, "GIT_COMMITTER_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.HasPrefix(line, "=== ") })
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	for _, id := range attacks {
		if !strings.Contains(string(out), "--- PASS: TestAttack"+id+"InFull") {
			t.Errorf("attack %s did not fail without rights", id)
		}
	}
}

// wantPaused holds that a switch ended a run, and that nothing came of it.
func (v *victim) wantPaused(run runs.View) {
	v.t.Helper()
	if run.Outcome != loop.OutcomePaused || run.Outcome.Meaning().Exit != loop.ExitPaused {
		v.t.Errorf("run = %s %s %q, want paused", run.Outcome, run.Reason, run.Detail)
	}
	v.nothingLanded(run)
}

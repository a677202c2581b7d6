package boots_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// rig is a workspace without a store, beside a boot repository.
type rig struct {
	*boots.Service
	t    *testing.T
	dir  string // of both
	root string // of the workspace
	boot string
	deps boots.Deps
}

// newRig makes an empty workspace and a boot repository with the tag v1.0.0, in which some
// files are changed, and those that are changed to nothing are missing.
func newRig(t *testing.T, changed map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, dir: dir, root: filepath.Join(dir, "repo"), boot: filepath.Join(dir, "boot")}
	for _, at := range []string{r.root, r.boot} {
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		gittest.Run(t, at, "init", "-q", "-b", "main")
	}
	files := map[string]string{}
	for name, text := range bootrepo.Scaffold(now) {
		files[name] = string(text)
	}
	maps.Copy(files, changed)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	gittest.Write(t, r.boot, files)
	r.commit(r.boot, "boot")
	gittest.Run(t, r.boot, "tag", "v1.0.0")
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	r.deps = boots.Deps{
		Contracts: bootrepo.Cache{Dir: filepath.Join(t.TempDir(), "boot"), Environ: environ, Exec: proc.Plain{}, Now: func() time.Time { return now }},
		Exec:      proc.Plain{},
	}
	r.reopen()
	return r
}

// reopen makes the service anew, as another process does.
func (r *rig) reopen() {
	r.t.Helper()
	repo, err := git.Open(r.t.Context(), r.root)
	if err != nil {
		r.t.Fatal(err)
	}
	elsewhere := func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }
	ws, err := lookup.OpenRepo(r.t.Context(), lookup.Deps{Formats: verbtest.Formats(), Now: func() time.Time { return now }, HolderState: elsewhere}, repo)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Service = boots.New(ws, r.deps)
}

// newWorkspace is newRig with the files of a workspace, committed.
func newWorkspace(t *testing.T, changed map[string]string) *rig {
	t.Helper()
	r := newRig(t, changed)
	r.write("AGENT_LINK.md", link("../boot", "v1.0.0", "1.0.0"))
	r.write("agent/STATE.json", state(""))
	r.write("agent/TODO.json", tasks(task("t1", "pending", "low"), task("t2", "pending", "high")))
	r.write("CHANGELOG.md", "# Changelog\n")
	r.commit(r.root, "begin")
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	gittest.Write(r.t, r.root, map[string]string{name: text})
}

func (r *rig) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.root, name)); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits all files of a repository.
func (r *rig) commit(dir, message string) string {
	r.t.Helper()
	gittest.Run(r.t, dir, "add", "-A")
	gittest.Run(r.t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return gittest.Run(r.t, dir, "rev-parse", "HEAD")
}

func link(repository, reference, version string) string {
	return "# Link\n\n| Field | Value |\n|---|---|\n| Boot Repository | `" + repository + "` |\n| Boot Reference | `" + reference + "` |\n| Boot Version | `" + version + "` |\n"
}

// state is a STATE.json that is valid, with more fields.
func state(more string) string {
	if more != "" {
		more = ",\n  " + more
	}
	return "{\n  \"version\": \"1.0.0\",\n  \"lastUpdated\": \"2026-01-02T03:04:05Z\",\n  \"activeProject\": \"demo\",\n  \"currentPhase\": \"idle\"" + more + "\n}\n"
}

func task(id, status, priority string) string {
	return `    {"id": "` + id + `", "title": "Do ` + id + `", "status": "` + status + `", "priority": "` + priority + `"}`
}

func tasks(list ...string) string {
	return "{\n  \"version\": \"1.0.0\",\n  \"tasks\": [\n" + strings.Join(list, ",\n") + "\n  ]\n}\n"
}

// wantFault fails the test unless an error is a *loop.Fault with a status and words.
func wantFault(t *testing.T, err error, exit int, words string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || !strings.Contains(f.Error()+"\n"+f.Advice().String(), words) {
		t.Errorf("error = %v, want status %d and %q", err, exit, words)
	}
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	return gittest.Run(r.t, r.root, args...)
}

const older = "# Agent\n\n| Field | Value |\n|---|---|\n| Repo | `../boot` |\n| Branch | `main` |\n| Entry | `contract/AGENT_RULES.md` |\n"

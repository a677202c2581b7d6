package runenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestProgramsGetWhatTheDefinitionAllowsAndNothingElse(t *testing.T) {
	s := Env{
		Host: Host{Home: "/home/u/.pawl", Environ: []string{"PATH=bin::/usr/bin:./x:/bin", "HOME=/home/u", "TOKEN=t", "WANTED=w", "WANTED_TOO=x"}},
		ID:   "run_1", Loop: "l", Definition: loop.Definition{Env: []string{"WANTED"}},
	}
	want := []string{
		"PATH=/usr/bin:/bin", "HOME=/home/u", "WANTED=w", "PAWL_RUN=run_1", "PAWL_LOOP=l", "GIT_CEILING_DIRECTORIES=/home/u/.pawl/trees",
	}
	if diff := cmp.Diff(want, s.ProgramEnv()); diff != "" {
		t.Errorf("Env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(want, "PAWL_ITERATION=0"), s.StepEnv()); diff != "" {
		t.Errorf("StepEnv before any iteration (-want +got):\n%s", diff)
	}
}

func TestProgramsAreToldOfTheirStepWhereTheyFindIt(t *testing.T) {
	for tier, dir := range map[string]string{"none": "/p/runs/run_1/turn-2", "full": "/run/pawl/turn"} {
		s := Env{Host: Host{Home: "/p"}, ID: "run_1", Definition: loop.Definition{Sandbox: tier}, Iteration: 2, Step: "st_1 mend it"}
		want := []string{"PAWL_ITERATION=2", "PAWL_STEP=st_1 mend it", "PAWL_PROMPT=" + dir + "/prompt.md", "PAWL_REPORT=" + dir + "/report.json"}
		env := s.StepEnv()
		if diff := cmp.Diff(want, env[len(env)-4:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tier, diff)
		}
	}
}

func TestATimeLimitDoesNotReachBeyondTheDefinitions(t *testing.T) {
	for name, c := range map[string]struct{ gone, limit, want time.Duration }{
		"there is time":         {time.Minute, 5 * time.Minute, 5 * time.Minute},
		"there is less":         {8 * time.Minute, 5 * time.Minute, 2 * time.Minute},
		"there is none":         {time.Hour, 5 * time.Minute, time.Second},
		"it wants less than it": {time.Hour, time.Millisecond, time.Millisecond},
	} {
		s := Env{
			Host: Host{Now: func() time.Time { return now.Add(c.gone) }}, Started: now, Definition: loop.Definition{MaxWallClock: 10 * time.Minute},
		}
		if got := s.Within(c.limit); got != c.want {
			t.Errorf("%s: Within = %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatATurnLeftIsNoReportOfTheNext(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n"})
	dir, err := s.OpenTurn(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", s.PromptFile(s.ID, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.ReportFile(s.ID, 1), []byte("done"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := s.OpenTurn(1); again != dir || err != nil {
		t.Errorf("opened again: %s, %v; want %s", again, err, dir)
	}
	if _, err := s.FreshTurn(1); err != nil {
		t.Fatal(err)
	}
	if err := s.WritePrompt(1, "work"); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if diff := cmp.Diff([]string{s.PromptFile(s.ID, 1)}, names); diff != "" || err != nil {
		t.Errorf("in the folder (-want +got), %v:\n%s", err, diff)
	}
	if text, err := os.ReadFile(s.PromptFile(s.ID, 1)); string(text) != "work" {
		t.Errorf("the prompt is %q, %v", text, err)
	}
}

func TestWhatGatesRunIsOutOfScopeLikeWhatIsProtected(t *testing.T) {
	s := newEnv(t, loop.Definition{Scope: []string{"**"}, Protect: []string{"kept/**"}, Verify: "./check.sh", Guard: "scripts/guard"}, map[string]string{"a.txt": "one\n"})
	scope, err := s.Scope(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a.txt": true, "kept/a": false, "check.sh": false, "scripts/guard": false, "go.sum": false} {
		if got := scope.Judge(path).Allowed; got != want {
			t.Errorf("%s: allowed = %v, want %v", path, got, want)
		}
	}
}

func TestOnlyWhatTheScopeKeepsIsProtectedAndMasked(t *testing.T) {
	s := newEnv(t, loop.Definition{Scope: []string{"src/**", "go.sum"}, Protect: []string{"kept/**", "*.lock"}}, map[string]string{"a.txt": "one\n"})
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Remove(context.WithoutCancel(t.Context())) }()
	paths, err := s.protectedPaths(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{".loops": true, "kept": true, "go.sum": false, "*.lock": false, ".git": false} {
		if got := slices.Contains(paths, filepath.Join(s.Root, name)); got != want {
			t.Errorf("%s: protected = %v, want %v", name, got, want)
		}
	}
	masked, err := s.maskedPaths(t.Context(), k, Use{Masks: []string{"src", "AGENTS.md"}, Unseen: []string{"src/AGENTS.md", "src/a.txt"}})
	if diff := cmp.Diff([]string{filepath.Join(k.Dir, "AGENTS.md"), filepath.Join(k.Dir, "src/AGENTS.md")}, masked); diff != "" || err != nil {
		t.Errorf("masked (-want +got), %v:\n%s", err, diff)
	}
}

func TestAnAgentsHomeIsSeenWhereTheUsersIs(t *testing.T) {
	for tier, want := range map[sandbox.Tier][]sandbox.Bind{
		sandbox.Full:     {{From: "/x", To: "/y"}, {From: "/p/turnenv/home", To: "/home/u", Write: true}},
		sandbox.Landlock: {{From: "/x", To: "/y"}},
	} {
		box := sandbox.Box{Home: "/home/u"}
		around(&box, Use{Binds: []sandbox.Bind{{From: "/x", To: "/y"}}, Home: "/p/turnenv/home"}, tier)
		if diff := cmp.Diff(want, box.Binds); diff != "" || box.Scratch != "/p/turnenv" {
			t.Errorf("%s: scratch %q, binds (-want +got):\n%s", tier, box.Scratch, diff)
		}
	}
	box := sandbox.Box{Home: "/home/u", Scratch: "/p/scratch"}
	if around(&box, Use{}, sandbox.Full); box.Scratch != "/p/scratch" || box.Binds != nil {
		t.Errorf("a use of nobody's changed the box: %+v", box)
	}
}

func TestTheHomeThatProgramsSeeIsAPlaceOrAnInventedOne(t *testing.T) {
	for home, want := range map[string]string{
		"/home/u": "/home/u", "/": "/home/pawl", "u": "/home/pawl", "/home/u/": "/home/pawl", "/home/../u": "/home/pawl", "": "/home/pawl",
	} {
		if got := (Env{Host: Host{Environ: []string{"HOME=" + home}}}).SeenHome(); got != want {
			t.Errorf("HOME=%s: %q, want %q", home, got, want)
		}
	}
}

// captured keeps what it is asked to start.
type captured struct{ spec proc.Spec }

func (c *captured) Run(_ context.Context, s proc.Spec) (proc.Result, error) {
	c.spec = s
	return proc.Result{}, errors.ErrUnsupported
}

func TestNoProgramIsWithoutLimitsOrWithoutItsDependencies(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n"})
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Remove(context.WithoutCancel(t.Context())) }()
	k.path = []string{"/deps/bin"}
	var last captured
	s.Exec = &last
	at, err := s.Place(t.Context(), k, Use{})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Done()
	_, _ = at.Run(t.Context(), proc.Spec{Env: []string{"A=b", "PATH=/usr/bin"}})
	want := proc.Limits{Processes: mostProcesses, Memory: proc.MachineMemory() / 4 * 3, Output: mostOutput, FileBytes: mostFile}
	if diff := cmp.Diff(want, last.spec.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A=b", "PATH=/deps/bin:/usr/bin"}, last.spec.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestALimitIsSaidInWords(t *testing.T) {
	for limit, want := range map[proc.Limit]string{
		proc.ProcessesLimit: "4096 processes", proc.OutputLimit: "256 MiB of output", proc.FileSizeLimit: "16 GiB for one file", proc.TimeLimit: "over after 2s",
		proc.MemoryLimit: "MiB of memory",
	} {
		if got := LimitText(limit, 2*time.Second); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", limit, got, want)
		}
	}
	if got := LimitText("", time.Second); got != "" {
		t.Errorf("no limit: %q", got)
	}
}

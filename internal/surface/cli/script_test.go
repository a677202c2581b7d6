//go:build unix

package cli_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/cli"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// tables is the folder with the migrations of stores. Scripts have folders of their own.
var tables = func() string {
	dir, err := filepath.Abs("../../record/store/migrations")
	if err != nil {
		panic(err)
	}
	return dir
}()

// withPostgreSQL runs tests, and ends the server of those that used one.
type withPostgreSQL struct{ *testing.M }

func (m withPostgreSQL) Run() int { return pgtest.Main(m.M, "fsync=off") }

func TestMain(m *testing.M) {
	testscript.Main(withPostgreSQL{m}, map[string]func(){"pawl": func() { os.Exit(cli.Main()) }, "mcpclient": func() { os.Exit(mcpClient(os.Args[1:])) }})
}

// TestScripts runs the manual: every command, and every kind of bad input, with
// real repositories, real processes and the real Main.
func TestScripts(t *testing.T) {
	t.Parallel()
	cache, flags, full := goEnv(t, "GOCACHE"), goEnv(t, "GOFLAGS"), canConfine(t)
	tested := testSandbox(t)
	binary, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: false,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Vars = append(env.Vars, "PAWL_HOME="+filepath.Join(env.WorkDir, "pawl"), "HOME="+home, "GOCACHE="+cache, "GOFLAGS="+flags, "PAWL="+binary,
				"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=s@example.com",
				"GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=s@example.com", "USER=somebody", "LANG=C.UTF-8")
			env.Vars = append(env.Vars, toolchainVars()...)
			if script := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"); tested != nil && !slices.Contains(newHomes, script) {
				dir := filepath.Join(env.WorkDir, "pawl")
				err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "sandbox.json"), tested, 0o600))
				if err == nil && !slices.Contains(newStores, script) {
					_, err = storetest.SQLiteIn(dir)
				}
				if err != nil {
					return err
				}
			}
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"called": cmdCalled, "silent": cmdSilent,
			"repo": cmdRepo, "exits": cmdExits, "waitfor": cmdWaitFor, "gone": cmdGone, "lines": cmdLines, "same": cmdSame,
			"remember": cmdRemember, "schema": cmdSchema, "older": cmdOlder, "theirs": cmdTheirs, "flood": cmdFlood, "contains": cmdContains, "loop": cmdLoop,
			"json": cmdJSON, "expire": cmdExpire, "utc": cmdUTC, "due": cmdDue, "aged": cmdAged, "setback": cmdSetBack, "freeport": cmdFreePort, "deliver": cmdDeliver, "listens": cmdListens, "waits": cmdWaits, "ended": cmdEnded, "tell": cmdTell, "model": cmdModel,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "cargo", "python":
				return exec.Command(cond, "--version").Run() == nil, nil // A shim may be there without its program.
			case "full":
				return full, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
	})
}

// newHomes are the scripts in which pawl makes its home, and tests the sandbox, itself.
var newHomes = []string{"agent", "audit", "budget", "check", "demo", "doctor", "estimate", "history", "init", "look", "prices", "readonly", "repository", "sandbox", "until"}

// newStores are the others in which pawl makes its store itself, or none.
var newStores = []string{"backup", "memory", "migrate", "notify", "sim"}

// testSandbox is what pawl keeps of a self-test that has passed. Scripts whose homes
// have it need none of their own, which takes longer than many a script.
func testSandbox(t *testing.T) []byte {
	t.Helper()
	home := t.TempDir()
	if sandbox.Check(t.Context(), home, sandbox.Full) != nil {
		return nil // The scripts say for themselves what is wrong.
	}
	text, err := os.ReadFile(filepath.Join(home, "sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// toolchainVars are the variables with which shims find their toolchains although
// HOME is the script's own.
func toolchainVars() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var vars []string
	for name, dir := range map[string]string{"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo", "PYENV_ROOT": ".pyenv"} {
		dir = cmp.Or(os.Getenv(name), filepath.Join(home, dir))
		if _, err := os.Stat(dir); err == nil {
			vars = append(vars, name+"="+dir)
		}
	}
	return vars
}

// canConfine reports whether this host can give programs a root of their own.
func canConfine(t *testing.T) bool {
	t.Helper()
	box := sandbox.Box{Tier: sandbox.Full, Tree: "/srv/tree", Dir: t.TempDir(), Home: "/srv/home"}
	res, err := box.Run(t.Context(), proc.Spec{Argv: []string{"/bin/sh", "-c", "true"}, Dir: box.Tree})
	return err == nil && res.Exit == 0
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// cmdRepo makes the named folder a repository with one commit of what is in it,
// on branch main, and goes there.
func cmdRepo(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, args...)...))
	}
	ts.Check(ts.Chdir(dir))
}

// loopDefinition is a definition that is ready at L2. The given keys and values
// replace its own; the value - removes a key.
func loopDefinition(pairs ...string) string {
	keys := [][2]string{
		{"name", "tidy"},
		{"pattern", "custom"},
		{"tier", "L2"},
		{"cadence", "1h"},
		{"goal", "keep things right"},
		{"scope", "src/**"},
		{"verify", "test -d src"},
		{"guard", "test -f README.md"},
		{"permission_mode", "auto"},
		{"worktree", "true"},
		{"escalation", "what is not clear"},
		{"budget_tokens", "100000"},
		{"kill_switch", ".loops/PAUSED exists"},
		{"land_via", "human"},
		{"agent", "command"},
		{"agent_command", "true"},
		{"sandbox", "none"}, // Most agents and gates of tests are files beside the tree.
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		at := slices.IndexFunc(keys, func(kv [2]string) bool { return kv[0] == pairs[i] })
		if at < 0 {
			at, keys = len(keys), append(keys, [2]string{pairs[i]})
		}
		keys[at][1] = pairs[i+1]
	}
	var b strings.Builder
	for _, kv := range keys {
		if kv[1] != "-" {
			fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
		}
	}
	return b.String()
}

// cmdLoop writes a definition: loop NAME TIER AGENT [KEY VALUE]…, with any more keys.
func cmdLoop(ts *testscript.TestScript, _ bool, args []string) {
	name, tier, agent := args[0], args[1], args[2]
	keys := append([]string{"name", name, "tier", tier, "agent_command", agent, "goal", "keep things right and nothing else"}, args[3:]...)
	file := ts.MkAbs(filepath.Join(".loops", name, "loop.config.yaml"))
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, []byte(loopDefinition(keys...)), 0o644))
}

// cmdModel starts a scripted model, as the environment's only one, at $MODEL: model
// [NAME FILE]…, where a file has the script of requests below $MODEL/s/NAME.
func cmdModel(ts *testscript.TestScript, _ bool, args []string) {
	model := fakemodel.New(fakemodel.Script{})
	for i := 0; i+1 < len(args); i += 2 {
		var script fakemodel.Script
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i+1])), &script))
		model.Set(args[i], script)
	}
	server := httptest.NewServer(model)
	ts.Defer(server.Close)
	ts.Setenv("MODEL", server.URL)
}

// cmdExits runs a program and compares its exit status.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// patience is how long a test waits for another process on a busy machine.
const patience = 20 * time.Second

// cmdWaitFor waits until a file exists and is not empty.
func cmdWaitFor(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no file %s within %s", args[0], patience)
		}
	}
}

// cmdGone fails if a process lives whose command line has a word of the file. In a PID
// namespace a process does not know its own id, so tests know it by such a word.
func cmdGone(ts *testscript.TestScript, _ bool, args []string) {
	for word := range strings.FieldsSeq(ts.ReadFile(args[0])) {
		if pids := processesWithWord(word); len(pids) > 0 {
			ts.Fatalf("process %v (%s) still lives", pids, word)
		}
	}
}

// processesWithWord returns the processes that have a word on their command line.
func processesWithWord(word string) (pids []int) {
	if runtime.GOOS != "linux" {
		return nil
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(line), word) && syscall.Kill(pid, 0) == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// cmdLines compares the number of lines of a file, without comments and empty ones.
func cmdLines(ts *testscript.TestScript, _ bool, args []string) {
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			n++
		}
	}
	if want := args[1]; strconv.Itoa(n) != want {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, want)
	}
}

// cmdContains looks for an exact text in a file, or in the last stdout or stderr.
// With ! the text must be absent.
func cmdContains(ts *testscript.TestScript, neg bool, args []string) {
	if strings.Contains(ts.ReadFile(args[0]), args[1]) == neg {
		ts.Fatalf("%s: %q: found is %v\n%s", args[0], args[1], neg, ts.ReadFile(args[0]))
	}
}

// waitNotice is what a command says on standard error when it has to wait for long, which a busy
// machine makes it do.
var waitNotice = lazyregexp.New(`(?m)^pawl: waiting for .* \(since .*\)\n`)

// cmdSilent fails if the last command wrote anything else than that to standard error.
func cmdSilent(ts *testscript.TestScript, _ bool, _ []string) {
	if said := waitNotice.ReplaceAllString(ts.ReadFile("stderr"), ""); said != "" {
		ts.Fatalf("standard error says %q", said)
	}
}

// cmdJSON fails unless a file, or the last stdout or stderr, is one JSON value.
func cmdJSON(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile(args[0]); !json.Valid([]byte(text)) {
		ts.Fatalf("%s is not JSON:\n%s", args[0], text)
	}
}

// userState is everything of a repository that belongs to the user.
func userState(ts *testscript.TestScript) string {
	var b strings.Builder
	index, err := os.ReadFile(ts.MkAbs(".git/index"))
	ts.Check(err)
	fmt.Fprintf(&b, "index %x\n", sha256.Sum256(index))
	for _, args := range [][]string{
		{"rev-parse", "HEAD"},
		{"symbolic-ref", "-q", "HEAD"},
		{"stash", "list"},
		{"--no-optional-locks", "status", "--porcelain"},
		{"for-each-ref", "refs/heads/main", "refs/tags"},
		{"config", "--list", "--local"},
		{"worktree", "list"},
	} {
		cmd := exec.CommandContext(context.Background(), "git", args...)
		cmd.Dir = ts.MkAbs(".")
		out, _ := cmd.CombinedOutput() // A detached HEAD has no name.
		fmt.Fprintf(&b, "%v\n%s\n", args, out)
	}
	return b.String()
}

// cmdRemember and cmdSame compare what belongs to the user before and after.
// cmdCalled gives the last line of standard output a name in the environment.
func cmdCalled(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	ts.Setenv(args[0], lines[len(lines)-1])
}

func cmdRemember(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("REMEMBERED", userState(ts))
}

func cmdSame(ts *testscript.TestScript, _ bool, _ []string) {
	if before, now := ts.Getenv("REMEMBERED"), userState(ts); before != now {
		ts.Fatalf("the user's repository has changed\nbefore:\n%s\nnow:\n%s", before, now)
	}
}

// cmdSchema pretends that a newer pawl has migrated the store.
func cmdSchema(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES ("+args[1]+", 1)")
	ts.Check(err)
	ts.Check(db.Close())
}

// cmdTheirs makes the database of another program.
func cmdTheirs(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), `CREATE TABLE runs (title TEXT)`)
	ts.Check(errors.Join(err, db.Close()))
}

// cmdUTC fails unless a file, or the last stdout, has times, all of them say that they
// are in UTC, and none is more than ten minutes old: a local time that is wrongly
// marked as UTC would be hours off.
func cmdUTC(ts *testscript.TestScript, neg bool, args []string) {
	file := "stdout"
	if len(args) > 0 {
		file = args[0]
	}
	// The forms in which pawl writes a time, in text and in file names.
	timestamps := regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?[A-Z]+|[+-]\d\d:?\d\d)?|\d{8}T\d{6}(\.\d+)?Z?`)
	found := timestamps.FindAllString(ts.ReadFile(file), -1)
	if neg || len(found) == 0 {
		ts.Fatalf("%s holds %d times", file, len(found))
	}
	for _, text := range found {
		var at time.Time
		err := errors.New("it does not say that it is in UTC")
		for _, layout := range []string{"2006-01-02T15:04:05Z", "2006-01-02 15:04 UTC", "2006-01-02 15:04:05 UTC", "20060102T150405Z"} {
			if err != nil {
				at, err = time.Parse(layout, text) // As UTC, whatever the zone of this machine.
			}
		}
		if err != nil || time.Since(at) > 10*time.Minute {
			ts.Fatalf("%s: %q is not a time of this run in UTC: %v", file, text, err)
		}
	}
}

// cmdTell tells people what has happened, as the daemon does, until so many notices are in
// the store and each was tried.
func cmdTell(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	environ := []string{"PAWL_HOME=" + ts.Getenv("PAWL_HOME"), "HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH")}
	o, err := compose.LoadOptions(config.Settings{}, environ)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	parts, err := compose.New(ctx, o)
	ts.Check(err)
	defer func() { ts.Check(parts.Close()) }()
	watcher, deliverer := parts.Notifying(slog.New(slog.DiscardHandler))
	watcher.Gap, deliverer.Gap = time.Millisecond, time.Millisecond
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { _ = watcher.Run(ctx) })
	all.Go(func() { _ = deliverer.Run(ctx) })
	for told := false; !told; time.Sleep(time.Millisecond) {
		log, err := parts.Notices().Log(ctx, 0, 100)
		ts.Check(err)
		told = len(log) >= want
		for _, l := range log {
			for _, d := range l.Deliveries {
				told = told && (d.State != loop.DeliveryPending || d.Error != "")
			}
		}
		err = parts.Store().View(ctx, func(r *store.Reader) error {
			_, err := r.NoticeCursor(ctx)
			return err
		})
		if told = told && err == nil; ctx.Err() != nil {
			ts.Fatalf("%d notices, want %d: %v", len(log), want, err)
		}
	}
}

// cmdFlood writes a file with so many bytes of noise.
func cmdFlood(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("noise \x01 ", n/8)), 0o644))
}

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestASelfTestThatPassedIsNotMadeAgain(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	if err := Check(t.Context(), home, Full); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "sandbox.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	// No further test can be run: its directory cannot be made.
	if entries, _ := os.ReadDir(home); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	best := time.Hour
	for range 20 {
		began := time.Now()
		if err := Check(t.Context(), home, Full); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	t.Logf("remembered in %v", best)
	if after, err := os.Stat(file); err != nil || !os.SameFile(info, after) {
		t.Errorf("the file was written again: %v, %v", after, err)
	}
}

func TestWhatIsRememberedCountsForThisHostOnly(t *testing.T) {
	key := testIdentity()
	if key == "" {
		t.Fatal("this binary has no identity")
	}
	cases := map[string]struct {
		file string
		mode os.FileMode
		want bool
	}{
		"as it was written":         {writeKeptPass(t, passedSchema, key), 0o600, true},
		"of another binary":         {writeKeptPass(t, passedSchema, key+"1"), 0o600, false},
		"of another schema":         {writeKeptPass(t, "pawl.sandbox/v2", key), 0o600, false},
		"that anybody could write":  {writeKeptPass(t, passedSchema, key), 0o666, false},
		"that is half of it":        {writeKeptPass(t, passedSchema, key)[:40], 0o600, false},
		"that is something else":    {`{"schema":"pawl.sandbox/v1"}`, 0o600, false},
		"that is empty":             {"", 0o600, false},
		"without a key of any kind": {writeKeptPass(t, passedSchema, ""), 0o600, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sandbox.json")
			writeFile(t, file, c.file)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			if got := isPassed(readPassed(file), Full, key); got != c.want {
				t.Errorf("known = %v, want %v", got, c.want)
			}
			if isPassed(readPassed(file), Landlock, key) || isPassed(readPassed(file), Full, "") {
				t.Error("a pass counts for another tier, or for what has no identity")
			}
		})
	}
}

// A pass on another kernel, before the host was started again, for another user or of
// another binary does not count: the self-test is run again. It cannot be run here, so
// that Check succeeds only with a stored pass that counts.
func TestAPassCountsForItsKernelItsStartItsUserAndItsBinaryOnly(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	start, release, uid := strings.TrimSpace(string(boot)), kernelRelease(), os.Geteuid()
	_, self := binaryID()
	if testIdentity() != joinIdentity(start, release, uid, self) || start == "" || release == "" || self == "" {
		t.Fatalf("identity = %q, want start %q, kernel %q, user %d and binary %q", testIdentity(), start, release, uid, self)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		key  string
		want error
	}{
		"as it is":       {joinIdentity(start, release, uid, self), nil},
		"another kernel": {joinIdentity(start, "6.1.0-other", uid, self), context.Canceled},
		"another start":  {joinIdentity("00000000-0000-4000-8000-000000000000", release, uid, self), context.Canceled},
		"another user":   {joinIdentity(start, release, uid+1, self), context.Canceled},
		"another binary": {joinIdentity(start, release, uid, self+"0"), context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, "sandbox.json"), writeKeptPass(t, passedSchema, c.key))
			if err := os.Chmod(filepath.Join(home, "sandbox.json"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Check(ctx, home, Full); !errors.Is(err, c.want) {
				t.Errorf("Check = %v, want %v", err, c.want)
			}
		})
	}
}

func TestABinaryThatWasReplacedIsAnotherOne(t *testing.T) {
	dir := t.TempDir()
	file, then := filepath.Join(dir, "pawl"), time.Unix(1_700_000_000, 0)
	put := func(name, text string, at time.Time) {
		t.Helper()
		writeFile(t, name, text)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(file, "one", then)
	was := fileID(file)
	if was == "" || fileID(file) != was {
		t.Fatalf("the same file is %q and then %q", was, fileID(file))
	}
	seen := map[string]string{was: "as it was"}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"another size", func() { put(file, "longer", then) }},
		{"another time", func() { put(file, "one", then.Add(time.Nanosecond)) }},
		{"another file of the same size and time", func() {
			put(file+".new", "two", then)
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		c.change()
		if had, ok := seen[fileID(file)]; ok {
			t.Errorf("%s is taken for the file %s", c.name, had)
		}
		seen[fileID(file)] = "with " + c.name
	}
	if id := fileID(filepath.Join(dir, "none")); id != "" {
		t.Errorf("a file that is not there is %q", id)
	}
}

func writeKeptPass(t *testing.T, schema, key string) string {
	t.Helper()
	text, err := json.Marshal(passedFile{schema, map[Tier]passedTest{Full: {Key: key, Result: Result{Tier: Full}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATierThatTheHostDoesNotHaveIsAFault(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	err := Check(t.Context(), home, Seatbelt)
	fault, ok := errors.AsType[*loop.Fault](err)
	if !ok || fault.Exit != loop.ExitMissing || fault.Fix == "" {
		t.Errorf("Check = %v", err)
	}
	if entries, _ := os.ReadDir(home); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	for _, tier := range []Tier{None, External, ""} {
		if err := Check(t.Context(), filepath.Join(home, "nowhere"), tier); err != nil {
			t.Errorf("Check of %q = %v", tier, err)
		}
	}
}

func TestASelfTestThatIsInterruptedProvesNothing(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Check(ctx, home, Full); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v", err)
	}
	if entries, _ := os.ReadDir(home); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestALongHomeIsNoReasonToRefuse(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 12))
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Test(t.Context(), Full, home); err != nil {
		t.Error(err)
	}
}

func TestManyWhoNeedTheSelfTestAtOnceMakeItOnce(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	var all errgroup.Group
	for range 20 {
		all.Go(func() error { return Check(t.Context(), home, Full) })
	}
	done := make(chan error, 1)
	go func() { done <- all.Wait() }()
	for made := map[string]bool{}; ; time.Sleep(time.Millisecond) {
		// Each has a directory of its own as long as it lasts.
		at, _ := filepath.Glob(filepath.Join(home, "selftest-*"))
		for _, dir := range at {
			made[dir] = true
		}
		select {
		case err := <-done:
			if err != nil || len(made) != 1 {
				t.Errorf("%d self-tests were made, %v", len(made), err)
			}
			return
		default:
		}
	}
}

// The cron of many loops starts many processes at once after an upgrade.
func TestAProcessWaitsForTheSelfTestOfAnotherAndMakesNoneItself(t *testing.T) {
	tested, home := t.TempDir(), t.TempDir()
	open755(t, tested)
	open755(t, home)
	if err := Check(t.Context(), tested, Full); err != nil {
		t.Fatal(err)
	}
	done := waitForTurn(t.Context(), home) // The other process has begun.
	checked := make(chan error, 1)
	go func() { checked <- Check(t.Context(), home, Full) }()
	select {
	case err := <-checked:
		t.Errorf("Check = %v while another process makes the test, want that it waits", err)
	case <-time.After(300 * time.Millisecond):
	}
	text, err := os.ReadFile(filepath.Join(tested, "sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "sandbox.json")
	writeFile(t, file, string(text))
	other, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if err := <-checked; err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(file); err != nil || !os.SameFile(other, now) {
		t.Errorf("the test was made again: %v, %v", now, err)
	}
}

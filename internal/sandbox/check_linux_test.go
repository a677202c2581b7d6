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

	"github.com/pawl-run/pawl/internal/loop"
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
	// Nothing may be tried any more: there is no place for it.
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
	key := identity()
	if key == "" {
		t.Fatal("this binary has no identity")
	}
	cases := map[string]struct {
		file string
		mode os.FileMode
		want bool
	}{
		"as it was written":         {kept(t, memorySchema, key), 0o600, true},
		"of another binary":         {kept(t, memorySchema, key+"1"), 0o600, false},
		"of another schema":         {kept(t, "pawl.sandbox/v2", key), 0o600, false},
		"that anybody could write":  {kept(t, memorySchema, key), 0o666, false},
		"that is half of it":        {kept(t, memorySchema, key)[:40], 0o600, false},
		"that is something else":    {`{"schema":"pawl.sandbox/v1"}`, 0o600, false},
		"that is empty":             {"", 0o600, false},
		"without a key of any kind": {kept(t, memorySchema, ""), 0o600, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sandbox.json")
			write(t, file, c.file)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			p, ok := remembered(file)[Full]
			if got := ok && p.Key == key; got != c.want {
				t.Errorf("remembered = %v, want %v", got, c.want)
			}
		})
	}
}

func kept(t *testing.T, schema, key string) string {
	t.Helper()
	text, err := json.Marshal(memory{schema, map[Tier]pass{Full: {Key: key, Result: Result{Tier: Full}}}})
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
		at, _ := filepath.Glob(filepath.Join(home, "trial-*"))
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

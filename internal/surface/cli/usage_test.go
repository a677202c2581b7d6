package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// result is what one command wrote, and its exit status.
type result struct {
	status   int
	out, err string
}

// runPawl runs one command in a folder, with a home below it.
func runPawl(t *testing.T, dir string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	status := Run(t.Context(), Env{
		In: strings.NewReader(""), Out: &out, Err: &err, Args: args, Environ: []string{"PAWL_HOME=" + filepath.Join(dir, "home")}, Dir: dir,
		Program: "pawl", Width: func() int { return 80 }, Now: time.Now, Exit: func(int) {},
	})
	return result{status, out.String(), err.String()}
}

// writeDefinition writes a definition that is ready at L1, with more lines below it.
func writeDefinition(t *testing.T, dir, more string) string {
	t.Helper()
	path := filepath.Join(dir, ".loops", "x", "loop.config.yaml")
	text := "name: x\npattern: pr-watch\ntier: L1\npermission_mode: dontAsk\ncadence: 1h\ngoal: look\nescalation: all\n" +
		"kill_switch: .loops/PAUSED\nbudget_tokens: 200000\nscope:\n  - src/**\n" + more
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnInvalidFlagIsAUsageError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"a cache time that no vendor has":     {[]string{"estimate", "--cache-ttl", "2h"}, 2},
		"a cache time":                        {[]string{"estimate", "--cache-ttl", "1h"}, 0},
		"a cadence in weeks":                  {[]string{"estimate", "--cadence", "1w"}, 4},
		"a word for a cadence":                {[]string{"estimate", "--cadence", "@daily"}, 4},
		"two units in a cadence":              {[]string{"estimate", "--cadence", "1h30m"}, 4},
		"six fields":                          {[]string{"estimate", "--cadence", "0 0 9 * * 1"}, 4},
		"five fields":                         {[]string{"estimate", "--cadence", "0 9 * * 1-5"}, 0},
		"an invalid cadence that is not used": {[]string{"estimate", "--cadence", "1w", "--runs-per-day", "1"}, 0},
		"an empty cadence":                    {[]string{"new", "y", "--cadence", ""}, 2},
		"an empty tier":                       {[]string{"new", "y", "--tier", ""}, 2},
		"an empty pattern":                    {[]string{"new", "y", "--pattern", ""}, 2},
		"an empty folder":                     {[]string{"new", "y", "--dir", ""}, 2},
		"a score that no loop can have":       {[]string{"check", "x", "--min", "99999999999999999999"}, 10},
		"a score with a sign":                 {[]string{"check", "x", "--min", "+70"}, 2},
		"no score":                            {[]string{"check", "x", "--min", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeDefinition(t, dir, "")
			if got := runPawl(t, dir, c.args...); got.status != c.want {
				t.Errorf("exit status %d, want %d; stderr: %s", got.status, c.want, got.err)
			}
		})
	}
}

func TestADefinitionMaySayMoreThanAFlag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeDefinition(t, dir, "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("cadence: 1h"), []byte("cadence: 1d12h"), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runPawl(t, dir, "estimate", "x"); got.status != 0 || !strings.Contains(got.out, "1d12h  (0.666667 runs/day)") {
		t.Errorf("exit status %d, printed %s%s", got.status, got.out, got.err)
	}
}

func TestNoticesAreOnStandardErrorBesideJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeDefinition(t, dir, "a stray line\ncolour: red\n")
	for command, want := range map[string][]string{
		"check":    {"read line by line", "colour: unknown key"},
		"doctor":   {"read line by line"},
		"estimate": {"read line by line"},
	} {
		for _, args := range [][]string{{command, "x"}, {command, "x", "--json"}} {
			got := runPawl(t, dir, args...)
			if got.status != 0 {
				t.Errorf("%v: exit status %d: %s", args, got.status, got.err)
			}
			for _, text := range want {
				if n := strings.Count(got.err, text); n != 1 {
					t.Errorf("%v: %q is %d times on standard error:\n%s", args, text, n, got.err)
				}
			}
			if len(args) == 3 && !json.Valid([]byte(got.out)) {
				t.Errorf("%v: no JSON: %s", args, got.out)
			}
		}
	}
}

func TestAKeyIsExplainedInWordsOfOneCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	got := runPawl(t, dir, "explain", "tier", "--json")
	var keys map[string]any
	if err := json.Unmarshal([]byte(got.out), &keys); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	for key := range keys {
		if key != strings.ToLower(key) {
			t.Errorf("key %q is not in lower case", key)
		}
	}
	if keys["name"] != "tier" || keys["schema"] != "pawl.key/v1" {
		t.Errorf("explain tier printed %s", got.out)
	}
}

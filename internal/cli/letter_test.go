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

// said is what one command wrote, in a folder of its own.
type said struct {
	status   int
	out, err string
}

func say(t *testing.T, dir string, args ...string) said {
	t.Helper()
	var out, err bytes.Buffer
	status := Run(t.Context(), Env{
		In: strings.NewReader(""), Out: &out, Err: &err, Args: args, Environ: []string{"PAWL_HOME=" + filepath.Join(dir, "home")}, Dir: dir,
		Program: "pawl", Width: func() int { return 80 }, Now: time.Now, Exit: func(int) {},
	})
	return said{status, out.String(), err.String()}
}

// define writes a definition that is ready at L1, with more lines below it.
func define(t *testing.T, dir, more string) string {
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

func TestWhatIsWrongWithAFlagIsUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"no such time to keep a cache":  {[]string{"estimate", "--cache-ttl", "2h"}, 2},
		"a time to keep a cache":        {[]string{"estimate", "--cache-ttl", "1h"}, 0},
		"a cadence in weeks":            {[]string{"estimate", "--cadence", "1w"}, 4},
		"a word for a cadence":          {[]string{"estimate", "--cadence", "@daily"}, 4},
		"two units in a cadence":        {[]string{"estimate", "--cadence", "1h30m"}, 4},
		"six fields":                    {[]string{"estimate", "--cadence", "0 0 9 * * 1"}, 4},
		"five fields":                   {[]string{"estimate", "--cadence", "0 9 * * 1-5"}, 0},
		"a cadence that does not count": {[]string{"estimate", "--cadence", "1w", "--runs-per-day", "1"}, 0},
		"an empty cadence":              {[]string{"new", "y", "--cadence", ""}, 2},
		"an empty tier":                 {[]string{"new", "y", "--tier", ""}, 2},
		"an empty pattern":              {[]string{"new", "y", "--pattern", ""}, 2},
		"an empty folder":               {[]string{"new", "y", "--dir", ""}, 2},
		"a score that none can have":    {[]string{"check", "x", "--min", "99999999999999999999"}, 10},
		"a score with a sign":           {[]string{"check", "x", "--min", "+70"}, 2},
		"no score":                      {[]string{"check", "x", "--min", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			define(t, dir, "")
			if got := say(t, dir, c.args...); got.status != c.want {
				t.Errorf("exit status %d, want %d; it said %s", got.status, c.want, got.err)
			}
		})
	}
}

func TestADefinitionMaySayMoreThanAFlag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := define(t, dir, "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("cadence: 1h"), []byte("cadence: 1d12h"), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := say(t, dir, "estimate", "x"); got.status != 0 || !strings.Contains(got.out, "1d12h  (0.666667 runs/day)") {
		t.Errorf("exit status %d, printed %s%s", got.status, got.out, got.err)
	}
}

func TestNoticesStandOnStandardErrorBesideJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	define(t, dir, "a stray line\ncadense: 2h\n")
	for command, want := range map[string][]string{
		"check":    {"read line by line", "cadense: unknown key; did you mean cadence?"},
		"doctor":   {"read line by line"},
		"estimate": {"read line by line"},
	} {
		for _, args := range [][]string{{command, "x"}, {command, "x", "--json"}} {
			got := say(t, dir, args...)
			if got.status != 0 {
				t.Errorf("%v: exit status %d: %s", args, got.status, got.err)
			}
			for _, text := range want {
				if n := strings.Count(got.err, text); n != 1 {
					t.Errorf("%v: %q stands %d times on standard error:\n%s", args, text, n, got.err)
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
	got := say(t, dir, "explain", "tier", "--json")
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

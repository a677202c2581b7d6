package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// living lists the processes whose command line holds the mark, zombies not.
func living(t *testing.T, mark string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(line), mark) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// untilUp waits for a child that lives.
const untilUp = "while [ ! -e up ]; do sleep 0.01; done"

func TestNothingThatAGateStartedOutlivesIt(t *testing.T) {
	if m := (proc.Tree{}).Method(); m == proc.Group {
		t.Fatalf("this host holds process trees together by %s only, which no gate may rely on", m)
	}
	for name, c := range map[string]struct {
		line    string // $MARK is the time to sleep
		timeout time.Duration
		pass    bool
	}{
		"in the background":           {"sh -c ': > up; sleep '$MARK & " + untilUp + "; exit 0", time.Minute, true},
		"in a session of its own":     {"setsid sh -c ': > up; sleep '$MARK & " + untilUp + "; exit 0", time.Minute, true},
		"a grandchild without parent": {"(setsid sh -c ': > up; sleep '$MARK &) & " + untilUp + "; exit 1", time.Minute, false},
		"deaf, and out of time":       {"trap '' TERM; setsid sleep $MARK & sleep $MARK", 300 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("301.%d%09d", os.Getpid(), time.Now().UnixNano()%1e9)
			cmd := command(t, c.line)
			cmd.Env, cmd.Tag, cmd.Timeout = append(cmd.Env, "MARK="+mark, "PAWL_RUN="+mark), "PAWL_RUN="+mark, c.timeout
			g, err := runJob(t.Context(), on(proc.Tree{}, cmd))
			if err != nil {
				t.Fatal(err)
			}
			if left := living(t, mark); len(left) > 0 {
				t.Errorf("still alive: %v", left)
			}
			if g.Pass != c.pass {
				t.Errorf("result = %+v, want pass %v", g, c.pass)
			}
		})
	}
}

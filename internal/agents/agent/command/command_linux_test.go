package command_test

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

func TestAGrandchildThatDetachedItselfIsGoneWithTheTurn(t *testing.T) {
	if m := (proc.Tree{}).Method(); m == proc.Group {
		t.Fatalf("this host holds process trees together by %s only, which no agent may be run by", m)
	}
	const daemon = "(setsid sh -c \"trap '' TERM HUP INT; : > up; sleep $MARK; sleep $MARK\" > /dev/null 2>&1 < /dev/null &) & " +
		"while [ ! -e up ]; do sleep 0.01; done; "
	for name, c := range map[string]struct {
		script  string
		timeout time.Duration
		ended   proc.Ended
	}{
		"of an agent that ends":             {daemon + "exit 0", time.Minute, proc.Exited},
		"of an agent that fails":            {daemon + "exit 1", time.Minute, proc.Exited},
		"of an agent that is killed":        {daemon + "kill -KILL $$", time.Minute, proc.Signaled},
		"of an agent that runs out of time": {daemon + "sleep 60", time.Second, proc.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := fmt.Sprintf("302.%d%09d", os.Getpid(), time.Now().UnixNano()%1e9)
			r, _ := request(t, c.script)
			r.Tag, r.Timeout = "PAWL_RUN="+mark, c.timeout
			r.Env = append(r.Env, r.Tag, "MARK="+mark)
			if res := turn(t, r); res.Ended != c.ended {
				t.Errorf("result = %+v, want %s", res, c.ended)
			}
			if _, err := os.Stat(filepath.Join(r.Dir, "up")); err != nil {
				t.Errorf("the grandchild never lived: %v", err)
			}
			if left := living(t, mark); len(left) > 0 {
				t.Errorf("still alive: %v", left)
			}
		})
	}
}

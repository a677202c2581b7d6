package compose_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A session that is killed is an attempt, also if the store is lost with its process: after
// three of them the task is blocked, and the next session works on another one.
func TestABootSessionThatIsKilledThreeTimesBlocksItsTask(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"with the same store": false, "with a new store each time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newBootFixture(t, "")
			for n := range bootstate.MostAttempts {
				killed.hit(s, "run", "engine.act.after:1")
				tasks, wrong := bootstate.FormatSchemas().ReadTodo([]byte(readFile(t, filepath.Join(s.root, bootlink.DefaultTasks))))
				if task, _ := tasks.Task("one"); len(wrong) > 0 || task.Status != bootstate.StatusInProgress {
					t.Fatalf("session %d: the task is %q: %v", n+1, task.Status, wrong)
				}
				if lost {
					s.home = newHome(t)
				}
			}
			if v := s.pawl("run"); v.Run.Outcome != loop.OutcomeDone || v.Run.Iterations[0].Step != "Write two" {
				t.Errorf("the next run is %s %s %q with %+v, want the second task done", v.Run.Outcome, v.Run.Reason, v.Run.Detail, v.Run.Iterations)
			}
			s.checkBoot()
			tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(s.git("show", "main:"+bootlink.DefaultTasks)))
			if task, _ := tasks.Task("one"); task.Status != bootstate.StatusBlocked || !strings.HasPrefix(task.BlockedReason, "3 sessions in a row failed at it; the last one: ") {
				t.Errorf("the task is %s: %q", task.Status, task.BlockedReason)
			}
			if text := s.git("show", "main:"+bootlink.DefaultChangelog); strings.Count(text, "- one: not finished: ") < bootstate.MostAttempts-1 || strings.Count(text, "- one: blocked: ") != 1 {
				t.Errorf("the changelog does not have each session:\n%s", text)
			}
		})
	}
}

package tasks_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestTheStepsOfATasksFileAreListedForOtherFormats(t *testing.T) {
	listed, _ := tasks.Format(time.Now).Tasks.Parse(`# Tasks

## Active Tasks

- **Step 1**: Write the parser
  - Status: done
  - Priority: critical
  - Result: it parses
- **Step 2**: Test it
  - Status: in-progress
  - Priority: high
  - Depends on: step-1, step-9
  - Tags: tests, go
  - From: boss
- **Step 3**: Wait
  - Status: blocked
  - Blocked reason: no token
- **Step 4**: Leave it
  - Status: cancelled
- **Step 5**: After it
  - Status: open
  - Depends on: step-4
`)
	want := []loop.ListedTask{
		{Key: "step-1", Line: 5, Title: "Write the parser", State: loop.StepDone, Status: "done", Priority: "critical", Number: 1, Result: "it parses"},
		{Key: "step-2", Line: 9, Title: "Test it", State: loop.StepClaimed, Status: "in-progress", Priority: "high", Number: 2, DependsOn: []string{"step-1", "step-9"}, Tags: []string{"tests", "go"}, From: "boss"},
		{Key: "step-3", Line: 15, Title: "Wait", State: loop.StepBlocked, Status: "blocked", Priority: "medium", Number: 3, BlockedReason: "no token"},
		{Key: "step-4", Line: 18, Title: "Leave it", Status: "cancelled", Priority: "medium", Number: 4},
		{Key: "step-5", Line: 20, Title: "After it", State: loop.StepOpen, Status: "open", Priority: "medium", Number: 5, DependsOn: []string{"step-4"}},
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, wrong := tasks.Format(time.Now).Tasks.Parse("- **Step 1**: a\n- **Step 1**: b\n"); len(wrong) == 0 || wrong[0].Line != 2 {
		t.Errorf("a key that is there twice: %v", wrong)
	}
}

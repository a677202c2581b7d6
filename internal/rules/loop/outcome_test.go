package loop_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestEveryOutcomeHasTheMeaningThatUsersWereTold(t *testing.T) {
	// Scripts and log readers depend on these words and numbers. A line may be
	// added; a line that stands is never changed.
	want := map[loop.Outcome]loop.Meaning{
		"quiet":         {Exit: 0, Action: "none", Log: "quiet"},
		"reported":      {Exit: 0, Action: "reported", Log: "reported"},
		"proposed":      {Exit: 0, Action: "proposed", Log: "branch-proposed"},
		"landed":        {Exit: 0, Action: "landed", Log: "landed"},
		"done":          {Exit: 0, Action: "none", Log: "done"},
		"waiting_human": {Exit: 13, Action: "reported", Log: "waiting"},
		"escalated":     {Exit: 13, Action: "reported", Log: "escalated"},
		"blocked":       {Exit: 11, Action: "none", Log: "blocked"},
		"failed":        {Exit: 11, Action: "none", Log: "failed"},
		"gave_up":       {Exit: 11, Action: "none", Log: "gave_up"},
		"budget":        {Exit: 12, Action: "none", Log: "budget"},
		"refused":       {Exit: 14, Action: "none", Log: "refused"},
		"paused":        {Exit: 15},
		"interrupted":   {Exit: 11, Action: "none", Log: "interrupted"},
	}
	for outcome, meaning := range want {
		meaning.Outcome = outcome
		if diff := cmp.Diff(meaning, outcome.Meaning()); diff != "" {
			t.Errorf("meaning of %s (-want +got):\n%s", outcome, diff)
		}
	}
	if len(loop.Meanings) != len(want) {
		t.Errorf("the table has %d outcomes, want %d", len(loop.Meanings), len(want))
	}
}

func TestEveryDeclaredOutcomeStandsInTheTableOnce(t *testing.T) {
	var listed []string
	for _, m := range loop.Meanings {
		listed = append(listed, string(m.Outcome))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(constants(t, "outcome.go", "Outcome"), listed); diff != "" {
		t.Errorf("outcomes (-declared +in the table):\n%s", diff)
	}
}

func TestAnUnknownOutcomeIsNeverSuccess(t *testing.T) {
	for _, outcome := range []loop.Outcome{"", "Landed", "ok", "success"} {
		if m := outcome.Meaning(); outcome.IsSuccess() || m.Exit != loop.ExitNoSuccess {
			t.Errorf("%q: success %v with exit %d, want no success with %d", outcome, outcome.IsSuccess(), m.Exit, loop.ExitNoSuccess)
		}
	}
}

func TestSuccessIsExactlyExitZero(t *testing.T) {
	for _, m := range loop.Meanings {
		if got, want := m.Outcome.IsSuccess(), m.Exit == 0; got != want {
			t.Errorf("%s: Success() = %v with exit %d", m.Outcome, got, m.Exit)
		}
	}
}

func TestEveryDeclaredPhaseStandsInTheCycleOnce(t *testing.T) {
	var listed []string
	for _, p := range loop.Phases {
		listed = append(listed, string(p))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(constants(t, "phase.go", "Phase"), listed); diff != "" {
		t.Errorf("phases (-declared +in the cycle):\n%s", diff)
	}
	for i, p := range loop.Phases {
		for j, q := range loop.Phases {
			if got, want := p.Before(q), i < j; got != want {
				t.Errorf("%s before %s = %v, want %v", p, q, got, want)
			}
		}
	}
}

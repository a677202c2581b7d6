package board_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestTheDocumentHasTheseNumbersAndReasons(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/boards.md")
	if err != nil {
		t.Fatal(err)
	}
	m := board.Mind{}.Erred(time.Unix(0, 0)).Erred(time.Unix(0, 0)).Erred(time.Unix(0, 0))
	for _, line := range []string{
		fmt.Sprintf("score = %g × urgency + %g × expertise + %g × pending", board.UrgencyWeight, board.ExpertiseWeight, board.PendingWeight),
		fmt.Sprintf("| title, name, role | %d characters, one line |", board.MostTitle),
		fmt.Sprintf("| description, acceptance criteria | %d characters |", board.MostText),
		fmt.Sprintf("| tags, skills | %d, of %d characters each |", board.MostTags, board.MostTag),
		fmt.Sprintf("| comment, message, entry of a log | %d characters |", board.MostContent),
		fmt.Sprintf("| log of a task | %d entries;", board.MostLog),
		fmt.Sprintf("| resource | %d characters |", board.MostResource),
		fmt.Sprintf("| recent tasks, reflections of an agent | %d;", board.MostRemembered),
		fmt.Sprintf("| boards of an agent | %d |", board.MostBoards),
		fmt.Sprintf("; %s if nothing is said |", strings.TrimSuffix(board.DefaultInterval.String(), "0s")),
		fmt.Sprintf("after %d errors in a row an agent calls no model for %d minutes", m.WorkingMemory.ErrorCount, m.CoolUntil.Time().Unix()/60),
		fmt.Sprintf("A chain of answers ends after %d messages; two agents send each other %d messages an hour", board.MostDepth, board.MostAnHour),
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/boards.md lacks %q", line)
		}
	}
	for _, r := range []loop.Reason{
		loop.ReasonStepClaimed, loop.ReasonAssigned, loop.ReasonOrdered, loop.ReasonNotReady, loop.ReasonQuestion, loop.ReasonParent, loop.ReasonColumnFull, loop.ReasonAgentTask, loop.ReasonCoolOff, loop.ReasonDormant,
		loop.ReasonApproval,
	} {
		if !strings.Contains(string(text), "`"+string(r)+"`") {
			t.Errorf("docs/boards.md lacks the reason %s", r)
		}
	}
}

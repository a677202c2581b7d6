package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// exitMeanings says what each exit status means. A number never changes its
// meaning.
var exitMeanings = []struct {
	status  int
	meaning string
}{
	{loop.ExitOK, "ok, also for an empty list"},
	{loop.ExitError, "an error that no other number names"},
	{loop.ExitUsage, "the command line is wrong"},
	{loop.ExitNotFound, "no such loop, run, branch or repository"},
	{loop.ExitUnreadable, "a file or repository cannot be read"},
	{loop.ExitMissing, "a program or driver is missing, the target exists, or the platform is not supported"},
	{loop.ExitNotReady, "the definition has errors"},
	{loop.ExitNoSuccess, "the run ended without success"},
	{loop.ExitBudget, "the budget is used up"},
	{loop.ExitWaiting, "a human has to answer"},
	{loop.ExitRefused, "a guardrail refused it"},
	{loop.ExitPaused, "a kill switch is set"},
	{loop.ExitHeld, "another process holds it"},
	{loop.ExitInterrupted, "interrupted"},
}

func newExitStatusHelp() *cobra.Command {
	var b strings.Builder
	b.WriteString("Every command uses the same numbers.\n\n")
	for _, s := range exitMeanings {
		fmt.Fprintf(&b, "  %3d  %s\n", s.status, s.meaning)
	}
	b.WriteString("\nWhat `pawl run` exits with for each outcome of a run:\n\n")
	for _, m := range loop.Meanings {
		fmt.Fprintf(&b, "  %3d  %s\n", m.Exit, m.Outcome)
	}
	return &cobra.Command{Use: "exit-status", Short: "What the exit statuses mean", Long: b.String()}
}

package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/loop"
)

// asks reports whether there is somebody to answer.
func (a *app) asks() bool { return a.Answers && a.Terminal && !a.json }

// answer prints a question and reads a line. It reports false if there is none.
func (a *app) answer(question string) (string, bool) {
	if a.typed == nil {
		a.typed = bufio.NewReader(a.In)
	}
	_, _ = fmt.Fprint(a.Out, question)
	line, err := a.typed.ReadString('\n')
	return strings.TrimSpace(line), err == nil
}

// confirm asks for a yes. Anything else is a no.
func (a *app) confirm(question string) bool {
	answer, _ := a.answer(question + " [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes"
}

// consent asks before something is done that lands, pushes, restores, removes or
// overwrites. It is nil if --yes was given or somebody on a terminal says yes.
// Piped text is not an answer. Does says what is done, command how to do it.
func (a *app) consent(yes bool, does, command string) error {
	switch {
	case yes:
		return nil
	case !a.asks():
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "nothing was done: this " + does, Why: "without a terminal nobody can be asked, and piped text is not an answer: --yes is required",
			Fix: command + " --yes",
		}
	case !a.confirm("This " + cleanLine(does) + ". Go on?"):
		return &loop.Fault{Exit: loop.ExitWaiting, What: "nothing was done", Fix: command}
	}
	return nil
}

// yesFlag lets a command that asks for consent go on without asking.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; without a terminal it is required")
}

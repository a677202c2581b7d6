package cli

import (
	"bufio"
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// canAsk reports whether somebody is there to answer.
func (a *app) canAsk() bool { return a.Answers && a.Terminal && !a.json }

// ask prints a question and reads a line. It reports false at the end of the input.
func (a *app) ask(question string) (answer string, ok bool) {
	if a.input == nil {
		a.input = bufio.NewReader(a.In)
	}
	a.printer().Text(question)
	line, err := a.input.ReadString('\n')
	return strings.TrimSpace(line), err == nil
}

// confirm asks a question. Any answer except yes counts as no.
func (a *app) confirm(question string) bool {
	answer, _ := a.ask(question + " [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes"
}

// requireConsent asks before something lands, is pushed, restored, removed or
// overwritten. It returns nil if --yes was given or somebody on a terminal says
// yes; piped text is not an answer. Does says what will happen, command how to do
// it.
func (a *app) requireConsent(yes bool, does, command string) error {
	switch {
	case yes:
		return nil
	case !a.canAsk():
		return &loop.Fault{
			Exit: loop.ExitUsage, What: "nothing was done: this " + does, Why: "without a terminal nobody can be asked, and piped text is not an answer: --yes is required",
			Fix: command + " --yes",
		}
	case !a.confirm("This " + output.CleanLine(does) + ". Go on?"):
		return &loop.Fault{Exit: loop.ExitWaiting, What: "nothing was done", Fix: command}
	}
	return nil
}

// addYesFlag adds the flag of a command that asks for consent.
func addYesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; without a terminal it is required")
}

// requireHuman refuses the answers of agents: a process inside of a run knows the
// run's id.
func (a *app) requireHuman() error {
	if run := a.lookupEnv("PAWL_RUN"); run != "" {
		return &loop.Fault{
			Exit: loop.ExitRefused, What: "an agent cannot answer", Why: "this process is part of run " + run, Fix: "let a human answer, outside of the run",
		}
	}
	return nil
}

// actor is who uses the command: a person, by the given name or by their account,
// or the agent of a run.
func (a *app) actor(name string) loop.Actor {
	if run := a.lookupEnv("PAWL_RUN"); run != "" {
		return loop.Actor{Who: run, Role: loop.RoleAgent, From: "cli"}
	}
	who := cmp.Or(name, a.lookupEnv("USER"), a.lookupEnv("LOGNAME"), "somebody")
	if host, err := os.Hostname(); err == nil && name == "" {
		who += "@" + host
	}
	return loop.Actor{Who: who, Role: loop.RoleHuman, From: "cli"}
}

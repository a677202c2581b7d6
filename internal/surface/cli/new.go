package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func newNewCommand(a *app) *cobra.Command {
	var r loops.ScaffoldRequest
	var name, tier string
	var patterns strings.Builder
	patterns.WriteString("The patterns:\n")
	for _, p := range loops.Patterns() {
		fmt.Fprintf(&patterns, "\n  %-17s %s", p.Name, p.Does)
	}
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Make a new loop from a pattern", Args: rangeArgs(0, 1), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Make the folder of a new loop: its definition, STATE.md, run-log.md and run.md. It needs no repository.

The path of the definition is printed on standard output. Start every loop at L1, which only reports.

` + patterns.String(),
		Example: "  pawl new ci-watch --pattern ci-watch --cadence 15m\n  pawl new docs --pattern freshness --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"name", "pattern", "tier", "cadence", "dir"} {
				if f := cmd.Flag(flag); f.Changed && f.Value.String() == "" {
					return usageError(cmd, "--"+flag+" is given and empty")
				}
			}
			if len(args) == 1 && name != "" && args[0] != name {
				return usageError(cmd, "two names are given: "+quoteArg(args[0])+" and --name "+quoteArg(name))
			}
			if r.Name = name; len(args) == 1 {
				r.Name = args[0]
			}
			if r.Name == "" {
				return usageError(cmd, "pawl new needs an argument: NAME")
			}
			r.Tier, r.Work, r.Now = loop.Tier(tier), a.workDir(), a.Now()
			// If only one agent of this machine has a login, it is named, so that what is
			// written runs.
			agentNote := ""
			switch ready := setup.LoggedIn(cmd.Context(), compose.Prober(a.Environ, a.Now())); len(ready) {
			case 0:
			case 1:
				r.Agent, agentNote = ready[0], describeOnlyAgent(ready[0])
			default:
				agentNote = "no agent is named; write agent: with one of " + strings.Join(ready, ", ")
			}
			made, err := loops.Scaffold(cmd.Context(), a.formats(), r)
			if err != nil {
				return err
			}
			made.Note = joinNonEmpty("\n", made.Note, agentNote)
			return printScaffolded(a.printer(), made)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "the name, instead of the argument")
	f.StringVar(&r.Pattern, "pattern", loops.CustomPattern, "a `pattern` of the catalogue")
	f.StringVar(&tier, "tier", "L1", "L1 reports, L2 proposes a branch, L3 lands what it may")
	f.StringVar(&r.Cadence, "cadence", "1h", "how often it fires: 10m, 6h, 1d or five cron fields")
	f.StringVar(&r.Dir, "dir", ".loops", "the `folder` of loops")
	f.BoolVar(&r.DryRun, "dry-run", false, "print the definition and write nothing")
	f.BoolVar(&r.Force, "force", false, "write over the four files in a folder that is not empty; copies are kept beside them")
	completeFlag(cmd, "pattern", completePatterns())
	completeFlag(cmd, "tier", offerWords("L1\treports", "L2\tproposes a branch", "L3\tlands what it may"))
	completeFlag(cmd, "cadence", offerWords("10m", "1h", "6h", "1d", "0 9 * * 1-5"))
	return cmd
}

func describeOnlyAgent(name string) string {
	return "agent: " + name + ", the only one with a login on this machine"
}

func printScaffolded(p *output.Printer, made loops.Scaffolded) error {
	if p.JSON {
		return p.WriteJSON(made)
	}
	p.Line("%s", output.Clean(made.Path))
	if !made.Written {
		p.Line("%s", strings.TrimRight(output.Clean(made.Config()), "\n"))
	}
	if made.Note != "" {
		p.Note("note: %s", output.Indent(made.Note, "  "))
	}
	return p.Err()
}

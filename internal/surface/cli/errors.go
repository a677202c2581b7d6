package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// endedError is a run that ended without success.
type endedError struct{ view runs.View }

func (e *endedError) Error() string {
	return fmt.Sprintf("%s ended %s", runName(e.view), e.view.Outcome)
}

// exitStatus maps the error of a command to its exit status.
func exitStatus(ctx context.Context, err error) int {
	if err == nil {
		return loop.ExitOK
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return loop.ExitInterrupted
	}
	if e, ok := errors.AsType[*endedError](err); ok {
		return loop.ExitStatus(e.view.Outcome, e.view.Reason)
	}
	if status, ok := errors.AsType[quietError](err); ok {
		return int(status)
	}
	return verb.Explain(err).Exit
}

// printError prints what failed, why, and the fix.
func printError(w io.Writer, err error, status int) {
	f := explainError(err)
	if status == loop.ExitInterrupted && f.Why == "" {
		f.Why = "it was interrupted"
	}
	_, _ = fmt.Fprintf(w, "pawl: %s\n", output.Indent(f.What, "  "))
	if f.Why != "" {
		_, _ = fmt.Fprintf(w, "  why: %s\n", output.Indent(f.Why, "       "))
	}
	if f.Fix != "" {
		_, _ = fmt.Fprintf(w, "  fix: %s\n", output.Indent(f.Advice().String(), "       "))
	}
}

// explainError says of any error what failed, why, and the fix, as far as they are
// known.
func explainError(err error) loop.Fault {
	if e, ok := errors.AsType[*endedError](err); ok {
		v := e.view
		f := loop.Fault{What: e.Error(), Why: joinNonEmpty("\n", v.Reason.Explain(v.Detail), failedGateOutput(v))}
		return *f.WithAdvice(runs.Next(v))
	}
	return verb.Explain(err)
}

// failedGateOutput is the end of what the gate printed that ended a run. The rest
// is in the trace.
func failedGateOutput(v runs.View) string {
	const most = 20 // lines
	if len(v.Iterations) == 0 {
		return ""
	}
	for _, g := range v.Iterations[len(v.Iterations)-1].Gates {
		if !g.Pass && g.Evidence != "" && !strings.Contains(v.Detail, g.Evidence) {
			lines := strings.Split(g.Evidence, "\n")
			return strings.Join(lines[max(0, len(lines)-most):], "\n")
		}
	}
	return ""
}

// usageError is the error of a wrong command line.
func usageError(cmd *cobra.Command, what string) *loop.Fault {
	return &loop.Fault{Exit: loop.ExitUsage, What: what, Fix: "usage: " + cmd.UseLine() + "   (" + cmd.CommandPath() + " --help says more)"}
}

// flagError is a usageError for an invalid flag. It suggests the name that was
// probably meant.
func flagError(cmd *cobra.Command, what string) *loop.Fault {
	f := usageError(cmd, what)
	name, unknown := strings.CutPrefix(what, "unknown flag: --")
	if !unknown {
		return f
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	if near := readiness.NearestName(name, names); near != "" {
		f.Fix = "did you mean --" + near + "? " + f.Fix
	}
	return f
}

// exactArgs requires n arguments. The error names them as the command's usage does.
func exactArgs(n int) cobra.PositionalArgs { return rangeArgs(n, n) }

func rangeArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError(cmd, cmd.CommandPath()+" needs an argument: "+strings.TrimPrefix(cmd.Use, cmd.Name()+" "))
		case len(args) > most:
			return usageError(cmd, cmd.CommandPath()+" does not take "+quoteArg(args[most]))
		}
		return nil
	}
}

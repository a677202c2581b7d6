package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

// endedError is a run that was carried to its end and did not succeed.
type endedError struct{ view control.RunView }

func (e *endedError) Error() string {
	return fmt.Sprintf("%s ended %s", runName(e.view), e.view.Outcome)
}

// exitStatus maps whatever a command returned to the one table.
func exitStatus(ctx context.Context, err error) int {
	if err == nil {
		return loop.ExitOK
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return loop.ExitInterrupted
	}
	if e, ok := errors.AsType[*endedError](err); ok {
		return e.view.Outcome.Meaning().Exit
	}
	if status, ok := errors.AsType[quietError](err); ok {
		return int(status)
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Exit != 0 {
		return f.Exit
	}
	if _, ok := errors.AsType[*loop.HeldError](err); ok {
		return loop.ExitHeld
	}
	switch {
	case errors.Is(err, context.Canceled):
		return loop.ExitInterrupted
	case errors.Is(err, loop.ErrNotFound):
		return loop.ExitNotFound
	case errors.Is(err, loop.ErrAnswered), errors.Is(err, loop.ErrLeaseLost), errors.Is(err, loop.ErrDuplicateKey):
		return loop.ExitHeld
	}
	return loop.ExitError
}

// explain prints what failed, why, and the fix.
func (a *app) explain(err error, status int) {
	f := faultOf(err)
	if status == loop.ExitInterrupted && f.Why == "" {
		f.Why = "it was interrupted"
	}
	_, _ = fmt.Fprintf(a.Err, "pawl: %s\n", indented(f.What, "  "))
	if f.Why != "" {
		_, _ = fmt.Fprintf(a.Err, "  why: %s\n", indented(f.Why, "       "))
	}
	if f.Fix != "" {
		_, _ = fmt.Fprintf(a.Err, "  fix: %s\n", indented(f.Advice().String(), "       "))
	}
}

// faultOf turns any error into the three things that a person wants to know.
func faultOf(err error) loop.Fault {
	if e, ok := errors.AsType[*endedError](err); ok {
		v := e.view
		return loop.Fault{What: e.Error(), Why: joined("\n", v.Reason.Because(v.Detail), evidence(v)), Fix: control.Next(v)}
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return *f
	}
	if h, ok := errors.AsType[*loop.HeldError](err); ok {
		return loop.Fault{
			What: h.What + " is held by another process",
			Why:  h.Holder.String() + " has it",
			Fix:  freeing(h.What),
		}
	}
	if errors.Is(err, loop.ErrLeaseLost) {
		return loop.Fault{What: err.Error(), Why: "another process took the run over", Fix: "see what became of it: pawl runs"}
	}
	return loop.Fault{What: err.Error()}
}

// freeing says how what another process holds gets free. Only a run that is named
// in full can be stopped by its name.
func freeing(what string) string {
	fix := "wait until it has ended"
	if run, ok := strings.CutPrefix(what, "run "); ok && !strings.HasPrefix(run, "#") && strings.Contains(run, "#") {
		run, _, _ = strings.Cut(run, " ")
		fix += ", or stop it: pawl stop " + run
	}
	return fix
}

// evidenceLines is how much of a failed gate stands in an explanation; the rest
// is in the trace.
const evidenceLines = 20

// evidence is the end of what the gate printed that ended a run.
func evidence(v control.RunView) string {
	if len(v.Iterations) == 0 {
		return ""
	}
	for _, g := range v.Iterations[len(v.Iterations)-1].Gates {
		if !g.Pass && g.Evidence != "" && !strings.Contains(v.Detail, g.Evidence) {
			lines := strings.Split(g.Evidence, "\n")
			return strings.Join(lines[max(0, len(lines)-evidenceLines):], "\n")
		}
	}
	return ""
}

// usage is the error of a command that was called in a wrong way.
func usage(cmd *cobra.Command, what string) *loop.Fault {
	return &loop.Fault{Exit: loop.ExitUsage, What: what, Fix: "usage: " + cmd.UseLine() + "   (" + cmd.CommandPath() + " --help says more)"}
}

// badFlag is usage for a flag that cannot be read, with the one that was probably meant.
func badFlag(cmd *cobra.Command, what string) *loop.Fault {
	f := usage(cmd, what)
	name, unknown := strings.CutPrefix(what, "unknown flag: --")
	if !unknown {
		return f
	}
	var there []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			there = append(there, flag.Name)
		}
	})
	if near := readiness.Nearest(name, there); near != "" {
		f.Fix = "did you mean --" + near + "? " + f.Fix
	}
	return f
}

// exactly asks for that many arguments, named as in the command's usage.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, cmd.CommandPath()+" needs an argument: "+strings.TrimPrefix(cmd.Use, cmd.Name()+" "))
		case len(args) > most:
			return usage(cmd, cmd.CommandPath()+" does not take "+quote(args[most]))
		}
		return nil
	}
}

// indented cleans a text and puts every line but the first under it.
func indented(text, by string) string {
	return strings.ReplaceAll(strings.TrimRight(clean(text), "\n"), "\n", "\n"+by)
}

// joined puts the parts that there are in a row.
func joined(by string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, by)
}

// count is a number and what is counted, as people say it.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func quote(s string) string { return strconv.Quote(clean(s)) }

package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

type doctorOptions struct {
	live, offline, quiet bool
	sandbox              string // tier to try; may be empty
}

func newDoctorCommand(a *app) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use: "doctor [LOOP|PATH]", Short: "Say whether a loop will run on this machine", Args: rangeArgs(0, 1), ValidArgsFunction: completeDefinitions(a),
		Long: `Say whether a loop, or every loop of the workspace, will run: one row each for what it needs, with the fix.

Without --live only the definition is looked at, and nothing is started. With --live agents, programs behind shims,
store, clock and disk are looked at too, and the gates are tried on the base, so that a broken one is known before
an agent is paid. --sandbox tries instead what programs can do in a tier of confinement, full unless another is
named: a row for each action, and what this machine lacks. Exits with 10 if any row is bad.`,
		Example: "  pawl doctor\n  pawl doctor ci-watch --live\n  pawl doctor --sandbox\n  pawl doctor --sandbox=landlock",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.sandbox != "" && len(args) > 0:
				return usageError(cmd, "--sandbox is about the machine and takes no loop; write --sandbox="+args[0]+" to name a tier")
			case o.sandbox != "" && !slices.Contains(setup.ConfiningTiers(), o.sandbox):
				return usageError(cmd, "--sandbox="+o.sandbox+" is not one of "+strings.Join(setup.ConfiningTiers(), ", "))
			case o.sandbox != "":
				return trySandbox(cmd.Context(), a, o)
			}
			if o.live && o.offline {
				return usageError(cmd, "both --live and --offline are given")
			}
			return runDoctor(cmd.Context(), a, strings.Join(args, ""), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false, "look at this machine and try the gates")
	f.BoolVar(&o.offline, "offline", false, "look at the definition only, which is the default")
	f.StringVar(&o.sandbox, "sandbox", "", "try a tier of confinement on this machine")
	f.Lookup("sandbox").NoOptDefVal = setup.ConfiningTiers()[0]
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only what is not ok")
	return cmd
}

func runDoctor(ctx context.Context, a *app, arg string, o doctorOptions) error {
	found, err := loops.FindDefinitions(a.formats(), a.workDir(), arg)
	examinable := arg == "" && o.live // A machine can be examined without any loop.
	if err != nil && (!examinable || !errors.Is(err, loop.ErrNotFound)) {
		return err
	}
	checked, unread, err := readDefinitions(ctx, a, found)
	if err != nil {
		return err
	}
	p := a.printer()
	var rows []setup.DoctorRow
	add := func(more []setup.DoctorRow) {
		rows = append(rows, more...)
		printDoctorRows(p, more, len(found) > 1, o.quiet)
	}
	for _, c := range checked {
		noteReading(p, c)
		add(setup.OfflineRows(c))
	}
	if o.live {
		err := a.withDoctor(ctx, func(d setup.Doctor) {
			add(d.MachineRows(ctx))
			for _, c := range checked {
				add(d.LoopRows(ctx, c))
			}
		})
		if err != nil {
			return err
		}
	}
	return printDiagnosis(p, checked, unread, rows, o.live)
}

// trySandbox shows what a tier of confinement prevents.
func trySandbox(ctx context.Context, a *app, o doctorOptions) error {
	settings, err := a.composeOptions()
	if err != nil {
		return err
	}
	p := a.printer()
	rows := setup.Doctor{Home: settings.Settings.Home}.SandboxRows(ctx, o.sandbox)
	printDoctorRows(p, rows, false, o.quiet)
	return printDiagnosis(p, nil, 0, rows, true)
}

// withDoctor calls fn with what examines the machine. A store that cannot be used and
// a folder that is not in a repository are findings, not errors.
func (a *app) withDoctor(ctx context.Context, fn func(setup.Doctor)) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	d := setup.Doctor{Dir: a.workDir(), Home: o.Settings.Home, Probe: compose.Prober(a.Environ, a.Now()), Profiles: compose.Profiles()}
	if !a.json && a.Terminal && os.Getenv("PAWL_DEBUG") != "" {
		d.Output = a.Err // What gates print while they are tried.
	}
	o.ReadOnly, o.Gates = true, true
	parts, err := compose.New(ctx, o)
	if err != nil {
		d.Store = err
		o.NoStore = true
		if parts, err = compose.New(ctx, o); err != nil {
			return err
		}
	}
	var verbs *api.Workspace
	if verbs, d.Reason = parts.Verbs(ctx, a.workDir()); d.Reason == nil {
		d.Service, d.Dir = verbs.Setup, verbs.Root
	}
	fn(d)
	return errors.Join(ctx.Err(), parts.Close())
}

func printDoctorRows(p *output.Printer, rows []setup.DoctorRow, several, quiet bool) {
	if p.JSON {
		return // printDiagnosis prints them.
	}
	for _, r := range rows {
		if quiet && r.State == setup.StateOK {
			continue
		}
		state := r.State
		switch state {
		case setup.StateOK:
			state = p.Style.Green(state)
		case setup.StateWarn:
			state = p.Style.Yellow(state)
		default:
			state = p.Style.Red(state)
		}
		check, detail := output.CleanLine(r.Check), output.CleanLine(r.Detail)
		if several && r.Loop != "" {
			check = output.CleanLine(r.Loop) + ": " + check
		}
		switch {
		case r.Fix != "" && r.State == setup.StateOK:
			detail += "; " + output.CleanLine(r.Fix)
		case r.Fix != "":
			detail += "; fix: " + output.CleanLine(r.Fix)
		}
		p.Line("%s\t%s\t%s", state, check, detail)
	}
}

// printDiagnosis sums up on standard error, or prints all of it as JSON. The error says
// what will not run.
func printDiagnosis(p *output.Printer, checked []loops.Checked, unread int, rows []setup.DoctorRow, live bool) error {
	d := setup.Diagnose(rows, checked, unread, live)
	if p.JSON {
		if err := p.WriteJSON(d); err != nil {
			return err
		}
	} else {
		p.Note("%d ok, %d warn, %d bad (%s)", d.Meta.OK, d.Meta.Warn, d.Meta.Bad, d.Meta.Mode)
	}
	switch {
	case unread > 0:
		return unreadableError(unread)
	case d.Meta.WillRun:
		return nil
	}
	return &loop.Fault{Exit: loop.ExitNotReady, What: "this will not run as it stands", Fix: "each bad row above says its fix"}
}

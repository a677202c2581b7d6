package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

type doctorOptions struct {
	live, offline, quiet bool
	sandbox              string // tier to try; empty: none
}

func (a *app) cmdDoctor() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use: "doctor [LOOP|PATH]", Short: "Say whether a loop will run on this machine", Args: between(0, 1), ValidArgsFunction: a.completeDefinitions,
		Long: `Say whether a loop, or every loop of the workspace, will run: one row each for what it needs, with the fix.

Without --live only the definition is looked at, and nothing is started. With --live agents, programs behind shims,
store, clock and disk are looked at too, and the gates are tried on the base, so that a broken one is known before
an agent is paid. --sandbox tries instead what programs can do in a tier of confinement, full unless another is
named: a row for each action, and what this machine lacks. Exits with 10 if any row is bad.`,
		Example: "  pawl doctor\n  pawl doctor ci-watch --live\n  pawl doctor --sandbox\n  pawl doctor --sandbox=landlock",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.sandbox != "" && len(args) > 0:
				return usage(cmd, "--sandbox is about the machine and takes no loop; write --sandbox="+args[0]+" to name a tier")
			case o.sandbox != "" && !slices.Contains(control.ConfiningTiers(), o.sandbox):
				return usage(cmd, "--sandbox="+o.sandbox+" is not one of "+strings.Join(control.ConfiningTiers(), ", "))
			case o.sandbox != "":
				return a.trySandbox(cmd.Context(), o)
			}
			if o.live && o.offline {
				return usage(cmd, "both --live and --offline are given")
			}
			return a.doctor(cmd.Context(), strings.Join(args, ""), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false, "look at this machine and try the gates")
	f.BoolVar(&o.offline, "offline", false, "look at the definition only, which is the default")
	f.StringVar(&o.sandbox, "sandbox", "", "try a tier of confinement on this machine")
	f.Lookup("sandbox").NoOptDefVal = control.ConfiningTiers()[0]
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only what is not ok")
	return cmd
}

func (a *app) doctor(ctx context.Context, arg string, o doctorOptions) error {
	all, err := a.fitFor(arg, o)
	if err != nil {
		return err
	}
	checked, unread, err := a.readAll(ctx, all)
	if err != nil {
		return err
	}
	var rows []control.DoctorRow
	see := func(more []control.DoctorRow) {
		rows = append(rows, more...)
		if !a.json {
			a.doctorRows(more, len(all) > 1, o)
		}
	}
	for _, c := range checked {
		a.notice(c)
		see(control.Offline(c))
	}
	if o.live {
		err := a.examining(ctx, func(d control.Doctor) {
			see(d.Machine(ctx))
			for _, c := range checked {
				see(d.Loop(ctx, c))
			}
		})
		if err != nil {
			return err
		}
	}
	return a.diagnosis(checked, unread, rows, o)
}

// trySandbox shows what a tier of confinement keeps programs from.
func (a *app) trySandbox(ctx context.Context, o doctorOptions) error {
	settings, err := a.options()
	if err != nil {
		return err
	}
	o.live = true
	rows := control.Doctor{Home: settings.Settings.Home}.Sandbox(ctx, o.sandbox)
	if !a.json {
		a.doctorRows(rows, false, o)
	}
	return a.diagnosis(nil, 0, rows, o)
}

// fitFor finds what is to be examined. A machine can be examined without any
// loop.
func (a *app) fitFor(arg string, o doctorOptions) ([]control.Found, error) {
	all, err := control.Definitions(a.dir(), arg)
	if errors.Is(err, loop.ErrNotFound) && arg == "" && o.live {
		return nil, nil
	}
	return all, err
}

// examining makes what looks at the machine. A store that cannot be used and a
// folder that is no repository are findings, not failures.
func (a *app) examining(ctx context.Context, fn func(control.Doctor)) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	d := control.Doctor{Dir: a.dir(), Home: o.Settings.Home, Probe: a.prober(), Profiles: compose.Profiles(), Output: a.gateOutput()}
	o.ReadOnly, o.Gates = true, true
	made, err := compose.New(ctx, o)
	if err != nil {
		d.Store = err
		o.NoStore = true
		if made, err = compose.New(ctx, o); err != nil {
			return err
		}
	}
	var verbs *compose.Verbs
	if verbs, d.Reason = made.Verbs(ctx, a.dir()); d.Reason == nil {
		d.Service, d.Dir = verbs.Service, verbs.Root()
	}
	fn(d)
	return errors.Join(ctx.Err(), made.Close())
}

// gateOutput is where people see what gates print while they are tried.
func (a *app) gateOutput() io.Writer {
	if a.json || !a.Terminal || os.Getenv("PAWL_DEBUG") == "" {
		return nil
	}
	return a.Err
}

func (a *app) doctorRows(rows []control.DoctorRow, several bool, o doctorOptions) {
	s := a.style()
	for _, r := range rows {
		if o.quiet && r.State == readiness.StateOK {
			continue
		}
		state := r.State
		switch state {
		case readiness.StateOK:
			state = s.green(state)
		case readiness.StateWarn:
			state = s.yellow(state)
		default:
			state = s.red(state)
		}
		check, detail := cleanLine(r.Check), cleanLine(r.Detail)
		if several && r.Loop != "" {
			check = cleanLine(r.Loop) + ": " + check
		}
		if r.Fix != "" {
			detail += "; fix: " + cleanLine(r.Fix)
		}
		_, _ = fmt.Fprintf(a.Out, "%s\t%s\t%s\n", state, check, detail)
	}
}

type doctorReport struct {
	Data []control.DoctorRow `json:"data"`
	Meta doctorMeta          `json:"meta"`
}

type doctorMeta struct {
	Mode    string `json:"mode"`
	OK      int    `json:"ok"`
	Warn    int    `json:"warn"`
	Bad     int    `json:"bad"`
	WillRun bool   `json:"will_run"`
	Tier    string `json:"tier,omitempty"` // of one loop
	Unread  int    `json:"unreadable,omitempty"`
	Schema  string `json:"schema"`
}

// diagnosis sums up on standard error, or in JSON, and decides the exit status.
func (a *app) diagnosis(checked []control.Checked, unread int, rows []control.DoctorRow, o doctorOptions) error {
	m := doctorMeta{Mode: "offline", Unread: unread, Schema: "pawl.doctor/v1"}
	if o.live {
		m.Mode = "live"
	}
	if len(checked) == 1 && unread == 0 {
		m.Tier = checked[0].Verdict.Tier
	}
	for _, r := range rows {
		switch r.State {
		case readiness.StateOK:
			m.OK++
		case readiness.StateWarn:
			m.Warn++
		default:
			m.Bad++
		}
	}
	m.WillRun = m.Bad == 0 && unread == 0
	if a.json {
		if rows == nil {
			rows = []control.DoctorRow{}
		}
		if err := a.printJSON(doctorReport{rows, m}); err != nil {
			return err
		}
	} else {
		_, _ = fmt.Fprintf(a.Err, "%d ok, %d warn, %d bad (%s)\n", m.OK, m.Warn, m.Bad, m.Mode)
	}
	switch {
	case unread > 0:
		return unreadable(unread)
	case m.WillRun:
		return nil
	}
	return &loop.Fault{Exit: loop.ExitNotReady, What: "this will not run as it stands", Fix: "each bad row above says its fix"}
}

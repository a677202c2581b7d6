package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/output"
)

// newSwitchCommand makes pause, kill or resume. Do gets the name of the loop, or
// loops.All.
func newSwitchCommand(a *app, name, short, long string, do func(ctx context.Context, loop string) error) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: name + " [LOOP|--all]", Short: short, Long: long, Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && all:
				return usageError(cmd, "both a loop and --all are given")
			case len(args) == 1:
				return do(cmd.Context(), args[0])
			case all:
				return do(cmd.Context(), loops.All)
			}
			return usageError(cmd, "which loop? Nothing is done to all of them unless --all says so")
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every loop of the workspace")
	return cmd
}

func newPauseCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "pause", "Set the kill switch of a loop, or of all",
		"Set the kill switch. No run starts while it is set, and a live run ends as paused with its work kept.",
		func(ctx context.Context, name string) error {
			return setSwitch(ctx, a, func(s *compose.Verbs) (loops.Switched, error) { return s.Loops.Pause(ctx, a.actor(""), name) })
		})
}

func newKillCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "kill", "Set the kill switch and wait until nothing runs any more",
		"Set the kill switch of a loop, or of all, and wait until no process of its runs is left.",
		func(ctx context.Context, name string) error {
			return setSwitch(ctx, a, func(s *compose.Verbs) (loops.Switched, error) { return s.Loops.Kill(ctx, a.actor(""), name) })
		})
}

func newResumeCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "resume", "Clear the kill switch of a loop, or of all",
		"Clear the kill switch. `pawl resume --all` clears those of single loops too.",
		func(ctx context.Context, name string) error {
			return a.withVerbs(ctx, nil, func(s *compose.Verbs) error {
				sw, err := s.Loops.Resume(ctx, a.actor(""), name)
				if err != nil {
					return err
				}
				return printResumed(a.printer(), sw)
			})
		})
}

// setSwitch sets a switch before everything else, and works without a store: if the
// switch cannot be recorded, that is said and is not an error.
func setSwitch(ctx context.Context, a *app, set func(*compose.Verbs) (loops.Switched, error)) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	var sw loops.Switched
	err = a.openVerbs(ctx, o, func(s *compose.Verbs) (err error) {
		sw, err = set(s)
		if err != nil {
			return err
		}
		a.recoverDeadRuns(ctx, s)
		return nil
	})
	if err != nil && sw.Schema == "" {
		sw, err = setWithoutStore(ctx, a, set, err)
	}
	if err != nil {
		return err
	}
	return printSwitch(a.printer(), sw)
}

// setWithoutStore sets only the file of the switch, which every engine obeys. Cause is
// why the store cannot be used.
func setWithoutStore(
	ctx context.Context, a *app, set func(*compose.Verbs) (loops.Switched, error), cause error,
) (loops.Switched, error) {
	s, err := compose.WithoutStore(ctx, a.workDir(), a.Environ, a.Now)
	if err != nil {
		return loops.Switched{}, err
	}
	sw, err := set(s)
	if err != nil {
		return sw, errors.Join(cause, err)
	}
	a.printer().Note("pawl: the switch is set by its file alone, which every run obeys; the store cannot be used: %s", output.CleanLine(cause.Error()))
	return sw, nil
}

func printSwitch(p *output.Printer, sw loops.Switched) error {
	if p.JSON {
		return p.WriteJSON(sw)
	}
	already := ""
	if sw.Was {
		already = " already"
	}
	p.Line("‖ %s is paused%s by %s", switchedName(sw), already, output.CleanLine(sw.Switch))
	if len(sw.Stopped) > 0 {
		p.Line("  stopped: %s", output.CleanLine(strings.Join(sw.Stopped, ", ")))
	}
	return p.Err()
}

// switchedName is the loop that a switch is about, or all of them.
func switchedName(sw loops.Switched) string { return output.CleanLine(cmp.Or(sw.Loop, "every loop")) }

// printResumed says what was cleared. If another switch still stops the loop, that is
// an error: it was resumed to run.
func printResumed(p *output.Printer, sw loops.Switched) error {
	if p.JSON {
		if err := p.WriteJSON(sw); err != nil {
			return err
		}
	} else {
		switch {
		case sw.Paused:
		case sw.Was:
			p.Line("✓ %s may run: no switch was set", switchedName(sw))
		default:
			p.Line("✓ %s may run: %s is cleared", switchedName(sw), output.CleanLine(sw.Switch))
		}
		for _, h := range sw.Holds {
			p.Line("  it no longer rests: %s", output.CleanLine(h))
		}
		if p.Err() != nil {
			return p.Err()
		}
	}
	if !sw.Paused {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitPaused, What: switchedName(sw) + " stays paused", Why: "another kill switch is set: " + sw.Switch}
	return f.WithAdvice(loops.ResumeCommand(sw.Loop, sw.Switch).Then(" ", loop.Advise("clears it")))
}

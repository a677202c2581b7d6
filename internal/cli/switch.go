package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

// target is what pause, resume and kill are about: one loop, or all of them if
// somebody said so.
type target struct {
	loop string
	all  bool
}

func (t *target) fill(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && t.all:
		return usage(cmd, "both a loop and --all are given")
	case len(args) == 0 && !t.all:
		return usage(cmd, "which loop? Nothing is done to all of them unless --all says so")
	case len(args) == 1:
		t.loop = args[0]
	default:
		t.loop = control.All
	}
	return nil
}

// switching makes one of the three commands.
func (a *app) switching(name, short, long string, do func(context.Context, target) error) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: name + " [LOOP|--all]", Short: short, Long: long, Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.fill(cmd, args); err != nil {
				return err
			}
			return do(cmd.Context(), t)
		},
	}
	cmd.Flags().BoolVar(&t.all, "all", false, "every loop of the workspace")
	return cmd
}

func (a *app) cmdPause() *cobra.Command {
	return a.switching("pause", "Set the kill switch of a loop, or of all",
		"Set the kill switch. No run starts while it is set, and a live run ends as paused with its work kept.",
		func(ctx context.Context, t target) error {
			return a.stopping(ctx, func(s *compose.Verbs) (control.Switched, error) { return s.Pause(ctx, a.actor(""), t.loop) })
		})
}

func (a *app) cmdKill() *cobra.Command {
	return a.switching("kill", "Set the kill switch and wait until nothing runs any more",
		"Set the kill switch of a loop, or of all, and wait until no process of its runs is left.",
		func(ctx context.Context, t target) error {
			return a.stopping(ctx, func(s *compose.Verbs) (control.Switched, error) { return s.Kill(ctx, a.actor(""), t.loop) })
		})
}

func (a *app) cmdResume() *cobra.Command {
	return a.switching("resume", "Clear the kill switch of a loop, or of all",
		"Clear the kill switch. `pawl resume --all` clears those of single loops too.",
		func(ctx context.Context, t target) error {
			return a.writing(ctx, nil, func(s *compose.Verbs) error {
				sw, err := s.Resume(ctx, a.actor(""), t.loop)
				if err != nil {
					return err
				}
				return a.printResumed(sw)
			})
		})
}

// stopping sets a switch. Setting one comes before everything else, and works
// without a store: what keeps it from being recorded is said and is no error.
func (a *app) stopping(ctx context.Context, do func(*compose.Verbs) (control.Switched, error)) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	var sw control.Switched
	err = a.with(ctx, o, func(s *compose.Verbs) (err error) {
		if sw, err = do(s); err != nil {
			return err
		}
		a.recover(ctx, s)
		return nil
	})
	if err != nil && sw.Schema == "" {
		sw, err = a.withoutStore(ctx, do, err)
	}
	if err != nil {
		return err
	}
	return a.printSwitch(sw)
}

// withoutStore sets the file alone, which every engine obeys.
func (a *app) withoutStore(
	ctx context.Context, do func(*compose.Verbs) (control.Switched, error), cause error,
) (control.Switched, error) {
	s, err := compose.WithoutStore(ctx, a.dir(), a.Environ, a.Now)
	if err != nil {
		return control.Switched{}, err
	}
	sw, err := do(s)
	if err != nil {
		return sw, errors.Join(cause, err)
	}
	_, _ = fmt.Fprintf(a.Err, "pawl: the switch is set by its file alone, which every run obeys; the store cannot be used: %s\n", cleanLine(cause.Error()))
	return sw, nil
}

func (a *app) printSwitch(sw control.Switched) error {
	if a.json {
		return a.printJSON(sw)
	}
	p := printer{w: a.Out}
	already := ""
	if sw.Was {
		already = " already"
	}
	p.line("‖ %s is paused%s by %s", switched(sw), already, cleanLine(sw.Switch))
	if len(sw.Stopped) > 0 {
		p.line("  stopped: %s", cleanLine(strings.Join(sw.Stopped, ", ")))
	}
	return p.err
}

// switched is what a switch is about, in words.
func switched(sw control.Switched) string { return cleanLine(firstOf(sw.Loop, "every loop")) }

// printResumed says what was cleared. A loop that another switch still stops is
// an error: who resumed it wants it to run.
func (a *app) printResumed(sw control.Switched) error {
	if a.json {
		if err := a.printJSON(sw); err != nil {
			return err
		}
	} else {
		p := printer{w: a.Out}
		switch {
		case sw.Paused:
		case sw.Was:
			p.line("✓ %s may run: no switch was set", switched(sw))
		default:
			p.line("✓ %s may run: %s is cleared", switched(sw), cleanLine(sw.Switch))
		}
		for _, h := range sw.Holds {
			p.line("  it no longer rests: %s", cleanLine(h))
		}
		if p.err != nil {
			return p.err
		}
	}
	if !sw.Paused {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitPaused, What: switched(sw) + " stays paused", Why: "another kill switch is set: " + sw.Switch,
		Fix: control.ResumeCommand(sw.Loop, sw.Switch) + " clears it",
	}
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// switching is what pause, kill or resume is asked for.
type switching struct {
	loop       string // or loops.All
	everywhere bool
	why        string
}

// newSwitchCommand makes pause, kill or resume.
func newSwitchCommand(a *app, name, short, long string, do func(context.Context, switching) error) *cobra.Command {
	all, w := false, switching{}
	cmd := &cobra.Command{
		Use: name + " [LOOP|--all|--everywhere]", Short: short, Long: long, Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && (all || w.everywhere):
				return usageError(cmd, "both a loop and "+map[bool]string{true: "--all", false: "--everywhere"}[all]+" are given")
			case all && w.everywhere:
				return usageError(cmd, "both --all and --everywhere are given")
			case len(args) == 0 && !all && !w.everywhere:
				return usageError(cmd, "which loop? Nothing is done to all of them unless --all says so")
			}
			w.loop = strings.Join(args, "")
			return do(cmd.Context(), w)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every loop of the workspace, on all nodes")
	cmd.Flags().BoolVar(&w.everywhere, "everywhere", false, "every loop of every workspace of the store, on all nodes")
	if name != "resume" {
		cmd.Flags().StringVar(&w.why, "why", "", "`text` that says why, for whoever meets the switch")
	}
	return cmd
}

func newPauseCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "pause", "Set the kill switch of a loop, or of all",
		`Set the kill switch. No run starts while it is set, and a live run ends as paused with its work kept.

With --all and --everywhere it waits, like kill, until no process of their runs is left on any node. --all also makes
.loops/PAUSED, which stops this checkout even if the store cannot be used.`,
		func(ctx context.Context, w switching) error {
			return setSwitch(ctx, a, w, api.PauseLoops.Call, func(s *api.Workspace) (loops.Switched, error) { return s.Loops.Pause(ctx, a.actor(""), w.loop, w.why) })
		})
}

func newKillCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "kill", "Set the kill switch and wait until nothing runs any more",
		`Set the kill switch of a loop, or of all, and wait until no process of its runs is left, on any node. A run whose holder
does not answer is named, with its node and since when nothing is heard of it, and the exit status is 16.`,
		func(ctx context.Context, w switching) error {
			return setSwitch(ctx, a, w, api.KillLoops.Call, func(s *api.Workspace) (loops.Switched, error) { return s.Loops.Kill(ctx, a.actor(""), w.loop, w.why) })
		})
}

func newResumeCommand(a *app) *cobra.Command {
	return newSwitchCommand(a, "resume", "Clear the kill switch of a loop, or of all",
		`Clear the kill switch. `+"`pawl resume --all`"+` clears those of single loops too; the file .loops/PAUSED of another node's checkout
stays. --everywhere clears only what pawl pause --everywhere has set.`,
		func(ctx context.Context, w switching) error {
			return a.withCaller(ctx, nil, func(c verb.Caller) (err error) {
				var sw loops.Switched
				if w.everywhere {
					sw, err = api.ResumeEverywhere.Call(ctx, c, verb.None{})
				} else {
					sw, err = api.ResumeLoops.Call(ctx, c, api.LoopRef{Loop: w.loop})
				}
				if err != nil {
					return err
				}
				return printResumed(a.printer(), sw)
			})
		})
}

// setSwitch sets a switch before everything else, and works without a store and without
// a daemon that answers: if the switch cannot be recorded, that is said and is not an
// error. That of the whole store is only there.
func setSwitch(
	ctx context.Context, a *app, w switching, ask verb.Ask[api.SwitchRequest, loops.Switched], set func(*api.Workspace) (loops.Switched, error),
) error {
	var sw loops.Switched
	err := a.withCaller(ctx, nil, func(c verb.Caller) (err error) {
		if w.everywhere {
			ask = api.PauseEverywhere.Call
		}
		sw, err = ask(ctx, c, api.SwitchRequest{Loop: w.loop, Why: w.why})
		return err
	})
	if err != nil && sw.Schema == "" && !w.everywhere {
		sw, err = setWithoutStore(ctx, a, set, err)
	}
	if err != nil && len(sw.Silent) == 0 {
		return err
	}
	return errors.Join(err, printSwitch(a.printer(), sw))
}

// setWithoutStore sets only the file of the switch, which every engine obeys. Cause is
// why the store cannot be used.
func setWithoutStore(
	ctx context.Context, a *app, set func(*api.Workspace) (loops.Switched, error), cause error,
) (loops.Switched, error) {
	s, err := compose.WithoutStore(ctx, a.workDir(), a.Environ, a.Now)
	if err != nil {
		return loops.Switched{}, err
	}
	sw, err := set(s)
	if err != nil {
		return sw, errors.Join(cause, err)
	}
	a.printer().Note("pawl: the switch is set by its file alone, which every run of this checkout obeys; other nodes do not see it: the store cannot be used: %s", output.CleanLine(cause.Error()))
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
	if len(sw.Below) > 0 {
		p.Line("  with it: %s, which its runs have made", output.CleanLine(strings.Join(sw.Below, ", ")))
	}
	if len(sw.Stopped) > 0 {
		p.Line("  stopped: %s", output.CleanLine(strings.Join(sw.Stopped, ", ")))
	}
	for _, r := range sw.Silent {
		p.Line("  %s", output.CleanLine(fmt.Sprintf("silent: %s in %s, %s%s, last heard of %s", r.Run, r.Phase, r.Holder, onNode(r.Node), p.Ago(&r.Since))))
	}
	return p.Err()
}

func onNode(name string) string {
	if name == "" {
		return ""
	}
	return " on node " + name
}

// switchedName is the loop that a switch is about, or all of them.
func switchedName(sw loops.Switched) string {
	if sw.Scope == loop.SwitchStore {
		return "every loop of every workspace"
	}
	return output.CleanLine(cmp.Or(sw.Loop, "every loop"))
}

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
		if len(sw.Below) > 0 {
			p.Line("  with it: %s, which were paused with it", output.CleanLine(strings.Join(sw.Below, ", ")))
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
	return f.WithAdvice(sw.PausedBy.ClearedBy(sw.Loop).Then(" ", loop.Advise("clears it")))
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

type checkOptions struct {
	min    string
	least  int
	strict bool
}

func newCheckCommand(a *app) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check [LOOP|PATH]", Short: "Score a definition: is it complete?", Args: rangeArgs(0, 1), ValidArgsFunction: completeDefinitions(a),
		Long: `Score a definition, or every definition of the workspace: 16 checks of equal weight. It needs no repository.

Standard output has the findings, one per line; the score and the places are printed on standard error. A loop is
ready if it has no error, a score of at least --min and, with --strict, no warning and no unknown key.

Notes change no score. One of them names each gate that files of the scope can rewrite, as the checkout shows it.

In a registered workspace a ready definition is accepted by that as it is now: agents may run it over MCP until it changes.`,
		Example: "  pawl check\n  pawl check ci-watch --strict\n  pawl check .loops/ci-watch/loop.config.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(o.min, 10, 31) // Digits, and nothing else.
			if errors.Is(err, strconv.ErrRange) {
				n, err = math.MaxInt32, nil // No loop can have such a score.
			}
			if err != nil {
				return usageError(cmd, "--min "+quoteArg(o.min)+": write a number in digits, like 70")
			}
			o.least = int(n)
			found, err := loops.FindDefinitions(a.formats(), a.workDir(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			return checkDefinitions(cmd.Context(), a, found, o)
		},
	}
	cmd.Flags().StringVar(&o.min, "min", strconv.Itoa(loops.LeastScore), "the least `score` of a loop that is ready")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "warnings and unknown keys make a loop not ready")
	return cmd
}

func checkDefinitions(ctx context.Context, a *app, found []loops.Found, o checkOptions) error {
	checked, unread, err := readDefinitions(ctx, a, found)
	if err != nil {
		return err
	}
	p := a.printer()
	for _, c := range checked {
		if p.JSON {
			noteReading(p, c)
			noteRest(p, c)
			noteAgent(p, c)
		} else {
			printFindings(p, c, len(found) > 1)
			printVerdict(p, c, o)
		}
	}
	a.acceptReady(ctx, checked, o)
	paused := a.pausedNow(ctx)
	if p.JSON {
		report := loops.NewReport(checked, unread, o.least, o.strict)
		report.Meta.Paused, report.Meta.PausedBy = paused.String(), paused
		if err := p.WriteJSON(report); err != nil {
			return err
		}
	} else if !paused.IsZero() {
		p.Note("%s", output.CleanLine("every loop is paused by "+paused.String()+" ("+paused.ClearedBy("").String()+")"))
	}
	if unread > 0 {
		return unreadableError(unread)
	}
	return notReadyError(checked, o)
}

// acceptReady records that a person accepts the definitions that are ready, as they were
// checked: an agent may run those, and no others. Outside of a registered workspace there is
// nothing that an agent reaches.
func (a *app) acceptReady(ctx context.Context, checked []loops.Checked, o checkOptions) {
	var seen []loops.Seen
	for _, c := range checked {
		if c.Ready(o.least, o.strict) {
			d := c.Definition.WithDefaults()
			seen = append(seen, loops.Seen{Loop: d.Protocol + ":" + c.Name, Digest: d.Digest()})
		}
	}
	unaccepted := false
	err := a.withReadOnlyVerbs(ctx, func(s *api.Workspace) error {
		if s.Lookup.Placed {
			list, err := s.Loops.Unaccepted(ctx, seen)
			seen, unaccepted = list, len(list) > 0
			return err
		}
		return nil
	})
	if err != nil || !unaccepted {
		return // A definition can be checked without a repository and without a store.
	}
	var accepted loops.Accepted
	err = a.withCaller(ctx, nil, func(c verb.Caller) (err error) {
		accepted, err = api.AcceptLoops.Call(ctx, c, api.AcceptRequest{Loops: seen})
		return err
	})
	switch {
	case err != nil:
		a.printer().Note("pawl: warning: agents may not run what was checked: %s", output.CleanLine(err.Error()))
	case len(accepted.Loops) > 0:
		a.printer().Note("%s", output.CleanLine("accepted as it is now, so that agents may run it: "+strings.Join(accepted.Loops, ", ")))
	}
}

// pausedNow names the kill switch that stops all loops of the workspace. A definition can
// be checked without a repository and without a store: nothing is paused then.
func (a *app) pausedNow(ctx context.Context) (sw loop.KillSwitch) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := a.withReadOnlyVerbs(ctx, func(s *api.Workspace) (err error) {
		sw, err = s.Loops.Paused(ctx)
		return err
	})
	if err != nil {
		return loop.KillSwitch{}
	}
	return sw
}

// readDefinitions reads what was found. If the only definition cannot be read, that
// is the error; among several it is explained and counted, and the others are read.
func readDefinitions(ctx context.Context, a *app, found []loops.Found) (checked []loops.Checked, unread int, err error) {
	for _, f := range found {
		c, err := loops.Check(f)
		switch {
		case err != nil && len(found) == 1:
			return nil, 0, err
		case err != nil:
			printError(a.Err, err, loop.ExitUnreadable)
			unread++
			continue
		}
		// Whether a cap in money can be kept. It needs no store: an entry of the roster is
		// not looked up, and prices that cannot be read are reported by a run.
		if pricing, err := a.pricing(""); err == nil {
			if table, err := pricing.Load(); err == nil {
				c.CheckPrice(setup.Doctor{Profiles: compose.Profiles()}.AskedModel(ctx, c.Definition), table)
			}
		}
		c.CheckSwitches(ctx)
		if len(c.Definition.NodeLabels) > 0 {
			// Outside of a workspace nothing is known of machines.
			_ = a.withReadOnlyVerbs(ctx, func(s *api.Workspace) error { return c.CheckLabels(ctx, s.Loops) })
		}
		o, _ := a.composeOptions() // What is wrong with the settings is said by a command that needs them.
		c.CheckEvents(listen.Secrets{Home: o.Settings.Home, Environ: o.Environ})
		checked = append(checked, c)
	}
	return checked, unread, nil
}

func unreadableError(n int) error {
	return &loop.Fault{Exit: loop.ExitUnreadable, What: pluralize(n, "definition") + " cannot be read", Fix: "correct what is named above"}
}

// printFindings prints one line for each finding. On a terminal its place in the file
// follows; elsewhere printVerdict prints the places.
func printFindings(p *output.Printer, c loops.Checked, several bool) {
	for _, f := range c.Findings() {
		severity := fmt.Sprintf("%-7s", strings.ToUpper(f.Severity))
		if f.Severity == loops.SeverityError {
			severity = p.Style.Red(severity)
		} else {
			severity = p.Style.Yellow(severity)
		}
		message := output.CleanLine(f.Message)
		if several {
			message += "  (" + output.CleanLine(c.Name) + ")"
		}
		p.Line("%s %s", severity, message)
		if p.Terminal {
			head, line, _ := strings.Cut(f.Render(c.Shown, c.Source), "\n") // The line with a caret below it.
			place := strings.TrimSuffix(head, ": "+f.Message)
			p.Line("%s", p.Style.Dim("        "+output.Indent(joinNonEmpty("\n", place, line), "        ")))
		}
	}
}

// printVerdict prints the score, and what does not count for it, on standard error.
func printVerdict(p *output.Printer, c loops.Checked, o checkOptions) {
	noteReading(p, c)
	if !p.Terminal {
		for _, f := range c.Findings() {
			p.Note("%s", output.Indent(f.Render(c.Shown, c.Source), "  "))
		}
	}
	noteRest(p, c)
	noteAgent(p, c)
	switches := c.Switches
	if c.Definition.NamesLabel() {
		switches = append(slices.Clone(switches), "the label "+loop.PauseLabel+" (asked through gh where origin is on a code host)")
	}
	p.Note("%s", output.CleanLine("stopped by "+strings.Join(switches, ", ")))
	verdict := "ready"
	if !c.Ready(o.least, o.strict) {
		verdict = "not ready"
	}
	p.Note("%s  %s  score %d/100 (%d of %d checks, at least %d)  errors %d  warnings %d  %s",
		output.CleanLine(c.Name), output.CleanLine(c.Verdict.Tier), c.Verdict.Score(), c.Verdict.Passed, c.Verdict.Total, o.least,
		c.Errors(), c.Verdict.Warnings, verdict)
}

// noteReading says that a definition was not read as the YAML that it looks like.
func noteReading(p *output.Printer, c loops.Checked) {
	if c.Notice != "" {
		p.Note("note: %s", output.CleanLine(c.Notice))
	}
}

// noteRest names unknown keys, and what else does not count for the score.
func noteRest(p *output.Printer, c loops.Checked) {
	for _, f := range slices.Concat(c.UnknownKeys(), c.Notes()) {
		p.Note("note: %s", output.Indent(f.Render(c.Shown, c.Source), "  "))
	}
}

// noteAgent says that a definition names no agent yet.
func noteAgent(p *output.Printer, c loops.Checked) {
	if c.Definition.Agent == "" && c.Definition.AgentCommand == "" {
		p.Note("note: no agent is named, and a run needs one: write agent: NAME (pawl agent drivers lists them), or pass --agent")
	}
}

// notReadyError is the error that makes a command exit with 10, or nil.
func notReadyError(checked []loops.Checked, o checkOptions) error {
	var names []string
	for _, c := range checked {
		if !c.Ready(o.least, o.strict) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	are := "is"
	if len(names) > 1 {
		are = "are"
	}
	return &loop.Fault{
		Exit: loop.ExitNotReady, What: fmt.Sprintf("%s %s not ready", strings.Join(names, ", "), are),
		Fix: "correct what the lines above name; pawl explain KEY says what a key means",
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/readiness"
)

type checkOptions struct {
	min    string
	least  int
	strict bool
}

func (a *app) cmdCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check [LOOP|PATH]", Short: "Score a definition: is it complete?", Args: between(0, 1), ValidArgsFunction: a.completeDefinitions,
		Long: `Score a definition, or every definition of the workspace: 16 checks of equal weight. It needs no repository.

Standard output has the findings, one per line; the score and the places are printed on standard error. A loop is
ready if it has no error, a score of at least --min and, with --strict, no warning and no unknown key.

Notes change no score. One of them names each gate that files of the scope can rewrite, as the checkout shows it.`,
		Example: "  pawl check\n  pawl check ci-watch --strict\n  pawl check .loops/ci-watch/loop.config.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fill(cmd); err != nil {
				return err
			}
			all, err := control.Definitions(a.dir(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), all, o)
		},
	}
	cmd.Flags().StringVar(&o.min, "min", strconv.Itoa(readiness.LeastScore), "the least `score` of a loop that is ready")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "warnings and unknown keys make a loop not ready")
	return cmd
}

// fill reads --min, which is digits and nothing else.
func (o *checkOptions) fill(cmd *cobra.Command) error {
	n, err := strconv.ParseUint(o.min, 10, 31)
	// Digits are a score, even if no loop can have one so high.
	if errors.Is(err, strconv.ErrRange) {
		n, err = math.MaxInt32, nil
	}
	if err != nil {
		return usage(cmd, "--min "+quote(o.min)+": write a number in digits, like 70")
	}
	o.least = int(n)
	return nil
}

// check judges all that was found.
func (a *app) check(ctx context.Context, all []control.Found, o checkOptions) error {
	checked, unread, err := a.readAll(ctx, all)
	if err != nil {
		return err
	}
	if a.json {
		for _, c := range checked {
			a.asides(c)
			a.nobody(c)
		}
		if err := a.printJSON(checkJSON(checked, unread, o)); err != nil {
			return err
		}
	} else {
		for _, c := range checked {
			a.findings(c, len(all) > 1)
			a.panel(c, o)
		}
	}
	if unread > 0 {
		return unreadable(unread)
	}
	return notReady(checked, o)
}

// readAll reads what was found. A single one that cannot be read is the error;
// among several it is explained and counted, and keeps nobody from reading
// about the others.
func (a *app) readAll(ctx context.Context, all []control.Found) (checked []control.Checked, unread int, err error) {
	for _, f := range all {
		c, err := control.Check(f)
		switch {
		case err != nil && len(all) == 1:
			return nil, 0, err
		case err != nil:
			a.explain(err, loop.ExitUnreadable)
			unread++
		default:
			a.priced(ctx, &c)
			c.AlwaysSet(ctx)
			checked = append(checked, c)
		}
	}
	return checked, unread, nil
}

// priced looks whether a cap in money can be kept. It needs no store: an entry of
// the roster is not looked up, and prices that cannot be read are for a run to say.
func (a *app) priced(ctx context.Context, c *control.Checked) {
	if table, err := a.prices(""); err == nil {
		c.Price(control.Doctor{Profiles: compose.Profiles()}.Asked(ctx, c.Definition), table)
	}
}

func unreadable(n int) error {
	return &loop.Fault{Exit: loop.ExitUnreadable, What: count(n, "definition") + " cannot be read", Fix: "correct what is named above"}
}

// findings prints one line each. Where nobody would read them on one screen
// with the panel, the places are left to the panel.
func (a *app) findings(c control.Checked, several bool) {
	s := a.style()
	for _, f := range c.Findings() {
		severity := fmt.Sprintf("%-7s", strings.ToUpper(f.Severity))
		if f.Severity == readiness.SeverityError {
			severity = s.red(severity)
		} else {
			severity = s.yellow(severity)
		}
		message := cleanLine(f.Message)
		if several {
			message += "  (" + cleanLine(c.Name) + ")"
		}
		_, _ = fmt.Fprintf(a.Out, "%s %s\n", severity, message)
		if a.Terminal {
			_, _ = fmt.Fprintf(a.Out, "%s\n", s.dim("        "+place(c, f)))
		}
	}
}

// place is where a finding stands, and its line with a caret.
func place(c control.Checked, f readiness.Finding) string {
	text := f.Render(c.Shown, c.Source)
	head, rest, _ := strings.Cut(text, "\n")
	where := strings.TrimSuffix(head, ": "+f.Message)
	return indented(joined("\n", where, rest), "        ")
}

// panel prints the score and what has no say in it on standard error.
func (a *app) panel(c control.Checked, o checkOptions) {
	p := printer{w: a.Err}
	a.notice(c)
	if !a.Terminal {
		for _, f := range c.Findings() {
			p.line("%s", indented(f.Render(c.Shown, c.Source), "  "))
		}
	}
	a.notes(c)
	a.nobody(c)
	p.line("%s", cleanLine("stopped by "+switches(c)))
	verdict := "ready"
	if !c.Ready(o.least, o.strict) {
		verdict = "not ready"
	}
	p.line("%s  %s  score %d/100 (%d of %d checks, at least %d)  errors %d  warnings %d  %s",
		cleanLine(c.Name), cleanLine(c.Verdict.Tier), c.Verdict.Score(), c.Verdict.Passed, c.Verdict.Total, o.least,
		c.Errors(), c.Verdict.Warnings, verdict)
}

// usualSwitches is how many paths stop every loop.
const usualSwitches = 2

// switches lists what stops a loop.
func switches(c control.Checked) string {
	list := c.Switches
	if c.Definition.NamesLabel() {
		list = append(slices.Clone(list), "the label "+loop.PauseLabel+" (asked through gh where origin is on a code host)")
	}
	return strings.Join(list, ", ")
}

// asides is what a person should know beside the findings, whatever form these
// have.
func (a *app) asides(c control.Checked) {
	a.notice(c)
	a.notes(c)
}

// notice says that a definition was not read as the YAML that it looks like.
func (a *app) notice(c control.Checked) {
	if c.Notice != "" {
		_, _ = fmt.Fprintf(a.Err, "note: %s\n", cleanLine(c.Notice))
	}
}

// nobody says that no agent acts in the runs of a definition yet.
func (a *app) nobody(c control.Checked) {
	if c.Definition.Agent == "" && c.Definition.AgentCommand == "" {
		_, _ = fmt.Fprintf(a.Err, "note: no agent is named, and a run needs one: write agent: NAME (pawl agent drivers lists them), or pass --agent\n")
	}
}

// notes names keys that nobody reads, and what else has no say in the score.
func (a *app) notes(c control.Checked) {
	for _, f := range slices.Concat(c.Unknown(), c.Notes()) {
		_, _ = fmt.Fprintf(a.Err, "note: %s\n", indented(f.Render(c.Shown, c.Source), "  "))
	}
}

// notReady is the error that makes a command exit with 10, or nothing.
func notReady(checked []control.Checked, o checkOptions) error {
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

type checkReport struct {
	Data []findingJSON `json:"data"`
	Meta checkMeta     `json:"meta"`
}

type findingJSON struct {
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Key      string `json:"key,omitempty"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
}

type checkMeta struct {
	Count    int           `json:"count"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
	Score    int           `json:"score"` // the lowest
	Min      int           `json:"min"`
	Ready    bool          `json:"ready"` // all of them
	Tier     string        `json:"tier,omitempty"`
	Switches []string      `json:"switches,omitempty"` // paths that stop the loop, if its definition names more than the usual ones
	Unknown  []findingJSON `json:"unknown,omitempty"`
	Notes    []findingJSON `json:"notes,omitempty"`
	Loops    []checkedLoop `json:"loops,omitempty"` // only if there are several
	Unread   int           `json:"unreadable,omitempty"`
	Schema   string        `json:"schema"`
}

type checkedLoop struct {
	Loop     string `json:"loop"`
	File     string `json:"file"`
	Tier     string `json:"tier"`
	Score    int    `json:"score"`
	Errors   int    `json:"errors"`
	Warnings int    `json:"warnings"`
	Ready    bool   `json:"ready"`
}

// checkJSON sums up. What could not be read has no score, and is not ready.
func checkJSON(checked []control.Checked, unread int, o checkOptions) checkReport {
	r := checkReport{Data: []findingJSON{}, Meta: checkMeta{Min: o.least, Ready: unread == 0, Score: 100, Unread: unread, Schema: "pawl.check/v1"}}
	if len(checked) == 0 {
		r.Meta.Score = 0
	}
	for _, c := range checked {
		r.Data = append(r.Data, findingsJSON(c, c.Findings())...)
		r.Meta.Unknown = append(r.Meta.Unknown, findingsJSON(c, c.Unknown())...)
		r.Meta.Notes = append(r.Meta.Notes, findingsJSON(c, c.Notes())...)
		one := checkedLoop{c.Name, c.Shown, c.Verdict.Tier, c.Verdict.Score(), c.Errors(), c.Verdict.Warnings, c.Ready(o.least, o.strict)}
		r.Meta.Errors += one.Errors
		r.Meta.Warnings += one.Warnings
		r.Meta.Score = min(r.Meta.Score, one.Score)
		r.Meta.Ready = r.Meta.Ready && one.Ready
		r.Meta.Loops = append(r.Meta.Loops, one)
	}
	r.Meta.Count = len(r.Data)
	if len(checked) == 1 && unread == 0 {
		r.Meta.Tier, r.Meta.Loops = checked[0].Verdict.Tier, nil
		if len(checked[0].Switches) > usualSwitches {
			r.Meta.Switches = checked[0].Switches
		}
	}
	return r
}

func findingsJSON(c control.Checked, findings []readiness.Finding) []findingJSON {
	var list []findingJSON
	for _, f := range findings {
		list = append(list, findingJSON{f.Severity, f.Message, f.Key, c.Shown, f.Line, f.Column})
	}
	return list
}

package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newSpecGenerateCommand(a *app) *cobra.Command {
	var r specs.GenerateRequest
	cmd := &cobra.Command{
		Use: "generate", Short: "Make a LoopSpec for a task, try its gates, and say where each part of it is from", Args: exactArgs(0),
		Long: `Make a LoopSpec for a task, and print its document. Its commands are those that passed in earlier runs (pawl memory list), else those that
files of the repository name. Nothing is invented: a command that neither has is refused until you say it with a flag.

The words of the task choose a template. With --by an agent of the roster writes the document instead, in a run of the loop spec-generate,
which is budgeted and shown like any other. What it writes is not believed: a text that fits no phrase or a command that nobody has ever
named is refused, and the skeleton is filled instead.

Before it is shown, its gates are tried on the base. Where each field is from and which gates are red is said on standard error.`,
		Example: `  pawl spec generate --task "Keep the tests green."
  pawl spec generate --task "Raise the coverage of pkg/queue" --agent @fixer --coverage ./coverage.sh
  pawl spec generate --task "Get rid of the lint findings" --by @critic --create`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				g, err := specs.GenerateSpec.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				return printGenerated(a.printer(), g)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Task, "task", "", "what is wanted, in your `words`")
	f.StringVar(&r.By, "by", "", "an `agent` of the roster or a driver that writes it; without it a template is filled")
	f.StringVar(&r.Model, "model", "", "the `model` of --by; without it the agent's own")
	f.StringVar(&r.Template, "template", "", "`name` of a template; without it the one that the words of the task ask for")
	addFillFlags(f, &r.Fill)
	f.BoolVar(&r.Create, "create", false, "create it, and print its id instead of the document")
	return cmd
}

func printGenerated(p *output.Printer, g specs.Generated) error {
	if p.JSON {
		return p.WriteJSON(g)
	}
	if g.ID != "" {
		p.Line("%s", g.ID)
	} else {
		p.Text(string(loopspec.Encode(g.Spec)))
	}
	if g.Run != "" {
		p.Note("%s was asked in %s", output.CleanLine(g.By), g.Run)
	}
	if g.Reason != "" {
		p.Note("its answer is not used: %s", g.Reason)
		for _, f := range g.Why {
			p.Note("  %s", output.CleanLine(f.String()))
		}
	}
	if g.Word != "" {
		p.Note("template %s, because the task says %q", g.Template, g.Word)
	}
	noteFindings(p, g.Notes)
	width := 0
	for path := range g.Sources {
		width = max(width, len(path))
	}
	for _, path := range slices.Sorted(maps.Keys(g.Sources)) {
		p.Note("%-*s  %s", width, path, output.CleanLine(g.Sources[path]))
	}
	for _, t := range g.Tried {
		if t.Pass {
			p.Note("gate %s passes on the base", t.Gate)
			continue
		}
		p.Note("gate %s does not pass on the base%s", t.Gate, map[bool]string{true: fmt.Sprintf(" (exit status %d)", t.Exit)}[t.Exit != 0])
		if t.Output != "" {
			p.Note("%s", output.Quote(t.Output))
		}
	}
	if len(g.Tried) > 0 && !slices.ContainsFunc(g.Tried, func(t specs.Try) bool { return !t.Pass }) {
		p.Note("each gate that was tried passes on the base already")
	}
	return p.Err()
}

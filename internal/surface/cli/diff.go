package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newDiffCommand(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "diff RUN", Short: "Print what a run changed, as a patch", Args: exactArgs(1),
		Long: `Print what a run changed against its base, as a patch: its branch, or the snapshot of its work.

Whatever a terminal would obey, or nobody would see, is written as an escape, and standard error says so. Into a file or
a pipe everything else is written as it is, so that ` + "`pawl diff RUN | git apply`" + ` works for a patch without such
characters; --raw writes any patch byte for byte. Lines that are not what they look like, because characters in them are
hidden or turn the direction of writing around, are named on standard error.`,
		ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				patch, err := api.DiffRun.Call(cmd.Context(), c, api.RunRef{Run: args[0]})
				if err != nil {
					return err
				}
				return printPatch(a.printer(), patch, raw)
			})
		},
	}
	addRawFlag(cmd, &raw)
	return cmd
}

func addRawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "the patch byte for byte, with whatever a terminal would obey")
}

func printPatch(p *output.Printer, d runs.Patch, raw bool) error {
	if p.JSON {
		return p.WriteJSON(d)
	}
	for _, text := range d.Careful {
		if _, err := fmt.Fprintf(p.ErrOut, "careful: %s\n", output.Clean(text)); err != nil {
			return err // A patch without its warnings must not be printed.
		}
	}
	switch {
	case raw:
		p.Text(d.Patch)
	case !p.Terminal:
		text, escaped := d.Safe()
		p.Text(text)
		if p.Err() != nil || escaped == 0 {
			return p.Err()
		}
		_, err := fmt.Fprintf(p.ErrOut, "careful: %s written as an escape, so this patch may not apply; with --raw it is byte for byte\n", pluralize(escaped, "character"))
		return err
	case d.Patch == "":
		p.Line("%s changed nothing.", output.Clean(d.Run))
	default:
		var b strings.Builder
		for line := range strings.Lines(output.Clean(d.Readable())) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
				line = p.Style.Bold(line)
			case strings.HasPrefix(line, "+"):
				line = p.Style.Green(line)
			case strings.HasPrefix(line, "-"):
				line = p.Style.Red(line)
			case strings.HasPrefix(line, "@@"):
				line = p.Style.Dim(line)
			}
			b.WriteString(line + "\n")
		}
		p.Text(b.String())
	}
	return p.Err()
}

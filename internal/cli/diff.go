package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/unprintable"
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
			return a.withReadOnlyVerbs(cmd.Context(), func(s *compose.Verbs) error {
				patch, err := s.Runs.Diff(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return printPatch(a.printer(), args[0], patch, raw)
			})
		},
	}
	addRawFlag(cmd, &raw)
	return cmd
}

func addRawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "the patch byte for byte, with whatever a terminal would obey")
}

func printPatch(p *output.Printer, ref string, patch []byte, raw bool) error {
	careful := describeHidden(unprintable.InPatch(string(patch)))
	if p.JSON {
		return p.WriteJSON(diffView{Schema: "pawl.diff/v1", Run: ref, Patch: string(patch), Careful: careful})
	}
	for _, text := range careful {
		if _, err := fmt.Fprintf(p.ErrOut, "careful: %s\n", output.Clean(text)); err != nil {
			return err // A patch without its warnings must not be printed.
		}
	}
	switch {
	case raw:
		p.Text(string(patch))
	case !p.Terminal:
		shown, escaped := unprintable.ShowPatch(patch)
		p.Text(string(shown))
		if p.Err() != nil || escaped == 0 {
			return p.Err()
		}
		_, err := fmt.Fprintf(p.ErrOut, "careful: %s written as an escape, so this patch may not apply; with --raw it is byte for byte\n", pluralize(escaped, "character"))
		return err
	case len(patch) == 0:
		p.Line("%s changed nothing.", output.Clean(ref))
	default:
		var b strings.Builder
		for line := range strings.Lines(output.Clean(unprintable.Show(string(patch)))) {
			b.WriteString(stylePatchLine(p.Style, strings.TrimSuffix(line, "\n")) + "\n")
		}
		p.Text(b.String())
	}
	return p.Err()
}

type diffView struct {
	Schema  string   `json:"schema"`
	Run     string   `json:"run"`
	Patch   string   `json:"patch"`
	Careful []string `json:"careful,omitempty"` // lines that are not what they look like
}

// describeHidden says which lines of a patch have hidden characters.
func describeHidden(found []unprintable.Found) (list []string) {
	const most = 20
	for i, f := range found {
		if i == most {
			return append(list, fmt.Sprintf("and %d lines more", len(found)-most))
		}
		list = append(list, f.String())
	}
	return list
}

func stylePatchLine(s output.Style, line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return s.Bold(line)
	case strings.HasPrefix(line, "+"):
		return s.Green(line)
	case strings.HasPrefix(line, "-"):
		return s.Red(line)
	case strings.HasPrefix(line, "@@"):
		return s.Dim(line)
	}
	return line
}

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/unprintable"
)

func (a *app) cmdDiff() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use: "diff RUN", Short: "Print what a run changed, as a patch", Args: exactly(1),
		Long: `Print what a run changed against its base, as a patch: its branch, or the snapshot of its work.

Whatever a terminal would obey, or nobody would see, is written as an escape, and standard error says so. Into a file or
a pipe everything else is written as it is, so that ` + "`pawl diff RUN | git apply`" + ` works for a patch without such
characters; --raw writes any patch byte for byte. Lines that are not what they look like, because characters in them are
hidden or turn the direction of writing around, are named on standard error.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				patch, err := s.Diff(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printPatch(args[0], patch, raw)
			})
		},
	}
	rawFlag(cmd, &raw)
	return cmd
}

func rawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "the patch byte for byte, with whatever a terminal would obey")
}

func (a *app) printPatch(ref string, patch []byte, raw bool) error {
	found := unprintable.InPatch(string(patch))
	if a.json {
		return a.printJSON(diffView{Schema: "pawl.diff/v1", Run: ref, Patch: string(patch), Careful: careful(found)})
	}
	for _, text := range careful(found) {
		if _, err := fmt.Fprintf(a.Err, "careful: %s\n", clean(text)); err != nil {
			return err
		}
	}
	switch {
	case raw:
		_, err := a.Out.Write(patch)
		return err
	case !a.Terminal:
		shown, escaped := unprintable.ShowPatch(patch)
		if _, err := a.Out.Write(shown); err != nil || escaped == 0 {
			return err
		}
		_, err := fmt.Fprintf(a.Err, "careful: %s written as an escape, so this patch may not apply; with --raw it is byte for byte\n", count(escaped, "character"))
		return err
	case len(patch) == 0:
		_, err := fmt.Fprintf(a.Out, "%s changed nothing.\n", clean(ref))
		return err
	}
	s := a.style()
	var b strings.Builder
	for line := range strings.Lines(clean(unprintable.Show(string(patch)))) {
		b.WriteString(s.patchLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

type diffView struct {
	Schema  string   `json:"schema"`
	Run     string   `json:"run"`
	Patch   string   `json:"patch"`
	Careful []string `json:"careful,omitempty"` // lines that are not what they look like
}

// careful is what a reader of a patch is told of its hidden characters.
func careful(found []unprintable.Found) (list []string) {
	const most = 20
	for i, f := range found {
		if i == most {
			return append(list, fmt.Sprintf("and %d lines more", len(found)-most))
		}
		list = append(list, f.String())
	}
	return list
}

func (s style) patchLine(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return s.bold(line)
	case strings.HasPrefix(line, "+"):
		return s.green(line)
	case strings.HasPrefix(line, "-"):
		return s.red(line)
	case strings.HasPrefix(line, "@@"):
		return s.dim(line)
	}
	return line
}

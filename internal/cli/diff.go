package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
)

func (a *app) cmdDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff RUN", Short: "Print what a run changed, as a patch", Args: exactly(1),
		Long: `Print what a run changed against its base, as a patch: its branch, or the snapshot of its work.

On a terminal whatever a terminal would obey is taken out. Anything else gets the patch byte for byte,
so that ` + "`pawl diff RUN | git apply`" + ` works.`,
		ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(s *control.Service) error {
				patch, err := s.Diff(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printPatch(args[0], patch)
			})
		},
	}
}

func (a *app) printPatch(ref string, patch []byte) error {
	switch {
	case a.json:
		return a.printJSON(map[string]string{"schema": "pawl.diff/v1", "run": ref, "patch": string(patch)})
	case !a.Terminal:
		_, err := a.Out.Write(patch)
		return err
	case len(patch) == 0:
		_, err := fmt.Fprintf(a.Out, "%s changed nothing.\n", clean(ref))
		return err
	}
	s := a.style()
	var b strings.Builder
	for line := range strings.Lines(clean(string(patch))) {
		b.WriteString(s.patchLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
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

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
)

// completeLoops offers the names of the workspace's loops for a first
// argument. Whatever goes wrong offers nothing.
func (a *app) completeLoops(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	err := a.reading(cmd.Context(), func(s *control.Service) error {
		rows, err := s.Loops(cmd.Context())
		for _, row := range rows {
			if strings.HasPrefix(row.Name, prefix) {
				names = append(names, cleanLine(row.Name)+"\t"+excerpt(row.Goal, 60))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

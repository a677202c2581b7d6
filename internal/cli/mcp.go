package cli

import "github.com/spf13/cobra"

func newMCPCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Loops for agents and editors, over MCP", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMCPInstallCommand(a))
	return cmd
}

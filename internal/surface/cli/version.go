package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			p := a.printer()
			if p.JSON {
				return p.WriteJSON(map[string]string{
					"schema": "pawl.version/v1", "version": version, "go": runtime.Version(), "platform": platform,
				})
			}
			p.Line("pawl %s (%s, %s)", version, runtime.Version(), platform)
			return p.Err()
		},
	}
}

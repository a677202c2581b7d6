package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) cmdVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]string{
					"schema": "pawl.version/v1", "version": version, "go": runtime.Version(), "platform": platform,
				})
			}
			_, err := fmt.Fprintf(a.Out, "pawl %s (%s, %s)\n", version, runtime.Version(), platform)
			return err
		},
	}
}

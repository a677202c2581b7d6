// Command pawl runs coding agents in loops that can be trusted.
package main

import (
	"os"

	"github.com/pawl-run/pawl/internal/surface/cli"
)

func main() { os.Exit(cli.Main()) }

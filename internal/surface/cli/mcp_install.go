package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/mcp/registration"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newMCPInstallCommand(a *app) *cobra.Command {
	yes, show := false, false
	cmd := &cobra.Command{
		Use: "install CLIENT", Short: "Enter pawl into the configuration of an agent or editor", Args: exactArgs(1), ValidArgs: registration.Clients(),
		Long: `Show what would change in your configuration of ` + strings.Join(registration.Clients(), ", ") + `, and change it after a yes. It then
starts pawl mcp by itself, in each folder that you work in. Nothing else in the file is touched, comments included; an
entry of pawl that is there keeps what you have added to it. Programs that wait for minutes only are told to wait for an
hour: a step of a loop takes as long as its agent and its gates do.

--print shows the change and does nothing, also if the program is not installed. Without a terminal --yes is required.`,
		Example: "  pawl mcp install claude\n  pawl mcp install codex --print\n  pawl mcp install vscode --yes",
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := a.ownPath()
			if err != nil {
				return err
			}
			c, err := a.mcpMachine().Plan(args[0], program)
			if err != nil {
				return err
			}
			return a.enterMCP(c, yes, show)
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the change, and do nothing")
	addYesFlag(cmd, &yes)
	return cmd
}

// enterMCP shows a change of a configuration and makes it.
func (a *app) enterMCP(c registration.Change, yes, show bool) error {
	p := a.printer()
	if !c.Installed && !show {
		return &loop.Fault{
			Exit: loop.ExitMissing, What: c.Title + " is not installed", Why: "it is not in PATH, and " + c.File + " does not exist",
			Fix: "install it, or see what its configuration needs: {1}", Actions: []loop.Command{loop.PawlCommand("mcp install", c.Client).WithFlag("print")},
		}
	}
	if c.State == registration.StateSame {
		if p.JSON {
			return p.WriteJSON(c)
		}
		p.Line("pawl is in the configuration of %s already", c.Title)
		p.Field("  ", "file", output.CleanLine(c.File))
		return p.Err()
	}
	if !p.JSON {
		p.Line("%s", output.CleanLine(c.File))
		p.Text(output.Clean(c.Diff))
	}
	if show {
		if p.JSON {
			return p.WriteJSON(c)
		}
		if !c.Installed {
			p.Note("%s is not installed: it is not in PATH", c.Title)
		}
		return p.Err()
	}
	if err := a.requireConsent(yes, "changes "+c.File, loop.PawlCommand("mcp install", c.Client).String()); err != nil {
		return err
	}
	if err := c.Write(); err != nil {
		return err
	}
	if p.JSON {
		return p.WriteJSON(c)
	}
	p.Line("✓ %s knows pawl", c.Title)
	p.Field("  ", "note", c.After)
	return p.Err()
}

func (a *app) mcpMachine() registration.Machine {
	return registration.Machine{System: runtime.GOOS, Home: a.lookupEnv("HOME"), Getenv: a.lookupEnv, FindInPath: compose.Prober(a.Environ, a.Now()).FindInPath}
}

// ownPath is the path of this pawl by which another program can start it for a long
// time: as PATH finds it, which a new version does not change, and else where it is.
func (a *app) ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	own, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	for _, dir := range filepath.SplitList(a.lookupEnv("PATH")) {
		path := filepath.Join(dir, filepath.Base(self))
		if found, err := os.Stat(path); err == nil && filepath.IsAbs(path) && os.SameFile(own, found) {
			return path, nil
		}
	}
	return self, nil
}

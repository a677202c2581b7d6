package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func newServiceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "Keep pawl up at work: start it with the machine, and again if it fails", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newServiceInstallCommand(a), newServiceRemoveCommand(a))
	return cmd
}

func newServiceInstallCommand(a *app) *cobra.Command {
	own, yes, show := false, false, false
	cmd := &cobra.Command{
		Use: "install", Short: "Make pawl up a service of systemd or launchd, and start it", Args: exactArgs(0),
		Long: `Make pawl up a service of the machine (systemd), or with --user of your account (systemd or launchd), and start it. It
gets the PATH of now, PAWL_HOME if that is set, and the variables in ~/.config/pawl.env, where keys belong
(ANTHROPIC_API_KEY=…; give the file mode 600). PAWL_DATABASE belongs there, too: it may hold a
password, so that it is not written into the service, which without it uses the SQLite store.

A stop gives runs 30 seconds to end. The service is started again if it fails. systemd does not do so if only a person
can mend what is wrong, and does so within three and a half minutes if it has stopped looking at its loops.

Installing it again writes the file anew. Without a terminal --yes is required.`,
		Example: "  pawl service install --user\n  pawl service install --user --print\n  sudo pawl service install --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.systemService(own)
			if err != nil {
				return err
			}
			v, err := s.View()
			if err == nil {
				err = s.WarnOfStore(&v, a.lookupEnv(config.EnvDatabase))
			}
			if err != nil {
				return err
			}
			p := a.printer()
			if show && p.JSON {
				return p.WriteJSON(v)
			}
			if v.Warning != "" {
				p.Note("pawl: warning: %s\n  fix: %s", output.CleanLine(v.Warning), output.Clean(v.Fix))
			}
			if show {
				p.Text(v.Text)
				return p.Err()
			}
			command := loop.PawlCommand("service install")
			if own {
				command = command.WithFlag("user")
			}
			if err := a.requireConsent(yes, "writes "+v.File+" and starts pawl up by it, now and with the machine", command.String()); err != nil {
				return err
			}
			if _, err = s.Install(cmd.Context(), proc.Plain{}); err != nil {
				return err
			}
			return printService(p, v, "✓ pawl up is a service")
		},
	}
	cmd.Flags().BoolVar(&own, "user", false, "of your account, and not of the machine")
	cmd.Flags().BoolVar(&show, "print", false, "print the file, and do nothing")
	addYesFlag(cmd, &yes)
	return cmd
}

func newServiceRemoveCommand(a *app) *cobra.Command {
	own, yes := false, false
	cmd := &cobra.Command{
		Use: "remove", Short: "End the service, and remove its file", Args: exactArgs(0),
		Long: "End the service and remove its file. Runs that have begun get 30 seconds to end. Without a terminal --yes is required.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.systemService(own)
			if err != nil {
				return err
			}
			if err := a.requireConsent(yes, "ends pawl up as a service", "pawl service remove"); err != nil {
				return err
			}
			v, err := s.Remove(cmd.Context(), proc.Plain{})
			if err != nil {
				return err
			}
			v.Hint = ""
			return printService(a.printer(), v, "✓ the service is removed")
		},
	}
	cmd.Flags().BoolVar(&own, "user", false, "of your account, and not of the machine")
	addYesFlag(cmd, &yes)
	return cmd
}

func printService(p *output.Printer, v setup.ServiceView, done string) error {
	if p.JSON {
		return p.WriteJSON(v)
	}
	p.Line("%s", done)
	p.Field("  ", "file", output.CleanLine(v.File))
	p.Field("  ", "note", output.CleanLine(v.Hint))
	return p.Err()
}

// systemService is the service that would keep this pawl at work. As root it is for the
// account that asked for root.
func (a *app) systemService(own bool) (setup.SystemService, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return setup.SystemService{}, err
	}
	who, home, uid, err := serviceAccount(a.lookupEnv("SUDO_USER"))
	if err != nil {
		return setup.SystemService{}, err
	}
	if own {
		home = a.lookupEnv("HOME")
	}
	s := setup.SystemService{System: runtime.GOOS, Of: who, Home: home, UID: uid, User: own, Program: program}
	for _, name := range []string{"PATH", "PAWL_HOME"} {
		if value := a.lookupEnv(name); value != "" {
			s.Environ = append(s.Environ, name+"="+value)
		}
	}
	if a.home != "" {
		s.Environ = append(s.Environ, "PAWL_HOME="+a.absPath(a.home))
	}
	return s, nil
}

// serviceAccount is the account with a name, or without one that of this process.
func serviceAccount(name string) (who, home string, uid int, err error) {
	u, err := user.Current()
	if name != "" && err == nil {
		u, err = user.Lookup(name)
	}
	if err != nil {
		return "", "", 0, err
	}
	uid, _ = strconv.Atoi(u.Uid) // It is a number on every system that has services for pawl.
	return u.Username, u.HomeDir, uid, nil
}

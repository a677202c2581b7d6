package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// SystemService is a service of the machine's own, that keeps `pawl up` at work.
type SystemService struct {
	System  string // operating system, as Go calls it
	Of      string // account whose loops it fires
	Home    string // of that account
	UID     int
	User    bool     // it is that account's own, and not one of the machine
	Program string   // absolute path of pawl
	Environ []string // that it needs, NAME=VALUE each
}

// ServiceView says what a service is, schema pawl.service/v1.
type ServiceView struct {
	Schema string         `json:"schema"`
	File   string         `json:"file"`
	Text   string         `json:"text"`
	Start  []loop.Command `json:"start"` // that make the system know it, in order
	Stop   []loop.Command `json:"stop"`  // that end it for good
	Hint   string         `json:"hint,omitempty"`

	Warning string         `json:"warning,omitempty"` // what the service will do that nobody may expect
	Fix     string         `json:"fix,omitempty"`     // of the warning
	Actions []loop.Command `json:"actions,omitempty"` // those of Fix, as data
}

const (
	unitName  = "pawl.service"
	plistName = "run.pawl.up"
)

// View returns the file of the service and what makes the system use it.
func (s SystemService) View() (ServiceView, error) {
	v := ServiceView{Schema: "pawl.service/v1"}
	switch {
	case s.System == "linux" && s.User:
		v.File, v.Text = filepath.Join(s.Home, ".config", "systemd", "user", unitName), s.unit()
		ctl := func(args ...string) loop.Command {
			return loop.HostCommand("systemctl", append([]string{"--user"}, args...)...)
		}
		v.Start = []loop.Command{ctl("daemon-reload"), ctl("enable", "--now", unitName)}
		v.Stop = []loop.Command{ctl("disable", "--now", unitName)}
		v.Hint = "loginctl enable-linger " + s.Of + " keeps it at work while you are not logged in; journalctl --user -u pawl shows what it says"
	case s.System == "linux":
		v.File, v.Text = filepath.Join("/etc/systemd/system", unitName), s.unit()
		v.Start = []loop.Command{loop.HostCommand("systemctl", "daemon-reload"), loop.HostCommand("systemctl", "enable", "--now", unitName)}
		v.Stop = []loop.Command{loop.HostCommand("systemctl", "disable", "--now", unitName)}
		v.Hint = "journalctl -u pawl shows what it says"
	case s.System == "darwin" && s.User:
		domain := "gui/" + strconv.Itoa(s.UID)
		v.File, v.Text = filepath.Join(s.Home, "Library", "LaunchAgents", plistName+".plist"), s.plist()
		v.Start = []loop.Command{loop.HostCommand("launchctl", "bootstrap", domain, v.File)}
		v.Stop = []loop.Command{loop.HostCommand("launchctl", "bootout", domain+"/"+plistName)}
		v.Hint = "what it says is in " + s.log()
	case s.System == "darwin":
		return v, &loop.Fault{
			Exit: loop.ExitMissing, What: "no service of the whole machine", Why: "on macOS pawl works as a service of a user, who has the keys of agents",
			Fix: "{1}", Actions: []loop.Command{loop.PawlCommand("service install").WithFlag("user")},
		}
	default:
		return v, &loop.Fault{Exit: loop.ExitMissing, What: "no service on " + s.System, Why: "pawl knows systemd and launchd", Fix: "keep {1} at work in another way", Actions: []loop.Command{loop.PawlCommand("up")}}
	}
	return v, nil
}

// byHand are the exit statuses of pawl up that the same start would only meet again: a person
// has to mend what is wrong first.
var byHand = []any{loop.ExitUsage, loop.ExitUnreadable, loop.ExitNotReady, loop.ExitRefused, loop.ExitHeld}

// WarnOfStore adds a warning to a view if the service would use another store than the one that PAWL_DATABASE names
// where it is installed; empty: it names none. The error is that of ReadEnvFile for a file that pawl up would refuse.
func (s SystemService) WarnOfStore(v *ServiceView, database string) error {
	set, _, err := ReadEnvFile(s.secrets())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	theirs := proc.LookupVariable(proc.WithVariables(nil, set...), config.EnvDatabase)
	if database == "" || theirs == database {
		return nil
	}
	restart := loop.HostCommand("systemctl", "restart", unitName)
	switch {
	case s.System == "darwin":
		restart = loop.HostCommand("launchctl", "kickstart", "-k", "gui/"+strconv.Itoa(s.UID)+"/"+plistName)
	case s.User:
		restart = loop.HostCommand("systemctl", "--user", "restart", unitName)
	}
	fix := loop.Advise("correct it there, and if the service is at work: {1}", restart)
	v.Warning = "the service uses another store than you: " + s.secrets() + " names one in " + config.EnvDatabase + " that is not the one set here"
	if theirs == "" {
		add := `umask 077; printf "` + config.EnvDatabase + `=%s\n" "$` + config.EnvDatabase + `" >>` + loop.QuoteWord(s.secrets())
		fix = loop.Advise("{1}, and if the service is at work: {2}", loop.HostCommand("sh", "-c", add), restart)
		v.Warning = "the service uses another store than you: " + config.EnvDatabase + " is set here, and not in " + s.secrets() + ". It is not written into the service, because it may hold a password"
	}
	v.Fix, v.Actions = fix.String(), fix.Actions
	return nil
}

// unit is a unit of systemd. A stop reaches pawl alone, which ends its agents when their
// time is over; one of them that runs out of memory ends nobody else.
//
// A start may take as long as recovering takes. What passes by itself, such as a database that is away, is tried for
// ever. No program gains privileges. The other protections of systemd are left out: sandboxes need namespaces, mounts,
// a whole /proc, cgroups and a host name of their own, and agents work in checkouts anywhere.
func (s SystemService) unit() string {
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=pawl fires loops when they are due\nDocumentation=https://github.com/pawl-run/pawl\nStartLimitIntervalSec=0\n")
	if s.User {
		b.WriteString("\n[Service]\nType=notify\n")
	} else {
		fmt.Fprintf(&b, "Wants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=notify\nUser=%s\n", s.Of)
	}
	fmt.Fprintf(&b, "WorkingDirectory=%s\n", strings.ReplaceAll(s.Home, "%", "%%"))
	for _, kv := range s.Environ {
		fmt.Fprintf(&b, "Environment=%s\n", unitWord(kv))
	}
	// A `pawl reload` would not know the variables of the file, which may name the store.
	fmt.Fprintf(&b, "ExecStart=%s up --env-file %s\nExecReload=/bin/kill -USR1 $MAINPID\n", unitWord(s.Program), strings.ReplaceAll(unitWord(s.secrets()), "$", "$$"))
	b.WriteString("KillMode=mixed\nTimeoutStartSec=infinity\nTimeoutStopSec=60\nWatchdogSec=120\nRestart=on-failure\nRestartSec=10\nRestartPreventExitStatus=")
	fmt.Fprintln(&b, byHand...)
	fmt.Fprintf(&b, "SuccessExitStatus=%d\nOOMPolicy=continue\nDelegate=yes\nNoNewPrivileges=yes\n\n[Install]\nWantedBy=", loop.ExitInterrupted)
	if s.User {
		b.WriteString("default.target\n")
	} else {
		b.WriteString("multi-user.target\n")
	}
	return b.String()
}

// secrets is the file with the keys of agents, which pawl up reads and nobody makes.
func (s SystemService) secrets() string { return filepath.Join(s.Home, ".config", "pawl.env") }

func (s SystemService) log() string { return filepath.Join(s.Home, "Library", "Logs", "pawl.log") }

// unitWord quotes a variable or the path of a program for systemd, in which $ means nothing.
func unitWord(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`).Replace(text) + `"`
}

// plist is a property list of launchd.
func (s SystemService) plist() string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	var env strings.Builder
	for _, kv := range s.Environ {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&env, "    <key>%s</key><string>%s</string>\n", escape(name), escape(value))
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>%s</string>
  <key>ProgramArguments</key><array><string>%s</string><string>up</string><string>--env-file</string><string>%s</string></array>
  <key>WorkingDirectory</key><string>%s</string>
  <key>EnvironmentVariables</key>
  <dict>
%s  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ExitTimeOut</key><integer>60</integer>
  <key>StandardOutPath</key><string>%s</string>
  <key>StandardErrorPath</key><string>%[6]s</string>
</dict>
</plist>
`, plistName, escape(s.Program), escape(s.secrets()), escape(s.Home), env.String(), escape(s.log()))
}

// Install writes the file and makes the system use it. What was written stays if the
// system does not take it: the error names what is left to do.
func (s SystemService) Install(ctx context.Context, run proc.Runner) (ServiceView, error) {
	v, err := s.View()
	if err != nil {
		return v, err
	}
	if err := os.MkdirAll(filepath.Dir(v.File), 0o755); err != nil {
		return v, s.fileFault(v, err)
	}
	if err := os.WriteFile(v.File, []byte(v.Text), 0o644); err != nil {
		return v, s.fileFault(v, err)
	}
	return v, runAll(ctx, run, "service install: "+v.File+" is written, and nothing uses it yet", v.Start)
}

// Remove ends the service and removes its file.
func (s SystemService) Remove(ctx context.Context, run proc.Runner) (ServiceView, error) {
	v, err := s.View()
	if err != nil {
		return v, err
	}
	if _, err := os.Stat(v.File); errors.Is(err, fs.ErrNotExist) {
		return v, &loop.Fault{Exit: loop.ExitNotFound, What: "no service is installed", Why: v.File + " does not exist", Fix: "nothing is left to do", Err: loop.ErrNotFound}
	}
	if err := runAll(ctx, run, "service remove", v.Stop); err != nil {
		return v, err
	}
	if err := os.Remove(v.File); err != nil {
		return v, s.fileFault(v, err)
	}
	return v, nil
}

func (s SystemService) fileFault(v ServiceView, err error) error {
	f := &loop.Fault{Exit: loop.ExitError, What: "write " + v.File, Why: err.Error(), Err: err, Fix: "make its folder writable"}
	if !s.User && errors.Is(err, fs.ErrPermission) {
		f = f.WithAdvice(loop.Advise("do it as root, or {1} for your own account", loop.PawlCommand("service install").WithFlag("user")))
	}
	return f
}

// runAll runs commands of the system, in order.
func runAll(ctx context.Context, run proc.Runner, doing string, commands []loop.Command) error {
	for i, c := range commands {
		var said strings.Builder
		res, err := run.Run(ctx, proc.Spec{Argv: append([]string{c.Program}, c.Args...), Env: os.Environ(), Stdout: &said, Stderr: &said})
		if err == nil && res.Exit == 0 {
			continue
		}
		why := strings.TrimSpace(said.String())
		if err != nil {
			why = err.Error()
		}
		f := &loop.Fault{Exit: loop.ExitMissing, What: doing, Why: c.String() + ": " + why, Fix: "do it by hand:", Actions: commands[i:], Err: err}
		for n := range f.Actions {
			f.Fix += fmt.Sprintf(" {%d}", n+1)
			if n+1 < len(f.Actions) {
				f.Fix += " &&"
			}
		}
		return f
	}
	return nil
}

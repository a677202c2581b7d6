package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// sendCommand gives a notice to a line of the shell: as JSON on standard input, and in
// variables. No part of the notice is ever part of the line.
func (s *Sender) sendCommand(ctx context.Context, c loop.Channel, n loop.Notice) error {
	body, err := encode(n)
	if err != nil {
		return err
	}
	spec := proc.Spec{
		Argv: []string{"/bin/sh", "-c", c.Target}, Dir: s.Dir, Stdin: bytes.NewReader(append(body, '\n')),
		Env: proc.WithVariables(s.Environ, variables(n)...),
	}
	return s.run(ctx, spec)
}

// variables are what a command finds in its environment about a notice.
func variables(n loop.Notice) []string {
	over := ""
	if n.Over {
		over = "1"
	}
	var list []string
	for _, v := range [][2]string{
		{"ID", n.ID},
		{"KIND", string(n.Kind)},
		{"EVENT", string(n.Event)},
		{"OVER", over},
		{"TITLE", n.Title},
		{"BODY", n.Body},
		{"LOOP", n.Loop},
		{"RUN", n.Run},
		{"WORKSPACE", n.Root},
		{"COMMAND", describeAnswer(n)},
	} {
		list = append(list, "PAWL_NOTICE_"+v[0]+"="+strings.ReplaceAll(v[1], "\x00", ""))
	}
	return list
}

// run runs a program to its end. What it printed is said if it failed.
func (s *Sender) run(ctx context.Context, spec proc.Spec) error {
	printed := &proc.Bounded{Limit: mostAnswer}
	spec.Stdout, spec.Stderr, spec.Timeout = printed, printed, timeout
	spec.Limits.Output = 1 << 20
	res, err := s.Exec.Run(ctx, spec)
	switch said := strings.TrimSpace(printed.String()); {
	case err != nil:
		return fmt.Errorf("start %s: %w", filepath.Base(spec.Argv[0]), err)
	case res.Ended == proc.TimedOut || ctx.Err() != nil:
		return fmt.Errorf("%s took longer than %s", filepath.Base(spec.Argv[0]), timeout)
	case res.Exit == 0 && res.Ended == proc.Exited:
		return nil
	case said != "":
		return fmt.Errorf("exit status %d: %s", res.Exit, said)
	default:
		return fmt.Errorf("exit status %d, and it printed nothing", res.Exit)
	}
}

func (s *Sender) sendDesktop(ctx context.Context, n loop.Notice) error {
	argv, err := s.desktopCommand(n)
	if err != nil {
		return err
	}
	return s.run(ctx, proc.Spec{Argv: argv, Env: s.Environ})
}

// script shows a notification with the arguments of osascript, which it does not read as
// its language.
const script = `on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run`

// desktopCommand is the program that shows a notice on this system.
func (s *Sender) desktopCommand(n loop.Notice) ([]string, error) {
	switch s.System {
	case "linux":
		if err := s.find("notify-send"); err != nil {
			return nil, &loop.Fault{
				Exit: loop.ExitMissing, What: "notify-send is not installed", Why: "it shows notices on this desktop", Err: err,
				Fix: "install it (Debian: libnotify-bin, Fedora: libnotify), or use another kind of channel",
			}
		}
		urgency := "normal"
		if n.Kind == loop.NoticeNeedsYou && !n.Over {
			urgency = "critical"
		}
		// Servers may read the body as markup.
		body := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text(n))
		return []string{"notify-send", "--app-name=pawl", "--urgency=" + urgency, "--", n.Title, body}, nil
	case "darwin":
		return []string{"/usr/bin/osascript", "-e", script, n.Title, text(n)}, nil
	}
	return nil, &loop.Fault{Exit: loop.ExitMissing, What: "pawl shows no notices on a desktop of " + s.System, Fix: "use another kind of channel"}
}

// find looks a program up as package proc does.
func (s *Sender) find(program string) error {
	for _, dir := range proc.PathDirs(proc.LookupVariable(s.Environ, "PATH")) {
		if info, err := os.Stat(filepath.Join(dir, program)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return nil
		}
	}
	return errors.New(program + " is in no folder of PATH")
}

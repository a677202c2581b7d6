package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	sdnotify "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/client"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/surface/mcp"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

// drainTime is how long runs that have begun may go on after pawl up was asked to end.
const drainTime = 30 * time.Second

func newUpCommand(a *app) *cobra.Command {
	workers, socket, at, mcpAt, envFile := 8, false, "", "", ""
	cmd := &cobra.Command{
		Use: "up", Short: "Fire loops when they are due or events happen, until it is ended", Args: exactArgs(0),
		Long: `Fire the loops of all workspaces on this machine when they are due, and when events of their key on happen, and execute
their runs, until it is ended.

The repository that it is started in is registered first. What was missed while nobody was there is made up for as the
key catch_up of each loop says. An interrupt, SIGTERM or pawl down ends it: runs that have begun get 30 seconds to end,
then they are interrupted and keep their work; a second interrupt ends it at once. One pawl up works for a store on
each machine.

With --env-file it first sets the variables of a file, such as the keys of agents: NAME=VALUE a line, or NAME='VALUE'; a
line that begins with # is a comment.

With --listen it also receives webhooks for the loops whose key on names them, at /webhooks/NAME, and serves nothing else
there. Each delivery has to be signed by the rules of Standard Webhooks. The secret is in the file webhooks/NAME.key in
pawl's home, or in the variable PAWL_WEBHOOK_NAME, with the name in capitals and _ for each -. If a webhook has no secret,
pawl up does not start.

With --mcp it also serves agents and editors at /mcp there, as pawl mcp does. Each request has to bring the token of the
file mcp/agent.key in pawl's home, or that of mcp/viewer.key, which only reads. Both are made if they are missing.`,
		Example: "  pawl up\n  pawl up --mcp 127.0.0.1:8788\n  pawl up --listen 127.0.0.1:8787\n  pawl next\n  pawl down",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if envFile != "" {
				if err := a.setVariables(a.absPath(envFile)); err != nil {
					return err
				}
			}
			if socket {
				return printSocket(a)
			}
			if err := checkWorkers(workers); err != nil {
				return err
			}
			return a.withParts(cmd.Context(), false, func(parts *compose.Parts) error {
				if _, err := parts.Verbs(cmd.Context(), a.workDir()); err != nil && compose.CheckRepository(cmd.Context(), a.workDir()) == nil {
					return err
				}
				o := compose.DaemonOptions{Workers: workers, Notices: true}
				if at != "" {
					l, err := listenAt(cmd.Context(), "--listen", at)
					if err != nil {
						return err
					}
					defer func() { _ = l.Close() }()
					o.Webhooks = l
				}
				if mcpAt == "" {
					return runDaemon(cmd.Context(), a, parts, o, nil)
				}
				l, err := listenAt(cmd.Context(), "--mcp", mcpAt)
				if err != nil {
					return err
				}
				defer func() { _ = l.Close() }()
				return runDaemon(cmd.Context(), a, parts, o, l)
			})
		},
	}
	cmd.Flags().StringVar(&mcpAt, "mcp", mcpAt, "serve agents over MCP at this loopback `ADDRESS:PORT`")
	cmd.Flags().BoolVar(&socket, "socket", false, "print where pawl up answers, and start nothing")
	cmd.Flags().StringVar(&envFile, "env-file", "", "set the variables of this `FILE`, if it is there")
	cmd.Flags().IntVar(&workers, "workers", workers, "how many runs are executed at once, at most `N`")
	cmd.Flags().StringVar(&at, "listen", at, "receive webhooks at this loopback `ADDRESS:PORT`")
	return cmd
}

// setVariables sets the variables of a file in this process.
func (a *app) setVariables(path string) error {
	set, shared, err := setup.ReadEnvFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		a.printer().Note("pawl: no file %s: no variables are set by it", output.CleanLine(path))
		return nil
	}
	if err != nil {
		return err
	}
	if shared {
		a.printer().Note("pawl: warning: other users can read or change %s, which holds keys; fix: %s", output.CleanLine(path), loop.HostCommand("chmod", "600", path))
	}
	a.Environ = proc.WithVariables(a.Environ, set...)
	for _, kv := range set {
		name, value, _ := strings.Cut(kv, "=")
		if err := a.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s of %s: %w", name, path, err)
		}
	}
	return nil
}

// listenAt listens at an address of this machine that no other one can reach.
func listenAt(ctx context.Context, flag, at string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(at)
	_, numberErr := strconv.ParseUint(port, 10, 16)
	if ip := net.ParseIP(host); err != nil || numberErr != nil || ip == nil || !ip.IsLoopback() {
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: flag + " " + at, Why: "it is not an address of this machine alone, and a port",
			Fix: "write one like 127.0.0.1:8787; for senders elsewhere, let a reverse proxy or a tunnel with TLS lead to it",
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, &loop.Fault{Exit: loop.ExitHeld, What: flag + " " + at, Why: err.Error(), Err: err, Fix: "name another port"}
	}
	return l, nil
}

func checkWorkers(n int) error {
	if n < 1 {
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("--workers %d", n), Why: "somebody has to execute the runs", Fix: "write 1 or more"}
	}
	return nil
}

// runDaemon is at work until ctx ends. It says what happens.
func runDaemon(ctx context.Context, a *app, parts *compose.Parts, o compose.DaemonOptions, agents net.Listener) (err error) {
	seat, err := a.seat()
	if err != nil {
		return err
	}
	running := daemon.Running{Holder: parts.Self(), Version: version, Since: parts.Now()}
	claimed, err := seat.Claim(running)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claimed.Leave()) }()
	p := a.printer()
	var telling sync.Mutex
	o.Tell = func(h daemon.Happened) {
		telling.Lock()
		defer telling.Unlock()
		printHappened(p, parts.Now(), h)
	}
	d, err := parts.Daemon(ctx, o)
	if err != nil {
		return err
	}
	listener, err := claimed.Listen(ctx)
	if err != nil {
		d.Stop(ctx)
		return err
	}
	if err := d.Start(ctx); err != nil {
		d.Stop(ctx)
		return errors.Join(err, listener.Close())
	}
	server := parts.Server(d, version, a.actor("").Who)
	stopServing := daemon.Serve(ctx, listener, server.Handler(), compose.Log(a.Environ))
	stopAgents := func(context.Context) {}
	if agents != nil {
		if stopAgents, err = serveAgents(ctx, a, server, agents); err != nil {
			d.Stop(ctx)
			stopServing(ctx)
			return err
		}
	}
	running.Socket = listener.Addr().String()
	if err := claimed.Announce(running); err != nil {
		a.printer().Note("pawl: warning: %v: other commands work beside this one", err)
	}
	telling.Lock()
	printUp(p, d)
	if o.Webhooks != nil {
		p.Line("webhooks are received at http://%s%sNAME", o.Webhooks.Addr(), listen.WebhookPath)
	}
	if agents != nil {
		p.Line("agents are served at http://%s%s, with the token of mcp/agent.key or mcp/viewer.key in pawl's home", agents.Addr(), mcp.Path)
	}
	telling.Unlock()
	stopTelling := tellSystemd(ctx, d)
	reloads, stopReloads := listenForReloads()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-reloads:
			d.Reload()
		}
	}
	stopReloads()
	stopTelling()
	if n := d.Busy(); n > 0 {
		p.Note("pawl: %s to end, for at most %s; a second interrupt ends it at once", waitForRuns(n), drainTime)
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	d.Stop(draining)
	stopAgents(draining)
	stopServing(draining)
	return nil
}

// tellSystemd tells a service manager that the daemon is at work, and from time to time
// that it does not hang. Stop tells that it ends. Without such a manager it does nothing.
func tellSystemd(ctx context.Context, d *daemon.Daemon) (stop func()) {
	tell := func(state string) { _, _ = sdnotify.SdNotify(false, state) } // Nobody could mend it.
	tell(sdnotify.SdNotifyReady)
	done := make(chan struct{})
	var telling sync.WaitGroup
	if gap, err := sdnotify.SdWatchdogEnabled(false); err == nil && gap > 0 {
		telling.Go(func() {
			tick := time.NewTicker(gap / 2)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-ctx.Done():
					return
				case <-tick.C:
					if !d.Hangs() {
						tell(sdnotify.SdNotifyWatchdog)
					}
				}
			}
		})
	}
	return func() {
		close(done)
		telling.Wait()
		tell(sdnotify.SdNotifyStopping)
	}
}

// printSocket prints the path of the socket of the daemon that is at work.
func printSocket(a *app) error {
	_, running, err := a.findDaemon()
	if err != nil {
		return err
	}
	if running == nil || running.Socket == "" {
		return noDaemonFault("no socket is there")
	}
	p := a.printer()
	p.Line("%s", output.Clean(running.Socket))
	return p.Err()
}

// noDaemonFault says that no daemon is at work.
func noDaemonFault(what string) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: what, Why: "pawl up is not at work on this machine", Fix: "start it: {1}", Actions: []loop.Command{loop.PawlCommand("up")},
	}
}

func waitForRuns(n int) string { return "waiting for " + pluralize(n, "run") }

func printUp(p *output.Printer, d *daemon.Daemon) {
	workspaces, found := d.Loops()
	broken := ""
	if found.Broken > 0 {
		broken = fmt.Sprintf(", %d cannot run (pawl check)", found.Broken)
	}
	p.Line("pawl is up: %s in %s%s; pawl next shows what comes", pluralize(found.Loops, "loop"), pluralize(workspaces, "workspace"), broken)
}

// printHappened prints a line about what the daemon did.
func printHappened(p *output.Printer, now time.Time, h daemon.Happened) {
	at := now.UTC().Format("15:04:05")
	switch {
	case h.Fired != nil:
		by := ""
		if h.Fired.Event != "" {
			by = " by " + output.CleanLine(h.Fired.Event)
		}
		p.Line("%s %s#%d fires%s", at, output.CleanLine(h.Loop), h.Fired.N, by)
	case h.Ended != nil:
		line := fmt.Sprintf("%s %s#%d %s", at, output.CleanLine(h.Loop), h.Ended.N, styleOutcome(p.Style, h.Ended.Outcome))
		if h.Ended.Branch != "" {
			line += " " + output.CleanLine(h.Ended.Branch)
		}
		if h.Ended.Approval != "" {
			line += ": " + loop.PawlCommand("approve", h.Ended.Approval).String()
		}
		if detail, _, _ := strings.Cut(h.Ended.Detail, "\n"); detail != "" {
			line += ": " + output.CleanLine(detail)
		}
		p.Line("%s", line)
	case h.Recovered != nil:
		p.Line("%s %s", at, describeRecovered(*h.Recovered))
	default:
		where := h.Loop
		if where == "" {
			where = h.Root
		}
		if where != "" {
			where += ": "
		}
		what := h.Wrong.Error()
		if f, ok := errors.AsType[*loop.Fault](h.Wrong); ok && f.Fix != "" {
			what += "; " + f.Advice().String()
		}
		p.Note("%s pawl: %s%s", at, output.CleanLine(where), output.CleanLine(what))
	}
}

func (a *app) seat() (daemon.Seat, error) {
	o, err := a.composeOptions()
	return daemon.SeatOf(o.Settings), err
}

func newDownCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End pawl up or pawl worker on this machine, and wait for it", Args: exactArgs(0),
		Long: `End pawl up or pawl worker on this machine, and wait until it has ended. Runs that have begun get 30 seconds to end,
then they are interrupted and keep their work. Planned times that pass meanwhile are made up for when it is started
again, as the keys catch_up and start_deadline of each loop say.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			seat, running, err := a.findDaemon()
			if err != nil {
				return err
			}
			if running == nil {
				return a.printAnswer(daemon.Running{}.Answer("absent"), "pawl up is not at work on this machine")
			}
			if !isEnding(ctx, *running) {
				err = daemon.End(*running)
			}
			if err != nil {
				return err
			}
			for {
				_, there, err := seat.Find()
				if err != nil {
					return err
				}
				if !there {
					return a.printAnswer(running.Answer("ended"), "pawl up has ended")
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(50 * time.Millisecond):
				}
			}
		},
	}
}

// isEnding reports whether a daemon waits for its runs to end: to ask it again would end
// them at once.
func isEnding(ctx context.Context, r daemon.Running) bool {
	c := client.New(r.Socket)
	defer c.Close()
	status, err := c.Status(ctx)
	return err == nil && status.Ending
}

func newReloadCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make pawl up or pawl worker read all definitions again now", Args: exactArgs(0),
		Long: `Make pawl up or pawl worker read the definitions of all loops again now, which it does every 30 seconds anyway. Live runs
keep the definition that they began with.`,
		RunE: func(*cobra.Command, []string) error {
			_, running, err := a.findDaemon()
			if err != nil {
				return err
			}
			if running == nil {
				return noDaemonFault("nobody is there to reload")
			}
			if err := daemon.Reload(*running); err != nil {
				return err
			}
			text := fmt.Sprintf("pawl up (process %d) reads all definitions again; pawl check says what is wrong with a loop", running.Holder.PID)
			return a.printAnswer(running.Answer("reloading"), text)
		},
	}
}

// printAnswer prints what came of asking for the daemon.
func (a *app) printAnswer(answer daemon.Answer, text string) error {
	p := a.printer()
	if p.JSON {
		return p.WriteJSON(answer)
	}
	p.Line("%s", text)
	return p.Err()
}

// findDaemon returns the daemon of this machine and store; nil if none is at work.
func (a *app) findDaemon() (daemon.Seat, *daemon.Running, error) {
	seat, err := a.seat()
	if err != nil {
		return seat, nil, err
	}
	r, there, err := seat.Find()
	if err != nil || !there {
		return seat, nil, err
	}
	if host, _ := os.Hostname(); r.Holder.Host != host {
		return seat, nil, &loop.Fault{
			Exit: loop.ExitHeld, What: "pawl up is at work on another machine", Why: "on " + r.Holder.Host + ", which shares this home", Fix: "ask it there",
		}
	}
	return seat, &r, nil
}

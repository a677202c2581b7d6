package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/client"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// caller carries verbs out: the daemon of the store does so if one is at work, else this
// process.
type caller struct {
	a      *app
	dir    string // in whose workspace
	by     loop.Actor
	key    string // verb.Call.Key
	say    func(verb.Progress)
	daemon *client.Client // nil: none is at work, or it does not answer
	silent error          // why a daemon that is at work does not answer, else nil

	parts      *openParts
	workspaces map[bool]*api.Workspace // of this process, by whether they may write
}

// openParts are the parts of this process that callers have opened. Close them.
type openParts struct {
	mu  sync.Mutex
	all map[bool]*compose.Parts // by whether they may write

	said sync.Map // what was printed about the daemon
}

// close closes the stores.
func (o *openParts) close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, parts := range o.all {
		if closed := parts.Close(); closed != nil {
			err = errors.Join(err, fmt.Errorf("close the store: %w", closed))
		}
	}
	o.all = nil
	return err
}

// withCaller calls fn with what carries verbs out for the person who uses the command. Say is
// told what happens meanwhile; nil: it is printed.
func (a *app) withCaller(ctx context.Context, say func(verb.Progress), fn func(verb.Caller) error) (err error) {
	if say == nil {
		say = a.printProgress
	}
	return a.withCallerAs(ctx, a.actor(""), say, fn)
}

// withCallerAs is withCaller for somebody.
func (a *app) withCallerAs(ctx context.Context, by loop.Actor, say func(verb.Progress), fn func(verb.Caller) error) (err error) {
	c := &caller{a: a, dir: a.workDir(), by: by, say: say, parts: &openParts{}, workspaces: map[bool]*api.Workspace{}}
	if err := c.findDaemon(ctx); err != nil {
		return err
	}
	defer func() {
		c.leaveDaemon()
		err = errors.Join(err, c.parts.close())
	}()
	return fn(c)
}

func (c *caller) leaveDaemon() {
	if c.daemon != nil {
		c.daemon.Close()
	}
}

// findDaemon finds the daemon of the store on this machine, if one is at work.
func (c *caller) findDaemon(ctx context.Context) error {
	seat, err := c.a.seat()
	if err != nil {
		return err
	}
	running, there, err := seat.Find()
	if err != nil {
		return nil //nolint:nilerr // Of a home that cannot be used, opening the store says what is wrong.
	}
	if !there {
		if running.Holder.PID != 0 {
			c.note("pawl: warning: pawl up has died (process %d, at work since %s): no loop fires by itself until it is started again: pawl up",
				running.Holder.PID, running.Since.UTC().Format(time.RFC3339))
		}
		return nil
	}
	if host, _ := os.Hostname(); running.Holder.Host != host || running.Socket == "" {
		return nil // It is on another machine that shares the home, or about to start.
	}
	d := client.New(running.Socket)
	asked := c.a.Now() // What it writes from now on is never dated later than this process reckons.
	status, err := d.Status(ctx)
	switch {
	case err != nil:
		d.Close()
		c.silent = silentFault(running, err)
		return nil
	case status.Version != version:
		d.Close()
		c.note("pawl: pawl up is version %s and this is %s, so that it is not asked: start it again", output.CleanLine(status.Version), version)
		return nil
	}
	c.a.clockLead.Store(int64(status.Now.Sub(asked)))
	d.Dir, d.By, d.Key, d.Say = c.dir, c.by, c.key, c.say
	c.daemon = d
	return nil
}

// note prints a line about the daemon, once for all callers that share what they have opened.
func (c *caller) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if _, said := c.parts.said.LoadOrStore(line, true); !said {
		c.a.printer().Note("%s", line)
	}
}

// silentFault is the error for a daemon that is at work and does not answer.
func silentFault(r daemon.Running, err error) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "pawl up does not answer", Why: fmt.Sprintf("process %d is at work since %s: %v", r.Holder.PID, r.Since.UTC().Format(time.RFC3339), err), Err: err,
		Fix: fmt.Sprintf("if it is stopped, kill -CONT %d lets it go on; kill -KILL %d ends it, and the next command concludes its runs", r.Holder.PID, r.Holder.PID),
	}
}

// Call carries a verb out. Who only reads does so also while the daemon is silent, and
// the kill switch is set then, too.
func (c *caller) Call(ctx context.Context, v verb.Info, in, out any) error {
	if c.daemon != nil {
		err := c.daemon.Call(ctx, v, in, out)
		if err == nil || v.Writes || ctx.Err() != nil {
			return err
		}
		if status, gone := c.daemon.Status(ctx); gone == nil && !status.Ending {
			return err
		}
		// It has ended meanwhile, and what it was asked to read is there without it.
	}
	if c.silent != nil && v.Writes && !v.Stops {
		return c.silent
	}
	return c.carryOut(ctx, v, in, out)
}

// carryOut carries a verb out in this process.
func (c *caller) carryOut(ctx context.Context, v verb.Info, in, out any) error {
	if v.Needs != "" {
		return &loop.Fault{
			Exit: loop.ExitHeld, What: "no daemon is at work", Why: v.Needs, Fix: "start one: {1}", Actions: []loop.Command{loop.PawlCommand("up")}, Err: verb.ErrNoDaemon,
		}
	}
	opened := waiting.For(ctx, "pawl to open its store and the repository", nil)
	defer opened()
	parts, err := c.open(ctx, v)
	if err != nil {
		return err
	}
	return verb.Local{Request: verb.Call{
		Store: parts.StoreVerbs(), By: c.by, Key: c.key, Say: c.say,
		Open: func(ctx context.Context, register bool) (verb.Workspace, error) {
			defer opened()
			if ws := c.workspaces[register]; ws != nil {
				return ws, nil
			}
			ws, err := parts.Open(ctx, c.dir, register)
			if err == nil {
				c.workspaces[register] = ws
			}
			return ws, err
		},
	}}.Call(ctx, v, in, out)
}

// open opens the parts that a verb needs. Readers share those of writers, and look again whether
// there is a store as long as there was none.
func (c *caller) open(ctx context.Context, v verb.Info) (*compose.Parts, error) {
	c.parts.mu.Lock()
	defer c.parts.mu.Unlock()
	for _, parts := range []*compose.Parts{c.parts.all[true], c.parts.all[v.Writes]} {
		if parts != nil && parts.Store() != nil {
			return parts, nil
		}
	}
	o, err := c.a.composeOptions()
	if err != nil {
		return nil, err
	}
	o.ReadOnly = !v.Writes
	if v.Writes && v.InWorkspace && !v.Stops {
		if _, err := os.Stat(o.Settings.Database); err != nil {
			// Outside of a workspace no store is made.
			if err := compose.CheckRepository(ctx, c.dir); err != nil {
				return nil, err
			}
		}
	}
	parts, err := compose.New(ctx, o)
	if err != nil {
		return nil, err
	}
	if c.parts.all == nil {
		c.parts.all = map[bool]*compose.Parts{}
	}
	c.parts.all[v.Writes] = parts
	c.a.opened.Store(parts)
	return parts, nil
}

// printProgress prints what happened while a verb is carried out.
func (a *app) printProgress(r verb.Progress) {
	p := a.printer()
	switch {
	case r.Replaced != "":
		p.Note("pawl: the clone of another repository was here before, workspace %s; its runs stay in the store, and pawl init --join %s in a clone of it takes them up", r.Replaced, r.Replaced)
	case r.Recovered != nil:
		p.Note("pawl: %s", describeRecovered(*r.Recovered))
	case r.Warning != nil:
		f := verb.Explain(r.Warning.Err())
		p.Note("pawl: warning: %s", output.Indent(joinNonEmpty("\n", f.What, f.Why, f.Advice().String()), "  "))
	}
}

package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// MachineRows returns the rows that belong to no loop.
func (d Doctor) MachineRows(ctx context.Context) []DoctorRow {
	var rows []DoctorRow
	add := func(state, check, detail, fix string, actions ...loop.Command) {
		rows = append(rows, newRow("", state, check, detail, fix, actions...))
	}
	d.checkRepository(ctx, add)
	d.checkAgents(ctx, add)
	d.checkStore(ctx, add)
	d.checkPaused(ctx, add)
	d.checkClock(ctx, add)
	d.checkDisk(add)
	d.checkMirrors(add)
	d.checkNotices(ctx, add)
	return rows
}

func (d Doctor) checkRepository(ctx context.Context, add adder) {
	if d.Service == nil {
		why, _, _ := strings.Cut(fmt.Sprint(d.Reason), "\n")
		add(readiness.StateWarn, "repository", why, "git init, and make a first commit; or name one with --workspace DIR")
		return
	}
	if _, err := d.Service.ws.Repo.Base(ctx, ""); err != nil {
		f := faultIn(err)
		add(readiness.StateBad, "repository", f.What, f.Fix, f.Actions...)
		return
	}
	add(readiness.StateOK, "repository", d.Service.ws.Root, "")
}

// checkAgents lists the installed agents, and warns if there is none.
func (d Doctor) checkAgents(ctx context.Context, add adder) {
	found := false
	for _, a := range d.Probe.FindAgents(ctx) {
		if a.Path != "" {
			found = true
			add(agentRow(a))
		}
	}
	if !found {
		add(readiness.StateWarn, "agents", "none of claude, codex, gemini, opencode, qwen, goose is on PATH",
			"npm install -g @anthropic-ai/claude-code, or name any program with agent_command")
	}
}

func (d Doctor) checkStore(ctx context.Context, add adder) {
	if d.Store != nil {
		f := faultIn(d.Store)
		add(readiness.StateBad, "store", f.Error(), f.Fix, f.Actions...)
		return
	}
	if d.Service == nil {
		return
	}
	info, err := d.Service.StoreInfo(ctx)
	switch {
	case err != nil:
		add(readiness.StateBad, "store", err.Error(), "see whether "+d.Home+" can be read and written")
	case info.State == StoreNone:
		add(readiness.StateOK, "store", "none yet; the first run makes it in "+d.Home, "")
	case info.State == StoreUnreachable:
		add(readiness.StateBad, "store", info.Location+": "+info.Problem, "start the database, or correct PAWL_DATABASE")
	case info.Version > store.SchemaVersion:
		add(readiness.StateBad, "store", fmt.Sprintf("%s %s, tables version %d, and this pawl knows up to %d: it only reads them", info.Driver, info.Location, info.Version, store.SchemaVersion),
			"use the newer pawl that wrote it")
	case info.Version < store.SchemaVersion && len(d.sharers(ctx)) > 0:
		add(readiness.StateBad, "store", fmt.Sprintf("%s %s, tables version %d, and this pawl needs %d; other nodes share them: %s", info.Driver, info.Location, info.Version, store.SchemaVersion, strings.Join(d.sharers(ctx), ", ")),
			"when every node has the pawl that it is to have: {1}", loop.PawlCommand("store migrate"))
	case info.Version < store.SchemaVersion:
		add(readiness.StateWarn, "store", fmt.Sprintf("%s %s, tables version %d, and this pawl needs %d", info.Driver, info.Location, info.Version, store.SchemaVersion),
			"any command that writes brings them up to date")
	default:
		add(readiness.StateOK, "store", fmt.Sprintf("%s %s, tables version %d", info.Driver, info.Location, info.Version), "")
	}
}

// sharers are the names of the other nodes that share the store, as far as they can be read.
func (d Doctor) sharers(ctx context.Context) (names []string) {
	_ = d.Service.ws.Store.View(ctx, func(r *store.Reader) error {
		nodes, err := r.Nodes(ctx)
		names = nil
		for _, n := range nodes {
			if n.ID != d.Service.ws.Node.ID {
				names = append(names, n.Name)
			}
		}
		return err
	})
	return names
}

// checkNotices says where notices are sent, and warns of a channel whose last delivery
// failed.
func (d Doctor) checkNotices(ctx context.Context, add adder) {
	if d.Service == nil || d.Service.ws.Store == nil {
		add(readiness.StateOK, "notify", "no channel yet", "{1} adds one", loop.PawlCommand("notify add"))
		return
	}
	var names []string
	failing := map[string]string{}
	err := d.Service.ws.Store.View(ctx, func(r *store.Reader) error {
		channels, err := r.Channels(ctx)
		names = nil
		for _, c := range channels {
			h, err := r.ChannelHealth(ctx, c.Name)
			if err != nil {
				return err
			}
			if names = append(names, c.Name); h.Last.Error != "" && h.Last.State != loop.DeliveryDropped {
				failing[c.Name] = h.Last.Error
			}
		}
		return err
	})
	switch {
	case err != nil:
		add(readiness.StateWarn, "notify", "the channels cannot be read: "+err.Error(), "see that the store can be used")
	case len(names) == 0:
		add(readiness.StateOK, "notify", "no channel yet", "{1} adds one", loop.PawlCommand("notify add"))
	case len(failing) == 0:
		add(readiness.StateOK, "notify", "channels: "+strings.Join(names, ", "), "")
	}
	for _, name := range names {
		if failing[name] != "" {
			add(readiness.StateWarn, "notify", fmt.Sprintf("the channel %s does not deliver: %s", name, failing[name]), "see whether it works: {1}", loop.PawlCommand("notify test", name))
		}
	}
}

// checkPaused adds a row if a kill switch stops all loops, in the checkout or in the
// store.
func (d Doctor) checkPaused(ctx context.Context, add adder) {
	if d.Service == nil {
		return
	}
	sw, err := d.Service.ws.Paused(ctx)
	switch {
	case err != nil:
		add(readiness.StateWarn, "paused", "the kill switch of the store cannot be read: "+err.Error(), "see that the store can be used")
	case !sw.IsZero():
		clears := sw.ClearedBy("")
		add(readiness.StateWarn, "paused", "no loop runs: "+sw.String(), clears.Text, clears.Actions...)
	}
}

// checkClock compares the machine's clock with that of the database, and with the time
// of a new file, which on network disks is that of another machine.
func (d Doctor) checkClock(_ context.Context, add adder) {
	const check, fix = "clock", "set the clock: timedatectl set-ntp true"
	now := d.Probe.Now
	zone, _ := now.Zone()
	detail := now.Format(time.RFC3339) + ", zone " + zone
	if d.Service != nil && d.Service.ws.Store != nil {
		skew := d.Service.ws.Store.Skew()
		detail += ", " + node.DescribeSkew(skew)
		if skew.Abs() > node.MostSkew {
			add(readiness.StateWarn, check, detail+", whose clock decides about leases, approvals and budgets", fix)
			return
		}
	}
	if d.Service != nil {
		if info, err := os.Stat(filepath.Join(d.Service.ws.Root, ".git")); err == nil && info.ModTime().Sub(now) > node.MostSkew {
			add(readiness.StateWarn, check, detail+"; the repository was changed later than now", fix)
			return
		}
	}
	add(readiness.StateOK, check, detail, "")
}

// Limits of free disk space, below which runs fail or will soon fail.
const (
	tooFull  = 100 << 20
	nearFull = 1 << 30
)

func (d Doctor) checkDisk(add adder) {
	dir := existingFolder(d.Home)
	free, err := d.Probe.FreeDisk(dir)
	detail := fmt.Sprintf("%.1f GiB free for %s", float64(free)/(1<<30), d.Home)
	switch {
	case err != nil:
		add(readiness.StateWarn, "disk", "free space of "+dir+" is not known: "+err.Error(), "see df "+dir)
	case free < tooFull:
		add(readiness.StateBad, "disk", detail, "make room, or set PAWL_HOME to a larger disk")
	case free < nearFull:
		add(readiness.StateWarn, "disk", detail, "make room, or set PAWL_HOME to a larger disk")
	default:
		add(readiness.StateOK, "disk", detail, "")
	}
}

// checkMirrors adds a row with the size of the mirrored histories, if there are any.
func (d Doctor) checkMirrors(add adder) {
	key := ""
	if d.Service != nil {
		key = workspace.RepositoryKey(d.Service.ws.Repo)
	}
	mirrors := runenv.Host{Home: d.Home}.Mirrors()
	u, err := mirrors.Usage(key)
	switch {
	case err != nil:
		add(readiness.StateWarn, "history", "what sandboxes show of it cannot be measured: "+err.Error(), "see whether "+mirrors.Dir+" can be read")
	case u.Mirrors > 0:
		const mib = 1 << 20
		detail := fmt.Sprintf("%.1f MiB packed for sandboxes in %s", float64(u.Bytes)/mib, mirrors.Dir)
		if key != "" {
			detail += fmt.Sprintf(", %.1f MiB of this repository", float64(u.Own)/mib)
		}
		add(readiness.StateOK, "history", detail, "{1} removes what is not used", loop.PawlCommand("recover prune"))
	}
}

// existingFolder returns the nearest existing folder at or above a path.
func existingFolder(path string) string {
	for !isDir(path) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

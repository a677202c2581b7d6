package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/config"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/probe"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/waiting"
)

// checkFlags judges the flags that all commands share.
func (a *app) checkFlags() error {
	a.json = a.json || a.jq != ""
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return &loop.Fault{Exit: loop.ExitUsage, What: "invalid --color " + quote(a.color), Fix: "write auto, always or never"}
}

// colored reports whether decorations are wanted: the flag first, then
// NO_COLOR, then CLICOLOR_FORCE, then whether anybody sees them.
func (a *app) colored() bool {
	switch force := a.variable("CLICOLOR_FORCE"); {
	case a.color == "always":
		return true
	case a.color == "never", a.variable("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return a.Terminal && a.variable("TERM") != "dumb"
}

func (a *app) variable(name string) string {
	for _, kv := range a.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// dir is where the workspace is looked for.
func (a *app) dir() string {
	if a.workspace == "" {
		return a.Dir
	}
	if filepath.IsAbs(a.workspace) {
		return a.workspace
	}
	return filepath.Join(a.Dir, a.workspace)
}

func (a *app) options() (compose.Options, error) {
	home := a.home
	if home != "" && !filepath.IsAbs(home) {
		home = filepath.Join(a.Dir, home)
	}
	settings, err := config.Load(config.Settings{Home: home}, a.Environ)
	return compose.Options{Settings: settings, Environ: a.Environ, Log: compose.Log(a.Environ)}, err
}

// reading calls fn with verbs that never write.
func (a *app) reading(ctx context.Context, fn func(*compose.Verbs) error) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	o.ReadOnly = true
	return a.with(ctx, o, fn)
}

// writing concludes what dead processes left, says so, and calls fn with verbs
// that may write. Live sees the events of runs; it may be nil.
func (a *app) writing(ctx context.Context, live func(loop.Event), fn func(*compose.Verbs) error) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	o.Live = live
	if _, err := os.Stat(o.Settings.Database); err != nil {
		// A place that is no workspace must not be the reason for a store.
		if _, err := git.Open(ctx, a.dir()); err != nil {
			return err
		}
	}
	return a.with(ctx, o, func(s *compose.Verbs) error {
		a.recover(ctx, s)
		return fn(s)
	})
}

func (a *app) with(ctx context.Context, o compose.Options, fn func(*compose.Verbs) error) error {
	opened := waiting.For(ctx, "pawl to open its store and the repository", nil)
	defer opened()
	d, err := compose.New(ctx, o)
	if err != nil {
		return err
	}
	s, err := d.Verbs(ctx, a.dir())
	opened()
	if err == nil {
		err = fn(s)
	}
	if closed := d.Close(); closed != nil {
		return errors.Join(err, fmt.Errorf("close the store: %w", closed))
	}
	return err
}

// recover concludes what dead processes left behind and reports it. What it
// cannot conclude is said, and is left to a later command: it must not keep
// other loops from running.
func (a *app) recover(ctx context.Context, s *compose.Verbs) {
	done := waiting.For(ctx, "the conclusion of what earlier runs left behind", nil)
	found, err := s.Recover(ctx)
	done()
	for _, r := range found {
		_, _ = fmt.Fprintln(a.Err, "pawl: "+recovery(r))
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	f := faultOf(err)
	_, _ = fmt.Fprintf(a.Err, "pawl: warning: %s\n", indented(joined("\n", f.What, f.Why, f.Advice().String()), "  "))
}

func recovery(r engine.Recovered) string {
	text := fmt.Sprintf("run %s#%d %s; concluded as %s", cleanLine(r.Loop), r.Run.N, cleanLine(r.How), r.Run.Outcome)
	if r.Killed > 0 {
		text += fmt.Sprintf("; %d processes that had survived it were ended", r.Killed)
	}
	if r.Run.Snapshot != "" {
		text += fmt.Sprintf("; its work is kept in %s: git diff %s %s", r.Run.Snapshot, shortHash(r.Run.BaseCommit), r.Run.Snapshot)
	}
	return joined("; ", text, cleanLine(r.Lost), cleanLine(r.Next))
}

func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// prober looks at this machine through the environment of this process.
func (a *app) prober() probe.Prober {
	return probe.Prober{Exec: proc.Plain{}, Environ: a.Environ, Home: a.variable("HOME"), Now: a.Now()}
}

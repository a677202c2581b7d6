package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

// printer is where and how the command prints. Flags decide it, so it is called
// once they are read.
func (a *app) printer() *output.Printer {
	return &output.Printer{
		Out: a.Out, ErrOut: a.Err, Terminal: a.Terminal, Width: a.Width, Now: a.rowTime, Style: output.Style{Color: a.wantsColor()}, JSON: a.json, JQ: a.jq,
	}
}

// rowTime is the time by which rows are dated: that of the database once a store was
// opened, else that of this host.
func (a *app) rowTime() time.Time {
	if parts := a.opened.Load(); parts != nil {
		return parts.Now()
	}
	return a.Now().Add(time.Duration(a.clockLead.Load()))
}

// wantsColor reports whether to decorate text: the flag decides, else NO_COLOR,
// else CLICOLOR_FORCE, else whether the output is a terminal.
func (a *app) wantsColor() bool {
	switch force := a.lookupEnv("CLICOLOR_FORCE"); {
	case a.color == "always":
		return true
	case a.color == "never", a.lookupEnv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return a.Terminal && a.lookupEnv("TERM") != "dumb"
}

// lookupEnv returns the value of a variable, or nothing if it is not set.
func (a *app) lookupEnv(name string) string {
	for _, kv := range a.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// absPath resolves a path that a flag or an argument names.
func (a *app) absPath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// workDir is where to look for the workspace.
func (a *app) workDir() string { return a.absPath(a.workspace) }

// formats are the formats of loops, for commands that need no repository.
func (a *app) formats() format.List { return compose.Formats(a.Now) }

func (a *app) composeOptions() (compose.Options, error) {
	home := a.home
	if home != "" {
		home = a.absPath(home)
	}
	o, err := compose.LoadOptions(config.Settings{Home: home, Database: a.database}, a.Environ)
	o.Version = version
	return o, err
}

// pricing says which prices count: those of a file, or without one pawl's own.
func (a *app) pricing(file string) (budgets.Pricing, error) {
	o, err := a.composeOptions()
	if file != "" {
		file = a.absPath(file)
	}
	return budgets.Pricing{Home: o.Settings.Home, File: file, Now: a.Now()}, err
}

// ifGiven returns the value of a flag if it was given, and else nil.
func ifGiven[T any](flags *pflag.FlagSet, name string, value *T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return value
}

// withReadOnlyVerbs calls fn with verbs that never write.
func (a *app) withReadOnlyVerbs(ctx context.Context, fn func(*api.Workspace) error) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	o.ReadOnly = true
	return a.openVerbs(ctx, o, fn)
}

// openVerbs calls fn with the verbs of the workspace.
func (a *app) openVerbs(ctx context.Context, o compose.Options, fn func(*api.Workspace) error) error {
	opened := waiting.For(ctx, "pawl to open its store and the repository", nil)
	defer opened()
	return a.openParts(ctx, o, func(parts *compose.Parts) error {
		s, err := parts.Verbs(ctx, a.workDir())
		opened()
		if err != nil {
			return err
		}
		return fn(s)
	})
}

// withParts calls fn with the parts that need no repository.
func (a *app) withParts(ctx context.Context, readOnly bool, fn func(*compose.Parts) error) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	o.ReadOnly = readOnly
	return a.openParts(ctx, o, fn)
}

// openParts calls fn with the parts and closes them.
func (a *app) openParts(ctx context.Context, o compose.Options, fn func(*compose.Parts) error) error {
	parts, err := compose.New(ctx, o)
	if err != nil {
		return err
	}
	a.opened.Store(parts)
	err = fn(parts)
	if closed := parts.Close(); closed != nil {
		return errors.Join(err, fmt.Errorf("close the store: %w", closed))
	}
	return err
}

// describeRecovered says in one line how a run ended that its process had left.
func describeRecovered(r engine.Recovered) string {
	text := fmt.Sprintf("run %s#%d %s; concluded as %s", output.CleanLine(r.Loop), r.Run.N, output.CleanLine(r.How), r.Run.Outcome)
	if r.Killed > 0 {
		text += fmt.Sprintf("; %d processes that had survived it were ended", r.Killed)
	}
	if r.Run.Snapshot != "" {
		text += fmt.Sprintf("; its work is kept in %s: git diff %s %s", r.Run.Snapshot, shortHash(r.Run.BaseCommit), r.Run.Snapshot)
	}
	return joinNonEmpty("; ", text, output.CleanLine(r.Lost), output.CleanLine(r.Next.String()))
}

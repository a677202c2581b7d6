package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/waiting"
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
	return a.Now()
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

func (a *app) composeOptions() (compose.Options, error) {
	home := a.home
	if home != "" {
		home = a.absPath(home)
	}
	o, err := compose.LoadOptions(home, a.Environ)
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
func (a *app) withReadOnlyVerbs(ctx context.Context, fn func(*compose.Verbs) error) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	o.ReadOnly = true
	return a.openVerbs(ctx, o, fn)
}

// withVerbs concludes what dead processes left, says so, and calls fn with verbs
// that may write. Live gets the events of runs; it may be nil.
func (a *app) withVerbs(ctx context.Context, live func(loop.Event), fn func(*compose.Verbs) error) error {
	o, err := a.composeOptions()
	if err != nil {
		return err
	}
	o.Live = live
	if _, err := os.Stat(o.Settings.Database); err != nil {
		// Outside of a workspace no store is made.
		if err := compose.CheckRepository(ctx, a.workDir()); err != nil {
			return err
		}
	}
	return a.openVerbs(ctx, o, func(s *compose.Verbs) error {
		if s.Replaced != "" {
			a.printer().Note("pawl: the clone of another repository was here before, workspace %s; its runs stay in the store, and pawl init --join %s in a clone of it takes them up", s.Replaced, s.Replaced)
		}
		a.recoverDeadRuns(ctx, s)
		return fn(s)
	})
}

// openVerbs calls fn with the verbs of the workspace.
func (a *app) openVerbs(ctx context.Context, o compose.Options, fn func(*compose.Verbs) error) error {
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

// recoverDeadRuns concludes what dead processes left behind and reports it. What it
// cannot conclude is reported, too, and left to a later command: it must not keep
// other loops from running.
func (a *app) recoverDeadRuns(ctx context.Context, s *compose.Verbs) {
	done := waiting.For(ctx, "the conclusion of what earlier runs left behind", nil)
	found, err := s.Runs.Recover(ctx)
	done()
	p := a.printer()
	for _, r := range found {
		p.Note("pawl: %s", describeRecovered(r))
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	f := explainError(err)
	p.Note("pawl: warning: %s", output.Indent(joinNonEmpty("\n", f.What, f.Why, f.Advice().String()), "  "))
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

package loops

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// mostPast is how many of the newest runs of a loop a simulation draws from.
const mostPast = 200

// Fleet is what a simulation needs to know of loops.
type Fleet struct {
	Workspace string // id; empty: they belong to none
	Root      string // of the checkout; empty: as for Workspace
	Loops     []sim.Loop
	Budgets   []loop.Budget
	Left      []LeftOut
}

// LeftOut is a loop that does not fire, and why.
type LeftOut struct {
	Loop string `json:"loop"`
	Why  string `json:"why"`
}

// Fleet returns the loops of the workspace that fire, with their past runs and the budgets
// of the store. Protocol is that of the loops that are meant; empty: all.
func (s *Service) Fleet(ctx context.Context, protocol string) (Fleet, error) {
	f := Fleet{Workspace: s.ws.ID, Root: s.ws.Root}
	list, err := s.ws.AllLoops(ctx)
	if err != nil {
		return f, err
	}
	list = slices.DeleteFunc(list, func(l lookup.Loop) bool { return protocol != "" && l.Protocol != protocol })
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		if f.Budgets, err = r.Budgets(ctx); err != nil {
			return err
		}
		for i := range list {
			if list[i].Row.ID == "" {
				continue
			}
			runs, err := r.Ended(ctx, list[i].Row.ID, mostPast)
			if err != nil {
				return err
			}
			f.add(list[i], s.ws.PausedBy(list[i]).String(), runs)
			list[i].Name = ""
		}
		return nil
	})
	if err != nil && !lookup.Absent(err) {
		return f, err
	}
	for _, l := range list { // Nobody has registered these yet.
		if l.Name != "" {
			f.add(l, s.ws.PausedBy(l).String(), nil)
		}
	}
	return f, nil
}

func (f *Fleet) add(l lookup.Loop, paused string, runs []loop.Run) {
	switch {
	case l.Problem != nil:
		f.Left = append(f.Left, LeftOut{l.Name, "its definition cannot run"})
		return
	case paused != "":
		f.Left = append(f.Left, LeftOut{l.Name, "it is paused by " + paused})
		return
	}
	one := sim.Loop{ID: l.LoopID(), Definition: l.Definition, Registered: l.Row.Created}
	for _, run := range runs {
		if sim.Tells(run) {
			one.Past = append(one.Past, run)
		}
	}
	f.Loops = append(f.Loops, one)
}

// FleetIn returns the loops that files below dir define: those of its .loops, or else of its
// folders. It needs no repository and no store. If there is none, the error is a *loop.Fault.
func FleetIn(formats format.List, dir string) (f Fleet, err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return f, &loop.Fault{Exit: loop.ExitNotFound, What: dir + " is not a folder", Fix: "name one that has .loops, or a folder for each loop", Err: err}
	}
	names, err := formats.Names(dir)
	if err != nil {
		return f, err
	}
	read := func(name string) (loop.Definition, []string, error) { return formats.Load(dir, name) }
	if len(names) == 0 {
		for _, path := range dirglob.Find(dir, "*/"+definition.ConfigFile) {
			names = append(names, filepath.Base(filepath.Dir(path)))
		}
		read = func(name string) (loop.Definition, []string, error) {
			return format.LoadFile(filepath.Join(dir, name, definition.ConfigFile), name)
		}
	}
	for _, name := range names {
		d, _, err := read(name)
		if err != nil {
			f.Left = append(f.Left, LeftOut{name, "its definition cannot run"})
			continue
		}
		f.Loops = append(f.Loops, sim.Loop{Definition: d})
	}
	if len(f.Loops)+len(f.Left) == 0 {
		return f, &loop.Fault{Exit: loop.ExitNotFound, What: "there is no loop in " + dir, Err: loop.ErrNotFound, Fix: "name a folder with definitions in it, like NAME/" + definition.ConfigFile}
	}
	return f, nil
}
